"""Which elements a program works on, and whether their places need 64 bits."""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.array import CudaArray


@triton.jit
def positions(LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr):
    """This program's elements; in 64 bits, whose division is slow, only where the arrays need that."""
    first = tl.program_id(0)
    if LONG_OFFSETS:
        first = first.to(tl.int64)
    return first * BLOCK + tl.arange(0, BLOCK)


def long_offsets(*arrays: CudaArray) -> bool:
    """Whether offsets into one of them can pass 32 bits."""
    return any(sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) >= 1 << 31 for a in arrays)
