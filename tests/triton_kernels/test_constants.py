"""A constexpr to the left of a tensor, interpreted: it counts as the number that it holds, as it does where kernels are compiled."""

from __future__ import annotations

import triton
import triton.language as tl

import tritensor as tt

SIX = tl.constexpr(6)


@triton.jit
def left(x, out):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    y = SIX * (v + 0.5) + (SIX - v) + (SIX / (v + 1))
    tl.store(out + i, tl.where(v < SIX, y, 1 + SIX + v))


def test_a_constant_stands_to_the_left_of_a_tensor() -> None:
    x, out = tt.arange(8, device="cuda").float(), tt.zeros(8, device="cuda")
    left[(1,)](x, out)
    v = x.cpu()
    want = tt.where(v < 6, 6 * (v + 0.5) + (6 - v) + 6 / (v + 1), 7 + v)
    assert out.cpu().allclose(want)
