"""Arithmetic: add, sub, mul, div, neg, abs, lerp, square, sqrt, rsqrt, reciprocal."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.cpu.blocks import beside_gaps
from tritensor.kernels.parts.elementwise import elementwise, unchanged
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import FLOATS

NUMBERS = ("uint", "int", "float", "complex")
ANY = ("bool", *NUMBERS)
TYPES = (*FLOATS, "int32", "int64", "uint8")


# y = a + b
@triton.jit
def _add(a, b):
    return a + b


# y = a - b
@triton.jit
def _sub(a, b):
    return a - b


@triton.jit
def _negated(g):
    return maths.neg(g)


# y = a * b
@triton.jit
def _mul(a, b):
    return a * b


@triton.jit
def _mul_a(g, b):
    return g * b


@triton.jit
def _mul_b(g, a):
    return g * a


# y = a / b; dy/da = 1 / b, dy/db = -a / b^2
@triton.jit
def _div_a(g, b):
    return maths.div(g, maths.safe(g, b))


@triton.jit
def _div_b(g, a, b):
    d = maths.safe(g, b)
    return maths.div(maths.chain_div(g, -a, d), d)


# d|x|/dx: the slope at 0 and at NaN is 0
@triton.jit
def _abs_grad(g, x):
    return g * maths.sign(x)


# y = x^2
@triton.jit
def square(x):
    return x * x


@triton.jit
def square_grad(g, x):
    return g * (2.0 * x)


# d sqrt(x)/dx = 1 / (2 sqrt(x))
@triton.jit
def _sqrt_grad(g, y):
    return maths.div(0.5 * g, maths.safe(g, y))


# d x^(-1/2)/dx = -y^3 / 2
@triton.jit
def _rsqrt_grad(g, y):
    t = maths.tame(g, y)
    return -0.5 * g * (t * t * t)


@triton.jit
def reciprocal(x):
    return maths.div(maths.ones(x), x)


# d(1/x)/dx = -y^2
@triton.jit
def _reciprocal_grad(g, y):
    t = maths.tame(g, y)
    return -g * (t * t)


# y = a + w (b - a), from the nearer end: exactly a where w is 0, b where it is 1; dy/da = 1 - w, dy/db = w, dy/dw = b - a
@triton.jit
def _lerp(a, b, w):
    back = a - b
    return maths.where(maths.abs(w) < 0.5, a - w * back, b + (1.0 - w) * back)


@triton.jit
def _lerp_a(g, w):
    return g * (1.0 - w)


@triton.jit
def _lerp_b(g, w):
    return g * w


@triton.jit
def _lerp_w(g, a, b):
    return g * (b - a)


def _lerp_reference(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.where(np.abs(w) < 0.5, a + w * (b - a), b - (1 - w) * (b - a))


_MINUS = (unchanged, _negated)
_NONZERO = Domain(-2.0, 2.0, (0.0,))

elementwise("add", _add, (unchanged, unchanged), np.add, promote="same", kinds=ANY, dtypes=TYPES)
elementwise("sub", _sub, _MINUS, np.subtract, promote="same", kinds=NUMBERS, one_rounding=True, dtypes=TYPES)
elementwise("mul", _mul, (_mul_a, _mul_b), np.multiply, promote="same", kinds=ANY, one_rounding=True, dtypes=TYPES)
elementwise("div", maths.div, (_div_a, _div_b), np.true_divide, domain=(Domain(-2.0, 2.0), _NONZERO))
elementwise(
    "neg", maths.neg, _negated, np.negative, cpu=beside_gaps(np.negative), promote="same", kinds=NUMBERS, one_rounding=True, dtypes=TYPES
)
elementwise(
    "abs", maths.abs, _abs_grad, np.abs, promote="same", result="real", kinds=ANY, domain=_NONZERO, dtypes=TYPES, holomorphic=False,
)  # fmt: skip
elementwise(
    "lerp", _lerp, (_lerp_a, _lerp_b, _lerp_w), _lerp_reference, kinds=("float",),
    domain=(Domain(0.5, 1.0), Domain(2.0, 3.0), Domain(0.05, 0.95, (0.5,))), scalars=False,  # where nothing cancels
)  # fmt: skip
elementwise("square", square, square_grad, np.square, promote="same", kinds=NUMBERS, dtypes=TYPES)
elementwise("sqrt", maths.sqrt, _sqrt_grad, np.sqrt, domain=Domain(0.1, 4.0))
elementwise("rsqrt", maths.rsqrt, _rsqrt_grad, lambda x: 1 / np.sqrt(x), domain=Domain(0.1, 4.0))
elementwise("reciprocal", reciprocal, _reciprocal_grad, np.reciprocal, domain=Domain(0.4, 3.0), native=FLOATS)
