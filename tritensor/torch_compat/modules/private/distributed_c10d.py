"""torch.distributed's names of backends and levels of debugging, its constants, and distributed_c10d, where scripts take the group itself from."""

from __future__ import annotations

from typing import Any, ClassVar

from tritensor.distributed.debug_level import DebugLevel as DebugLevel
from tritensor.distributed.debug_level import get_debug_level as get_debug_level
from tritensor.distributed.debug_level import set_debug_level as set_debug_level
from tritensor.distributed.debug_level import set_debug_level_from_env as set_debug_level_from_env
from tritensor.distributed.initialisation import default_pg_timeout as default_pg_timeout
from tritensor.distributed.process_group import ProcessGroup as ProcessGroup
from tritensor.distributed.process_group import is_outside, require_group
from tritensor.distributed.reduce_op import ReduceOp

default_pg_nccl_timeout = None  # of NCCL alone: none, as in PyTorch without a GPU


class Backend(str):
    """The names of backends, `Backend.NCCL`; `Backend("GLOO")` is a name as it is written, "gloo"."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError(f"Backend: {name!r} is of type {type(name).__name__}; Backend constructor parameter must be string-ish")
        return name.lower()  # a plain str: PyTorch's Backend gives one, too


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether a reduction is defined for complex numbers: the largest of them is not."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def _get_default_group() -> ProcessGroup:
    """The group of all processes. Raises ValueError before init_process_group."""
    return require_group("_get_default_group")


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is no member of a group."""
    return is_outside(group)
