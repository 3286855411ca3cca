"""tl.dot_scaled on the emulated device: scales that are 0, and scales that are float8 numbers, one for 16 elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt

RNG = np.random.default_rng(7)
FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@triton.jit
def product(a, a_scales, b, b_scales, out, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    i = tl.arange(0, N)
    half = tl.arange(0, K // 2)
    groups = i[:, None] * (K // GROUP) + tl.arange(0, K // GROUP)[None, :]
    left = tl.load(a + i[:, None] * (K // 2) + half[None, :])
    right = tl.load(b + i[:, None] * (K // 2) + half[None, :])
    found = tl.dot_scaled(left, tl.load(a_scales + groups), "e2m1", right.T, tl.load(b_scales + groups), "e2m1")
    tl.store(out + i[:, None] * N + i[None, :], found)


def unpacked(codes: np.ndarray) -> np.ndarray:
    return FOUR_BITS[np.stack([codes & 15, codes >> 4], -1).reshape(codes.shape[0], -1)]


@pytest.mark.parametrize("kind", ["exponents", "float8"])
def test_scales_of_every_kind(kind: str) -> None:
    group = 32 if kind == "exponents" else 16
    codes = RNG.integers(0, 256, (2, 16, 32)).astype(np.uint8)
    if kind == "exponents":
        held = RNG.integers(125, 130, (2, 16, 64 // group)).astype(np.uint8)
        held[:, 3] = 0  # 2^-127, and no reason to think that there are no scales
        factors = 2.0 ** (held.astype(np.float64) - 127)
        scales = [tt.tensor(h, device="cuda") for h in held]
    else:
        held = RNG.uniform(0.25, 3.0, (2, 16, 64 // group)).astype(ml_dtypes.float8_e4m3fn)
        held[:, 3] = 0
        factors = held.astype(np.float64)
        scales = [tt.tensor(h.astype(np.float32), device="cuda").to(tt.float8_e4m3fn) for h in held]
    out = tt.zeros(16, 16, device="cuda")
    a, b = (tt.tensor(c, device="cuda") for c in codes)
    product[(1,)](a, scales[0], b, scales[1], out, N=16, K=64, GROUP=group)
    left, right = (unpacked(c) * np.repeat(f, group, -1) for c, f in zip(codes, factors, strict=True))
    np.testing.assert_allclose(out.cpu().numpy(), left @ right.T, rtol=1e-5, atol=1e-5)
