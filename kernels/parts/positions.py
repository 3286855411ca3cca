"""Which elements a program works on."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def positions(LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr):
    """This program's elements; in 64 bits, whose division is slow, only where the arrays need that."""
    first = tl.program_id(0)
    if LONG_OFFSETS:
        first = first.to(tl.int64)
    return first * BLOCK + tl.arange(0, BLOCK)
