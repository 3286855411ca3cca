"""The modified Bessel functions I0, I1, K0, K1, also scaled by exp(-|x|) or exp(x).

Sources: DLMF 10.25 to 10.40; rational functions fitted by tests/peer/special_fits.py.
"""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.special.modified_bessel_fits import (
    I0_FAR,
    I0_NEAR,
    I0_UNIT,
    I1_FAR,
    I1_NEAR,
    I1_UNIT,
    K0_FAR,
    K0_NEAR,
    K1_FAR,
    K1_NEAR,
)


# exp(x) y for y of the order of 1 / sqrt(x): in two steps, because exp(x) overflows first
@triton.jit
def _grown(x, y):
    half = maths.exp(0.5 * x)
    return half * (half * y)


@triton.jit
def _i0_near(z):
    return maths.ratio(z * z, I0_NEAR)


@triton.jit
def _i0e_far(z):
    u = maths.div(maths.ones(z), z)
    return maths.sqrt(u) * maths.ratio(u, I0_FAR)


@triton.jit
def _i0_far(z):
    return maths.where(z == float("inf"), z, _grown(z, _i0e_far(z)))


@triton.jit
def _i0e_near(z):
    return maths.exp(-z) * _i0_near(z)


@triton.jit
def i0(x):
    """I0(x)."""
    z = maths.abs(x)
    return maths.choose(z < 12.0, _i0_near, _i0_far, z)


@triton.jit
def i0e(x):
    """exp(-|x|) I0(x)."""
    z = maths.abs(x)
    return maths.choose(z < 12.0, _i0e_near, _i0e_far, z)


@triton.jit
def _i1_near(z):
    return z * maths.ratio(z * z, I1_NEAR)


@triton.jit
def _i1e_far(z):
    u = maths.div(maths.ones(z), z)
    return maths.sqrt(u) * maths.ratio(u, I1_FAR)


@triton.jit
def _i1_far(z):
    return maths.where(z == float("inf"), z, _grown(z, _i1e_far(z)))


@triton.jit
def _i1e_near(z):
    return maths.exp(-z) * _i1_near(z)


@triton.jit
def i1(x):
    """I1(x)."""
    z = maths.abs(x)
    y = maths.choose(z < 12.0, _i1_near, _i1_far, z)
    return maths.where(x < 0, -y, y)


@triton.jit
def i1e(x):
    """exp(-|x|) I1(x)."""
    z = maths.abs(x)
    y = maths.choose(z < 12.0, _i1e_near, _i1e_far, z)
    return maths.where(x < 0, -y, y)


# K0(x): a rational function less log(x) I0(x) up to 1 (DLMF 10.31.2), exp(-x) / sqrt(x) times one of 1 / x beyond (10.40.2)
@triton.jit
def _k0_near(x):
    w = x * x
    return maths.ratio(w, K0_NEAR) - maths.log(x) * maths.ratio(w, I0_UNIT)


@triton.jit
def _k0e_far(x):
    u = maths.div(maths.ones(x), x)
    return maths.sqrt(u) * maths.ratio(u, K0_FAR)


@triton.jit
def _k0_far(x):
    return maths.exp(-x) * _k0e_far(x)


@triton.jit
def _k0e_near(x):
    return maths.exp(x) * _k0_near(x)


@triton.jit
def _from_zero(x, y):
    """y, but infinite at 0 and NaN below."""
    return maths.where(x == 0, float("inf"), maths.where(x < 0, float("nan"), y))


@triton.jit
def k0(x):
    """K0(x)."""
    return _from_zero(x, maths.choose(x < 1.0, _k0_near, _k0_far, x))


@triton.jit
def k0e(x):
    """exp(x) K0(x)."""
    return _from_zero(x, maths.choose(x < 1.0, _k0e_near, _k0e_far, x))


@triton.jit
def _k1_near(x):
    w = x * x
    first = maths.log(x) * x * maths.ratio(w, I1_UNIT)
    return first + maths.div(maths.ratio(w, K1_NEAR), x)


@triton.jit
def _k1e_far(x):
    u = maths.div(maths.ones(x), x)
    return maths.sqrt(u) * maths.ratio(u, K1_FAR)


@triton.jit
def _k1_far(x):
    return maths.exp(-x) * _k1e_far(x)


@triton.jit
def _k1e_near(x):
    return maths.exp(x) * _k1_near(x)


@triton.jit
def k1(x):
    """K1(x)."""
    return _from_zero(x, maths.choose(x < 1.0, _k1_near, _k1_far, x))


@triton.jit
def k1e(x):
    """exp(x) K1(x)."""
    return _from_zero(x, maths.choose(x < 1.0, _k1e_near, _k1e_far, x))
