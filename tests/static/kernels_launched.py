"""A user's file whose example() takes the config's values and uses tritensor's own launch()."""

from __future__ import annotations

import triton
import triton.language as tl

import tritensor as tt
from tritensor.cuda.launch import launch


# x += 1
@triton.jit
def _increment(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def example(BLOCK: int = 1024) -> None:
    x = tt.empty(1 << 20, device="cuda")
    launch(_increment, (triton.cdiv(1 << 20, BLOCK),), x._array, 1 << 20, BLOCK=BLOCK)
