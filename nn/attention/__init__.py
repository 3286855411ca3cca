"""Choice of attention's kernels: PyTorch's names, which are checked; what is computed does not depend on it."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence

from tritensor.ground import shortcuts
from tritensor.nn.attention import bias as bias


class SDPBackend(enum.IntEnum):
    """Ways to compute scaled dot product attention, under PyTorch's names."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


# of the process, not of a thread, as PyTorch's flags are
_allowed: tuple[SDPBackend, ...] = tuple(b for b in SDPBackend if b is not SDPBackend.ERROR)


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Within the block attention may use these backends. MATH alone keeps the flash kernels out on a GPU; else names are checked, and nothing changes."""
    global _allowed
    given = (backends,) if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, list | tuple | set) or not all(isinstance(b, SDPBackend) for b in given):
        raise AssertionError(f"sdpa_kernel: backends is {backends!r}; give an SDPBackend, or a list of them")
    before = _allowed
    _allowed = tuple(given)  # a copy: the caller's list may change inside the block
    try:
        with shortcuts.suspended():  # a plan does not look which are allowed
            yield
    finally:
        _allowed = before


def _cur_sdpa_kernel_backends() -> list[SDPBackend]:
    """The backends that are allowed now."""
    return list(_allowed)


WARN_FOR_UNFUSED_KERNELS = False  # PyTorch's flag, which scripts set; debug.variants() tells here what was not fused
