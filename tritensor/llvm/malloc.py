"""The C library's memory: large arrays that are freed stay with the process, for the next ones.

numpy takes its memory from malloc, which gives large pieces back to the system as soon as they are free; each page that it then asks for anew costs
more than filling it (a fifth of a training step of a small Transformer). What is kept can be seen in the size of the process, not in what it may use.
"""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h's names of mallopt's parameters
_KEPT = 1 << 28  # bytes at the end of the heap that stay
_APART = 1 << 25  # pieces up to this size come from the heap; the most that glibc takes


def keep() -> bool:
    """Let malloc keep memory; False where the C library has no such switch, or the environment has set it (MALLOC_TRIM_THRESHOLD_)."""
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")):
        return False
    switch = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's; musl and macOS have none
    return switch is not None and bool(switch(_MMAP_THRESHOLD, _APART)) and bool(switch(_TRIM_THRESHOLD, _KEPT))
