"""The normal distribution and the error function's relatives: scaled complement, inverses, logarithms, entropy.

Sources: DLMF chapter 7; rational functions fitted by tests/peer/special_fits.py.
"""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.special.error_fits import ERFCX_FAR, ERFCX_NEAR, ERFINV, TAIL_FAR, TAIL_MIDDLE, TAIL_NEAR


# exp(x^2) erfc(x): rational up to 4, beyond 1 / x times a rational function of 1 / x^2 (DLMF 7.12.1); 2 exp(x^2) - erfcx(-x) below 0
@triton.jit
def _erfcx_near(x):
    return maths.ratio(x, ERFCX_NEAR)


@triton.jit
def _erfcx_far(x):
    u = maths.div(maths.ones(x), x)
    return u * maths.ratio(u * u, ERFCX_FAR)


@triton.jit
def _erfcx_right(x):
    return maths.choose(x < 4.0, _erfcx_near, _erfcx_far, x)


@triton.jit
def _erfcx_left(x):
    z = maths.maximum(x, -27.0 * maths.ones(x))  # beyond, the result is infinite in every type
    grown = maths.exp(z * z)
    return 2.0 * maths.where(grown == float("inf"), grown, grown * (1.0 + maths.square_rest(z))) - _erfcx_right(-z)


@triton.jit
def erfcx(x):
    """exp(x^2) erfc(x), without overflow above 0."""
    return maths.choose(x < 0, _erfcx_left, _erfcx_right, x)


# erfcinv(exp(-t^2)) as rational functions of t
@triton.jit
def _tail_near(t):
    return maths.ratio(t, TAIL_NEAR)


@triton.jit
def _tail_middle(t):
    return maths.ratio(t, TAIL_MIDDLE)


@triton.jit
def _tail_far(t):
    return maths.ratio(t, TAIL_FAR)


@triton.jit
def _tail_beyond(t):
    return maths.choose(t < 6.2, _tail_middle, _tail_far, t)


@triton.jit
def _tail(y):
    """erfcinv(y), 0 <= y <= 1/2."""
    t = maths.sqrt(-maths.log(y))
    return maths.where(y == 0, float("inf"), maths.choose(t < 2.5, _tail_near, _tail_beyond, t))


@triton.jit
def _erfinv_inside(x):
    return x * maths.ratio(x * x, ERFINV)


@triton.jit
def _erfinv_outside(x):
    y = _tail(1.0 - maths.abs(x))
    return maths.where(x < 0, -y, y)


@triton.jit
def erfinv(x):
    """The inverse of erf; infinite at 1 and -1, NaN beyond."""
    return maths.choose(maths.abs(x) <= 0.5, _erfinv_inside, _erfinv_outside, x)


# the quantile of the normal distribution: sqrt(2) erfinv(2 p - 1), near 0 and 1 from the tail's mass
@triton.jit
def _ndtri_inside(p):
    return 1.4142135623730951 * _erfinv_inside(2.0 * (p - 0.5))


@triton.jit
def _ndtri_outside(p):
    y = 1.4142135623730951 * _tail(2.0 * maths.minimum(p, 1.0 - p))
    return maths.where(p < 0.5, -y, y)


@triton.jit
def ndtri(p):
    """The inverse of ndtr; infinite at 0 and 1, NaN beyond."""
    return maths.choose(maths.abs(p - 0.5) <= 0.25, _ndtri_inside, _ndtri_outside, p)


@triton.jit
def ndtr(x):
    """The normal distribution's mass below x."""
    return maths.normal_cdf(x)


@triton.jit
def _log_ndtr_left(x):
    t = x * 0.7071067811865476
    return maths.log(0.5 * erfcx(-t)) - 0.5 * x * x


@triton.jit
def _log_ndtr_right(x):
    return maths.log1p(-maths.normal_cdf(-x))


@triton.jit
def log_ndtr(x):
    """log ndtr(x), far below 0 through erfcx."""
    return maths.choose(x < -1.0, _log_ndtr_left, _log_ndtr_right, x)


# -x log x, 0 at 0, -infinity below
@triton.jit
def entr(x):
    """-x log(x), the term of an entropy."""
    y = -x * maths.log(x)
    return maths.where(x < 0, float("-inf"), maths.where(x == 0, 0.0, y))
