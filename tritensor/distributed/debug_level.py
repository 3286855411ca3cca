"""DebugLevel: the checks of collectives, as many as TRITENSOR_DISTRIBUTED_DEBUG asks for."""

from __future__ import annotations

import enum
import os


class DebugLevel(enum.Enum):
    """DETAIL compares every call between the ranks before it begins; OFF and INFO those of the first steps alone."""

    OFF, INFO, DETAIL = range(3)


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """What was set last; before, what the environment says."""
    if _level is None:
        set_debug_level_from_env()
    assert _level is not None
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """For groups that are made from now on."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """set_debug_level to what TRITENSOR_DISTRIBUTED_DEBUG names, or TORCH_DISTRIBUTED_DEBUG. Raises RuntimeError for what is no level."""
    variable = next(
        (v for v in ("TRITENSOR_DISTRIBUTED_DEBUG", "TORCH_DISTRIBUTED_DEBUG") if v in os.environ), "TRITENSOR_DISTRIBUTED_DEBUG"
    )
    name = os.environ.get(variable, "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"{variable} is {name!r}; the value must be one of OFF, INFO, or DETAIL")
    set_debug_level(DebugLevel[name])
