"""Formulas of activations that elementwise kernels and the epilogues of products share, each with its gradient, and variants for results of 16 bits.

A gradient is of g and x, or of g and the result y.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.half_precision import functions as half
from tritensor.kernels.parts.half_precision.variants import register_half_variant


# y = 1 / (1 + exp(-x)); dy/dx = y (1 - y)
@triton.jit
def sigmoid(x):
    return maths.div(maths.ones(x), 1.0 + maths.exp(-x))


@triton.jit
def sigmoid_16(x):
    return half.reciprocal(1.0 + half.exp(-x))


@triton.jit
def sigmoid_grad(g, y):
    return g * (y * (1.0 - y))


# y = max(x, 0); the gradient at 0 is 0, a NaN stays
@triton.jit
def relu(x):
    return maths.where(x <= 0, maths.zeros(x), x)


@triton.jit
def relu_grad(g, y):
    return maths.where(y <= 0, maths.zeros(g), g)


# y = x sigmoid(x); dy/dx = s (1 + x (1 - s))
@triton.jit
def silu(x):
    return maths.div(x, 1.0 + maths.exp(-x))


@triton.jit
def silu_16(x):
    return x * sigmoid_16(x)


@triton.jit
def silu_grad(g, x):
    s = maths.sigmoid(x)
    return g * (s * (1.0 + x * (1.0 - s)))


@triton.jit
def silu_grad_16(g, x):
    s = sigmoid_16(x)
    return g * (s * (1.0 + x * (1.0 - s)))


# y = x P(X <= x) for a standard normal X; dy/dx = P + x p(x). Below 0 P comes from erfc: 1 + erf would cancel.
@triton.jit
def gelu(x):
    return maths.maximum(x, -40.0) * maths.normal_cdf(x)  # at minus infinity 0, not infinity times 0


@triton.jit
def gelu_grad(g, x):
    return g * (maths.normal_cdf(x) + x * (0.3989422804014327 * maths.exp(-0.5 * x * x)))


# P(X > a) e^(a^2 / 2) = t (c0 t^5 + ... + c5), t = 1 / (1 + 0.31 a), within 2^-17 of itself for a in [0, 13.5]: a fit by iterated least squares
_TAIL = maths.Coefficients(
    (-0.07392509397858711, 0.1804377507452505, 0.01575991842201362, 0.13342091367324732, 0.12044376365818565, 0.12386043570951376)
)


@triton.jit
def _tail_16(a):
    """P(X > a) and e^(-a^2 / 2) of a normal X, a >= 0."""
    t = half.reciprocal(1.0 + 0.31 * a)
    bell = half.exp2(a * a * -0.7213475204444817)
    return t * maths.horner(t, _TAIL) * bell, bell


@triton.jit
def gelu_16(x):
    a = tl.where(tl.abs(x) > 40.0, 40.0, tl.abs(x))  # from there on the tail is 0, and infinity times it nothing; a NaN stays
    tail, _ = _tail_16(a)
    return tl.maximum(x, 0.0) - a * tail


@triton.jit
def gelu_grad_16(g, x):
    tail, bell = _tail_16(tl.abs(x))
    return g * (tl.where(x > 0, 1.0 - tail, tail) + x * (0.3989422804014327 * bell))


# y = x (1 + tanh(u)) / 2 = x sigmoid(2u), 2u = x (c + d x^2)
@triton.jit
def gelu_tanh(x):
    return maths.div(x, 1.0 + maths.exp(-x * (1.5957691216057308 + 0.07135481627260025 * x * x)))


@triton.jit
def gelu_tanh_grad(g, x):
    s = maths.div(maths.ones(x), 1.0 + maths.exp(-x * (1.5957691216057308 + 0.07135481627260025 * x * x)))
    return g * (s + x * (s * (1.0 - s)) * (1.5957691216057308 + 0.21406444881780074 * x * x))


@triton.jit
def gelu_tanh_16(x):
    return x * sigmoid_16(x * (1.5957691216057308 + 0.07135481627260025 * x * x))


@triton.jit
def gelu_tanh_grad_16(g, x):
    s = sigmoid_16(x * (1.5957691216057308 + 0.07135481627260025 * x * x))
    return g * (s + x * (s * (1.0 - s)) * (1.5957691216057308 + 0.21406444881780074 * x * x))


@triton.jit
def hyperbolic_tangent(x):
    return maths.tanh(x)


# of small x the series, else 1 - 2 / (1 + e^2x), both within 2^-16
@triton.jit
def tanh_16(x):
    s = x * x
    return tl.where(
        s < 0.0625, x * (1.0 + s * (s * 0.13333334 - 0.33333334)), 1.0 - 2.0 * half.reciprocal(1.0 + half.exp2(x * 2.8853900817779268))
    )


@triton.jit
def tanh_grad(g, y):
    return g * (1.0 - y * y)


for _formula, _variant in (
    (sigmoid, sigmoid_16), (silu, silu_16), (silu_grad, silu_grad_16), (gelu, gelu_16), (gelu_grad, gelu_grad_16),
    (gelu_tanh, gelu_tanh_16), (gelu_tanh_grad, gelu_tanh_grad_16), (hyperbolic_tangent, tanh_16),
):  # fmt: skip
    register_half_variant(_formula, _variant)
