"""nccl4py's low-level bindings: loaded when they are needed; what NCCL reports becomes an error; its numbers of element types."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from tritensor.distributed.reduce_op import BITWISE, ReduceOp
from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import DistBackendError, DTypeError, RankFailedError
from tritensor.ground.extras import extra

NEEDED = 21800  # as NCCL writes versions: 2.18, the first that splits communicators
ID_BYTES = 128  # of ncclUniqueId
REMOTE = ("RemoteError", "SystemError")  # what another process' end looks like from here
_loaded: Any = None


def works() -> bool:
    """Whether nccl4py is installed and finds an NCCL that is new enough."""
    try:
        nccl("works")
    except (ModuleNotFoundError, DistBackendError):
        return False
    return True


def nccl(who: str) -> Any:
    """The module nccl.bindings.nccl, for `who`, with a libnccl.so.2 that it found.

    Raises ModuleNotFoundError where nccl4py is not installed, DistBackendError where it or NCCL is too old or there is no NCCL.
    """
    global _loaded
    if _loaded is None:
        _loaded = _load(who)
    return _loaded


def _load(who: str) -> Any:
    api = extra("nccl.bindings.nccl", who, "nccl4py", "tritensor[nccl]")
    if not hasattr(api, "Comm"):
        raise DistBackendError(f"{who}: nccl4py {api.__version__} is too old; pip install 'nccl4py>=0.6'")
    try:
        version = api.get_version()
    except (RuntimeError, OSError) as error:
        raise DistBackendError(
            f"{who}: nccl4py is installed and finds no NCCL ({' '.join(str(error).split())}); pip install nvidia-nccl-cu13 (nvidia-nccl-cu12 "
            "where the driver is for CUDA 12), or put the folder of libnccl.so.2 into LD_LIBRARY_PATH"
        ) from error
    if version < NEEDED:
        raise DistBackendError(
            f"{who}: NCCL {format_version(version)} in {api.get_library_path()} is too old, 2.18 or later is needed; pip install -U nvidia-nccl-cu13"
        )
    return api


def format_version(version: int) -> str:
    """ "2.28.9" for 22809."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def unique_id(who: str = "init_process_group") -> bytes:
    """The bytes by which the processes of one communicator find one another; rank 0 makes them and tells the others.

    With NCCL_COMM_ID=host:port, an address of rank 0's machine, in the environment of all processes, NCCL makes the same bytes of it
    everywhere: each process calls this itself, and nobody needs to be told.

    Raises ModuleNotFoundError and DistBackendError as `nccl` does, and DistBackendError with NCCL's words where it cannot make them.
    """
    api = nccl(who)
    try:
        made = api.get_unique_id()
    except api.NCCLError as error:
        raise to_error(who, api, error.status) from error
    return ctypes.string_at(made.ptr, ID_BYTES)


def read_error(api: Any, status: int, comm: Any = None) -> str:
    """A status in NCCL's words: "ncclRemoteError (6): remote process exited...; NCCL's last error: ..."."""
    last = " ".join(str(api.get_last_error(api.Comm() if comm is None else comm)).split())
    said = f"nccl{api.Result(status).name} ({status}): {api.get_error_string(status)}"
    return f"{said}; NCCL's last error: {last}" if last else said


def to_error(doing: str, api: Any, status: int, comm: Any = None) -> DistBackendError:
    """The exception for a status, not raised: RankFailedError where it tells of another process."""
    kind = RankFailedError if api.Result(status).name in REMOTE else DistBackendError
    return kind(f"{doing}: NCCL says {read_error(api, status, comm)}; NCCL_DEBUG=INFO shows more")


class Elements(NamedTuple):
    """One element of ours is `each` of NCCL's type `kind`."""

    kind: int
    each: int


# ncclDataType_t
_INT8, _UINT8 = 0, 1
_OWN = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
# ncclRedOp_t
_OPS = {ReduceOp.SUM: 0, ReduceOp.PRODUCT: 1, ReduceOp.MAX: 2, ReduceOp.MIN: 3, ReduceOp.AVG: 4}
# Of bytes that are 0 or 1 the sum (any) and the bits' OR are the largest, the product (all) and the bits' AND the least.
_OF_BOOL = {ReduceOp.SUM: 2, ReduceOp.MAX: 2, ReduceOp.BOR: 2, ReduceOp.PRODUCT: 3, ReduceOp.MIN: 3, ReduceOp.BAND: 3}


def get_move_type(dtype: Any) -> Elements:
    """NCCL's type to move a numpy dtype, and how many of it an element is: as they are where NCCL knows them, as their parts or bytes where it does not."""
    found = dtypes.of(dtype)
    if found.kind == "bool":
        return Elements(_UINT8, 1)
    if found.kind == "complex":
        return Elements(_OWN[found.to_real().name], 2)
    own = _OWN.get(found.name)
    return Elements(_INT8, found.itemsize) if own is None else Elements(own, 1)


def get_reduce_type(call: object, dtype: Any, op: ReduceOp) -> tuple[Elements, int]:
    """How elements of a numpy dtype are reduced, and NCCL's number of the op. Raises DTypeError for what NCCL has not."""
    found = dtypes.of(dtype)
    if found.kind == "bool":
        if op not in _OF_BOOL:
            raise _refuse_reduction(call, found, op, "convert the tensor to int32 and reduce that (SUM, then % 2, is the XOR)")
        return Elements(_UINT8, 1), _OF_BOOL[op]
    if op in BITWISE:
        raise _refuse_reduction(
            call, found, op, "reduce a copy on the CPU over a group of backend 'mpi', or each bit as an element of its own"
        )
    if found.kind == "complex":
        if op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise _refuse_reduction(call, found, op, "gather the tensors with all_gather and reduce them here")
        return get_move_type(dtype), _OPS[op]
    if found.name not in _OWN:
        wider = "bfloat16" if found.kind == "float8" else "int32"
        raise _refuse_reduction(call, found, op, f"convert the tensor to {wider} before, and back")
    return Elements(_OWN[found.name], 1), _OPS[op]


def _refuse_reduction(call: object, dtype: DType, op: ReduceOp, mend: str) -> DTypeError:
    return DTypeError(f"{call}: NCCL has no {op.name} of {dtype.name}; {mend}")
