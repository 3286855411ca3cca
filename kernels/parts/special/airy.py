"""The Airy function Ai. Sources: DLMF 9.7; rational functions fitted by tests/peer/special_fits.py."""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.special.airy_fits import AI_FAR, AI_LEFT, AI_P, AI_Q, AI_RIGHT


@triton.jit
def _left(x):
    return ((x + 2.3381073474884033) + 6.297136371817669e-08) * maths.ratio(x + 1.5, AI_LEFT)


@triton.jit
def _right(x):
    return maths.ratio(x, AI_RIGHT)


@triton.jit
def _middle(x):
    return maths.choose(x < 0, _left, _right, x)


# exp(-z) / x^(1/4) times a rational function of 1 / z, z = 2/3 x^(3/2) (DLMF 9.7.5)
@triton.jit
def _far(x):
    root = maths.sqrt(x)
    z = 0.6666666666666666 * x * root
    y = maths.ratio(maths.div(maths.ones(z), z), AI_FAR)
    half = maths.exp(-0.5 * z)
    return half * (half * maths.div(y, maths.sqrt(root)))


# (P cos(z - pi/4) + Q sin(z - pi/4)) / (sqrt(pi) |x|^(1/4)) (DLMF 9.7.9)
@triton.jit
def _waves(x):
    t = -x
    root = maths.sqrt(t)
    z = 0.6666666666666666 * t * root
    u = maths.div(maths.ones(z), z)
    w = u * u
    s, c = maths.sin(z), maths.cos(z)
    y = maths.ratio(w, AI_P) * (c + s) + u * maths.ratio(w, AI_Q) * (s - c)
    return 0.3989422804014327 * maths.div(y, maths.sqrt(root))


@triton.jit
def _not_waves(x):
    return maths.choose(x > 2.0, _far, _middle, x)


@triton.jit
def airy(x):
    """Ai(x)."""
    return maths.choose(x < -3.0, _waves, _not_waves, x)
