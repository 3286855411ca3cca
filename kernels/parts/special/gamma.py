"""The gamma function's logarithm, its derivatives, and the Hurwitz zeta function.

Sources: NIST Digital Library of Mathematical Functions (DLMF), chapters 5 and 25; rational functions fitted by tests/peer/special_fits.py.
"""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.special.gamma_fits import (
    DIGAMMA_FAR,
    DIGAMMA_NEAR,
    LGAMMA_MIDDLE,
    LGAMMA_NEAR,
    STIRLING,
    TRIGAMMA_FAR,
    TRIGAMMA_NEAR,
)


# log |gamma(x)|: near its zeros at 1 and 2 as (x - 1)(x - 2) times a rational function
@triton.jit
def _lgamma_near(x):
    return (x - 1.0) * (x - 2.0) * maths.ratio(x, LGAMMA_NEAR)


@triton.jit
def lgamma1p(x):
    """log gamma(1 + x) of 0 <= x < 2.5, with its digits near 0."""
    return x * (x - 1.0) * maths.ratio(x + 1.0, LGAMMA_NEAR)


@triton.jit
def _lgamma_middle(x):
    return (x - 1.0) * (x - 2.0) * maths.ratio(x, LGAMMA_MIDDLE)


# Stirling's formula, DLMF 5.11.1
@triton.jit
def _lgamma_far(x):
    u = maths.div(maths.ones(x), x)
    return (x - 0.5) * (maths.log(x) - 1.0) + (u * maths.ratio(u * u, STIRLING) + 0.4189385332046727)


@triton.jit
def _lgamma_above(x):
    return maths.choose(x < 8.0, _lgamma_middle, _lgamma_far, x)


@triton.jit
def _lgamma_right(x):
    return maths.choose(x < 3.5, _lgamma_near, _lgamma_above, x)


# gamma(x) gamma(1 - x) = pi / sin(pi x), DLMF 5.5.3
@triton.jit
def _lgamma_left(x):
    r = maths.abs(x - maths.rint(x))  # whose product with pi has few digits where r is denormal
    s = maths.where(r < 1e-10, r, maths.abs(maths.sin(r * 3.141592653589793)) * 0.3183098861837907)
    y = -maths.log(s) - _lgamma_right(1.0 - x)
    return maths.where((s == 0) | (x == float("-inf")), float("inf"), y)


@triton.jit
def lgamma(x):
    """log |gamma(x)|; infinite at 0, -1, -2, ..."""
    return maths.choose(x < 0.5, _lgamma_left, _lgamma_right, x)


# digamma(x): (x - its zero) times a rational function; log x - 1 / (2 x) - ..., DLMF 5.11.2
@triton.jit
def _digamma_near(x):
    y = maths.ratio(x, DIGAMMA_NEAR)
    return ((x - 1.4616321325302124) - 1.2438149938918909e-08) * y


@triton.jit
def _digamma_far(x):
    u = maths.div(maths.ones(x), x)
    w = u * u
    return maths.log(x) - (0.5 * u + w * maths.ratio(w, DIGAMMA_FAR))


@triton.jit
def _digamma_right(x):
    return maths.choose(x < 4.0, _digamma_near, _digamma_far, x)


# digamma(1 - x) - digamma(x) = pi / tan(pi x), DLMF 5.5.4
@triton.jit
def _digamma_left(x):
    r = x - maths.rint(x)
    tangent = maths.tan(maths.where(x == 0, x, r) * 3.141592653589793)
    y = _digamma_right(1.0 - x) - maths.div(maths.ones(x) * 3.141592653589793, tangent)
    return maths.where((r == 0) & (x != 0), float("nan"), y)


@triton.jit
def digamma(x):
    """The derivative of log gamma(x); NaN at -1, -2, ..., infinite at 0 with the sign that 0 has not."""
    return maths.choose(x < 0.5, _digamma_left, _digamma_right, x)


# trigamma(x): 1 / x + 1 / (2 x^2) + ..., DLMF 5.15.8
@triton.jit
def _trigamma_near(x):
    return maths.div(maths.ratio(x, TRIGAMMA_NEAR), x * x)


@triton.jit
def _trigamma_far(x):
    u = maths.div(maths.ones(x), x)
    w = u * u
    return u * (1.0 + (0.5 * u + w * maths.ratio(w, TRIGAMMA_FAR)))


@triton.jit
def _trigamma_right(x):
    return maths.choose(x < 4.0, _trigamma_near, _trigamma_far, x)


# trigamma(1 - x) + trigamma(x) = (pi / sin(pi x))^2, DLMF 5.15.6
@triton.jit
def _trigamma_left(x):
    s = maths.sin((x - maths.rint(x)) * 3.141592653589793)
    q = maths.div(maths.ones(x) * 3.141592653589793, s)
    return q * q - _trigamma_right(1.0 - x)


@triton.jit
def trigamma(x):
    """The second derivative of log gamma(x); infinite at 0, -1, -2, ..."""
    return maths.choose(x < 0.5, _trigamma_left, _trigamma_right, x)


@triton.jit
def _term(y, b, s, k, v):
    """One step inwards of the nested sum b1 + (s + 1)(s + 2) v (b2 + (s + 3)(s + 4) v (b3 + ...))."""
    return (s + k) * (s + (k + 1.0)) * v * y + b


# sum of (q + k)^-s over k >= 0: ten terms, and the rest by Euler and Maclaurin, DLMF 25.11.5 with its B2j / (2j)!; s > 1, q > 0
@triton.jit
def _zeta_right(s, q):
    total, last = maths.zeros(s + q), maths.zeros(s + q)
    for k in range(11):
        total = total + last
        last = maths.pow(q + k, -s)
    w = q + 10.0
    v = maths.div(maths.ones(w), w * w)
    y = _term(s * v * 0.0 + 8.586062056277845e-15, -3.3896802963225827e-13, s, 15.0, v)
    y = _term(y, 1.3382536530684679e-11, s, 13.0, v)
    y = _term(y, -5.284190138687493e-10, s, 11.0, v)
    y = _term(y, 2.08767569878681e-08, s, 9.0, v)
    y = _term(y, -8.267195767195768e-07, s, 7.0, v)
    y = _term(y, 3.306878306878307e-05, s, 5.0, v)
    y = _term(y, -0.001388888888888889, s, 3.0, v)
    y = _term(y, 0.08333333333333333, s, 1.0, v)
    rest = maths.div(w, s - 1.0) + (0.5 + maths.div(s, w) * y)
    return maths.where(last == 0, total, total + last * rest)


# For q < 0 the sum over all whole k, which depends on q's fraction f alone: zeta(s, q) = zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q))
@triton.jit
def zeta(s, q):
    """The sum of (q + k)^-s over k = 0, 1, ...: infinite at s = 1 and at q = 0, -1, ...; NaN for s < 1, and for q < 0 where s is not whole."""
    left = q <= 0
    f = q - maths.floor(q)
    y = maths.zeros(s + q)
    for k in range(3 if maths.any(left) else 1):
        mirrored = 1.0 - f
        part = _zeta_right(s, maths.where(k == 0, maths.where(left, f, q), maths.where(k == 1, mirrored, maths.maximum(1.0 - q, mirrored))))
        even = 0.5 * s == maths.floor(0.5 * s)
        y = maths.where(k == 0, part, maths.where(left, maths.where(even == (k == 1), y + part, y - part), y))
    y = maths.where(left & (s != maths.floor(s)), float("nan"), y)
    y = maths.where(left & (f == 0), float("inf"), y)
    y = maths.where(s > 1.0, y, float("nan"))
    return maths.where((s == 1.0) & (q == q), float("inf"), y)
