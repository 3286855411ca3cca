"""Kernels as a user's file has them, for `bench static --compare`: one under @triton.autotune, one with a loop, one that is wrong, an example()."""

from __future__ import annotations

import triton
import triton.language as tl

import tritensor as tt


# y = x^2
@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=4) for b in (512, 2048)], key=["n"])
@triton.heuristics({"EVEN": lambda named: named["n"] % named["BLOCK"] == 0})
@triton.jit
def _square(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        v = tl.load(x + at)
        tl.store(y + at, v * v)
    else:
        v = tl.load(x + at, mask=at < n)
        tl.store(y + at, v * v, mask=at < n)


# y[row] = sum of x[row, :]
@triton.jit
def _rows(x, y, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        total += tl.load(x + tl.program_id(0) * n + k + tl.arange(0, BLOCK))
    tl.store(y + tl.program_id(0), tl.sum(total))


def example() -> None:
    """Calls _square once, on 2^24 elements, and _rows, which a comparison of _square does not ask for."""
    x = tt.empty(4096, 4096, dtype=tt.bfloat16, device="cuda")
    y = tt.empty_like(x)
    _square[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    _rows[(4096,)](x, y, 4096, BLOCK=1024)
