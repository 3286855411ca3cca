"""A kernel that reads a global constant, which a test changes."""

from __future__ import annotations

import triton
import triton.language as tl

FACTOR = tl.constexpr(3)


@triton.jit
def times_factor(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i) * FACTOR)
