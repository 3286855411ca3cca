"""nccl4py's low-level bindings: loaded when they are needed; what NCCL reports becomes an error with its words."""

from __future__ import annotations

import ctypes
from typing import Any

from tritensor.ground.errors import DistBackendError, RankFailedError
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
