"""torch.distributed's names of backends and levels of debugging, and torch.distributed.distributed_c10d, where scripts take the group itself from."""

from __future__ import annotations

import enum
import os
from datetime import timedelta
from typing import Any, ClassVar

from tritensor.distributed.collectives import ReduceOp
from tritensor.distributed.group import ProcessGroup as ProcessGroup
from tritensor.distributed.group import joined

default_pg_timeout = timedelta(minutes=30)  # what groups wait for others where nothing is said; there are no others


class Backend(str):
    """The names of backends, `Backend.NCCL`; `Backend("GLOO")` is a name as it is written, "gloo"."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError(f"Backend: {name!r} is of type {type(name).__name__}; Backend constructor parameter must be string-ish")
        return name.lower()


class DebugLevel(enum.Enum):
    """How much PyTorch's collectives check and tell."""

    OFF, INFO, DETAIL = range(3)


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """What was set last; OFF before. The collectives of one process check everything always."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Accepted, see get_debug_level."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """set_debug_level to what TORCH_DISTRIBUTED_DEBUG names. Raises RuntimeError for what is no level."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"TORCH_DISTRIBUTED_DEBUG is {name!r}; the value must be one of OFF, INFO, or DETAIL")
    set_debug_level(DebugLevel[name])


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether a reduction is defined for complex numbers: the largest of them is not."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def _get_default_group() -> ProcessGroup:
    """The group of all processes. Raises ValueError before init_process_group."""
    return joined("_get_default_group")


def _rank_not_in_group(group: Any) -> bool:
    """False: the one process is in every group."""
    return False
