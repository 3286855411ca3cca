"""The Bessel functions J0, J1, Y0, Y1 and the spherical j0.

Sources: DLMF 10.2, 10.8, 10.17, 10.49; rational functions fitted by tests/peer/special_fits.py.
"""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.special.bessel_fits import J0_NEAR, J1_NEAR, P0, P1, Q0, Q1, Y0_MIDDLE, Y0_NEAR, Y1_MIDDLE, Y1_NEAR


# x^2 - z^2 for a zero z = high + low: its first digits as a float32, the rest, and the sum of x and z
@triton.jit
def _gap(x, high, low):
    return ((x - high) - low) * (x + (high + low))


# up to 5: the zeros times a rational function of x^2; beyond: Hankel's expansion, (P cos c - Q sin c) sqrt(2 / (pi x)), c = x - (2 v + 1) pi / 4 (DLMF 10.17.3)
@triton.jit
def _j0_near(x):
    y = maths.ratio(x * x, J0_NEAR)
    return y * _gap(x, 2.404825448989868, 1.0870590460455913e-07) * _gap(x, 5.520078182220459, -7.19341483347784e-08)


@triton.jit
def _scaled(x, y):
    """y / sqrt(pi x)."""
    return y * maths.div(maths.ones(x), maths.sqrt(x)) * 0.5641895835477563


@triton.jit
def _j0_far(x):
    u = maths.div(maths.ones(x), x)
    w = u * u
    s, c = maths.sin(x), maths.cos(x)
    return _scaled(x, maths.ratio(w, P0) * (c + s) - u * maths.ratio(w, Q0) * (s - c))


@triton.jit
def j0(x):
    """J0(x)."""
    z = maths.abs(x)
    return maths.choose(z < 5.0, _j0_near, _j0_far, z)


@triton.jit
def _j1_near(x):
    y = maths.ratio(x * x, J1_NEAR)
    return x * y * _gap(x, 3.8317060470581055, -7.685059315313556e-08) * _gap(x, 7.015586853027344, -1.8321172499646294e-07)


@triton.jit
def _j1_far(x):
    u = maths.div(maths.ones(x), x)
    w = u * u
    s, c = maths.sin(x), maths.cos(x)
    return _scaled(x, maths.ratio(w, P1) * (s - c) + u * maths.ratio(w, Q1) * (s + c))


@triton.jit
def j1(x):
    """J1(x)."""
    z = maths.abs(x)
    y = maths.choose(z < 5.0, _j1_near, _j1_far, z)
    return maths.where(x < 0, -y, y)


@triton.jit
def _from_zero(x, y):
    """y, but -infinity at 0 and NaN below."""
    return maths.where(x == 0, float("-inf"), maths.where(x < 0, float("nan"), y))


@triton.jit
def _y0_near(x):
    return maths.ratio(x * x, Y0_NEAR) + 0.6366197723675814 * maths.log(x) * _j0_near(x)


@triton.jit
def _y0_middle(x):
    return ((x - 3.9576783180236816) - 1.0129117622775068e-07) * maths.ratio(x - 3.5, Y0_MIDDLE)


@triton.jit
def _y0_far(x):
    u = maths.div(maths.ones(x), x)
    w = u * u
    s, c = maths.sin(x), maths.cos(x)
    return _scaled(x, maths.ratio(w, P0) * (s - c) + u * maths.ratio(w, Q0) * (c + s))


@triton.jit
def _y0_beyond(x):
    return maths.choose(x < 5.0, _y0_middle, _y0_far, x)


@triton.jit
def y0(x):
    """Y0(x)."""
    return _from_zero(x, maths.choose(x < 2.0, _y0_near, _y0_beyond, x))


@triton.jit
def _y1_near(x):
    y = x * maths.ratio(x * x, Y1_NEAR)
    return y + 0.6366197723675814 * (maths.log(x) * _j1_near(x) - maths.div(maths.ones(x), x))


@triton.jit
def _y1_middle(x):
    return ((x - 2.197141408920288) + 8.288927105078847e-08) * maths.ratio(x - 3.5, Y1_MIDDLE)


@triton.jit
def _y1_far(x):
    u = maths.div(maths.ones(x), x)
    w = u * u
    s, c = maths.sin(x), maths.cos(x)
    return _scaled(x, u * maths.ratio(w, Q1) * (s - c) - maths.ratio(w, P1) * (s + c))


@triton.jit
def _y1_beyond(x):
    return maths.choose(x < 5.0, _y1_middle, _y1_far, x)


@triton.jit
def y1(x):
    """Y1(x)."""
    return _from_zero(x, maths.choose(x < 2.0, _y1_near, _y1_beyond, x))


# sin(x) / x, 1 at 0 and 0 at infinity
@triton.jit
def spherical_j0(x):
    """The spherical Bessel function j0(x)."""
    y = maths.div(maths.sin(x), maths.where(x == 0, 1.0, x))
    return maths.where(x == 0, 1.0, maths.where(maths.abs(x) == float("inf"), 0.0, y))
