"""Transcendental functions: exponentials, logarithms, trigonometry, hyperbolic functions, the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu import special
from tritensor.kernels.parts.cpu.blocks import of_ufunc
from tritensor.kernels.parts.cpu.complex_functions import complex_log1p
from tritensor.kernels.parts.elementwise import elementwise, flat
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.half_precision import functions as half
from tritensor.kernels.parts.half_precision.variants import register_half_variant
from tritensor.kernels.parts.pointwise_samples import Domain, every_pair
from tritensor.ops.table import FLOATS, ops


@triton.jit
def _exp_grad(g, y):
    return g * y


@triton.jit
def _exp2_grad(g, y):
    return g * (y * 0.6931471805599453)


@triton.jit
def _expm1_grad(g, y):
    return g * (y + 1.0)


@triton.jit
def _log_grad(g, x):
    return maths.div(g, maths.safe(g, x))


@triton.jit
def _log2_grad(g, x):
    return maths.div(g, maths.safe(g, x) * 0.6931471805599453)


@triton.jit
def _log10_grad(g, x):
    return maths.div(g, maths.safe(g, x) * 2.302585092994046)


@triton.jit
def _log1p_grad(g, x):
    return maths.div(g, maths.safe(g, x + 1.0))


@triton.jit
def _sin_grad(g, x):
    return g * maths.cos(x)


@triton.jit
def _cos_grad(g, x):
    return -g * maths.sin(x)


@triton.jit
def _tan_grad(g, y):
    return g * (1.0 + y * y)


# 1 - x^2: a function of its own, so that its slope is -2x; of a product the slope would be a difference, inf - inf times 1/0 at 1
@triton.jit
def _one_minus_square_grad(g, x):
    return g * (-2.0 * x)


# d asin(x)/dx = 1 / sqrt(1 - x^2)
@triton.jit
def _asin_grad(g, x):
    return maths.div(g, maths.safe(g, maths.sqrt(maths.one_minus_square(x))))


@triton.jit
def _acos_grad(g, x):
    return maths.div(-g, maths.safe(g, maths.sqrt(maths.one_minus_square(x))))


@triton.jit
def _atan_grad(g, x):
    return maths.div(g, 1.0 + x * x)


@triton.jit
def _sinh_grad(g, x):
    return g * maths.cosh(x)


@triton.jit
def _cosh_grad(g, x):
    return g * maths.sinh(x)


@triton.jit
def _asinh_grad(g, x):
    return maths.div(g, maths.sqrt(x * x + 1.0))


@triton.jit
def _acosh_grad(g, x):
    return maths.div(g, maths.safe(g, maths.sqrt(0.0 - maths.one_minus_square(x))))  # 0 - 0 is +0 where -0 would turn the infinity round


_acosh_real = backends.translate(_acosh_grad, backends.on_tensors)


def _acosh_rule(g: Any, x: Any) -> Any:
    """g / sqrt(x^2 - 1); of complex numbers two roots, whose product is on the branch that acosh is on."""
    return _acosh_real(g, x) if x._array.dtype.kind != "c" else ops.div(g, ops.mul(ops.sqrt(x - 1.0), ops.sqrt(x + 1.0)))


@triton.jit
def _atanh_grad(g, x):
    return maths.div(g, maths.safe(g, maths.one_minus_square(x)))


# y = log(x / (1 - x)), of l, the lesser of x and 1 - x: log1p(-l) - log(l), around 1/2, where they cancel, log1p((1 - 2 l) / l), with the sign
# of x - 1/2; dy/dx = 1 / (x (1 - x)), NaN where y is
@triton.jit
def _logit(x):
    least = maths.minimum(x, 1.0 - x)
    small = least < 0.25
    y = maths.log1p(maths.where(small, -least, maths.div(1.0 - 2.0 * least, maths.where(small, 1.0, least))))
    y = maths.where(small, y - maths.log(least), y)
    return maths.where(x < 0.5, -y, y)


@triton.jit
def _logit_grad(g, x):
    return maths.where(maths.either(x < 0, x > 1), float("nan"), maths.div(g, maths.safe(g, x * (1.0 - x))))


# d erf(x)/dx = 2 / sqrt(pi) exp(-x^2)
@triton.jit
def _erf_grad(g, x):
    return g * (1.1283791670955126 * maths.exp(-x * x))


@triton.jit
def _erfc_grad(g, x):
    return g * (-1.1283791670955126 * maths.exp(-x * x))


# d atan2(a, b) = (b da - a db) / (a^2 + b^2). At the origin 0, as PyTorch has it; through the distance h, because squares overflow and vanish.
@triton.jit
def _atan2_a(g, a, b):
    h = maths.hypot(a, b)
    d = maths.where(h == 0, float("inf"), h)
    return maths.div(g * maths.div(b, d), d)


@triton.jit
def _atan2_b(g, a, b):
    h = maths.hypot(a, b)
    d = maths.where(h == 0, float("inf"), h)
    return maths.div(-g * maths.div(a, d), d)


# the angle of a real number as a complex one: 0, pi below 0; -0 counts as 0
@triton.jit
def _real_angle(x):
    return maths.where(x < 0, 3.141592653589793, maths.where(x == x, 0.0, x))


# y = sqrt(a^2 + b^2); dy/da = a / y, 0 at the origin
@triton.jit
def _hypot_a(g, y, a):
    return maths.where(y == 0, maths.zeros(g), g * maths.div(a, y))


@triton.jit
def _hypot_b(g, y, b):
    return maths.where(y == 0, maths.zeros(g), g * maths.div(b, y))


# y = log(e^a + e^b) = max + log1p(e^(min - max)), without inf - inf where both are the same infinity; dy/da = 1 / (1 + e^(b - a))
@triton.jit
def _logaddexp(a, b):
    gap = maths.where(a == b, 0.0, -maths.abs(a - b))
    return maths.maximum(a, b) + maths.log1p(maths.exp(gap))


@triton.jit
def _logaddexp_a(g, a, b):
    return maths.div(g, 1.0 + maths.exp(b - a))


@triton.jit
def _logaddexp_b(g, a, b):
    return maths.div(g, 1.0 + maths.exp(a - b))


# y = a log(b), 0 where a is 0 and b no NaN; dy/da = log(b), 0 where a is 0 and b not positive; dy/db = a / b
@triton.jit
def _xlogy(a, b):
    return maths.where((a == 0) & (b == b), 0.0, a * maths.log(b))


@triton.jit
def _xlogy_a(g, a, b):
    return maths.where(maths.both(a == 0, b <= 0), maths.zeros(g), maths.chain(g, maths.log(b)))


@triton.jit
def _xlogy_b(g, a, b):
    return maths.div(g * a, maths.safe(g, b))


def _log1p_reference(x: np.ndarray) -> np.ndarray:
    """log(1 + x)."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    # the real part is log(|1 + x|^2) / 2, where 1 is taken off before anything is rounded
    a, b = x.real, x.imag
    return np.log1p(a * (2 + a) + b * b) / 2 + 1j * np.arctan2(b, 1 + a)


_real_log1p = of_ufunc(np.log1p, ("x",))


def _log1p_cpu(x: np.ndarray, *, out: np.ndarray | None = None) -> Any:
    if x.dtype.kind != "c":
        return _real_log1p(x, out=out)
    y = complex_log1p(x)
    if out is None:
        return y
    out[...] = y
    return out


_log1p_cpu.bare = np.log1p  # type: ignore[attr-defined]


def _logaddexp_reference(a: Any, b: Any) -> np.ndarray:
    """log(e^a + e^b); of complex numbers from the one with the larger real part."""
    if not np.iscomplexobj(a):
        return np.logaddexp(a, b)
    first = np.real(a) >= np.real(b)
    return np.where(first, a, b) + np.log(1 + np.exp(np.where(first, b - a, a - b)))


def _logaddexp_cpu(a: Any, b: Any) -> np.ndarray:
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        return np.logaddexp(a, b)
    first = np.real(a) >= np.real(b)
    return np.where(first, a, b) + complex_log1p(np.exp(np.where(first, b - a, a - b)))


_corners = every_pair(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
_TURN = Domain(-3.0, 3.0)
_INSIDE = Domain(-0.9, 0.9)
_POSITIVE = Domain(0.1, 4.0)

register_half_variant(maths.exp, half.exp)
elementwise("exp", maths.exp, _exp_grad, np.exp)
elementwise("exp2", maths.exp2, _exp2_grad, np.exp2)
elementwise("expm1", maths.expm1, _expm1_grad, np.expm1)
elementwise("log", maths.log, _log_grad, np.log, domain=_POSITIVE)
elementwise("log2", maths.log2, _log2_grad, np.log2, domain=_POSITIVE)
elementwise("log10", maths.log10, _log10_grad, np.log10, domain=_POSITIVE)
elementwise("log1p", maths.log1p, _log1p_grad, _log1p_reference, cpu=_log1p_cpu, domain=Domain(-0.8, 4.0))
elementwise("sin", maths.sin, _sin_grad, np.sin, domain=_TURN, native=FLOATS)
elementwise("cos", maths.cos, _cos_grad, np.cos, domain=_TURN, native=FLOATS)
elementwise("tan", maths.tan, _tan_grad, np.tan, domain=Domain(-1.2, 1.2))
elementwise("asin", maths.asin, _asin_grad, np.arcsin, domain=_INSIDE)
elementwise("acos", maths.acos, _acos_grad, np.arccos, domain=_INSIDE)
elementwise("atan", maths.atan, _atan_grad, np.arctan, domain=_TURN)
elementwise("sinh", maths.sinh, _sinh_grad, np.sinh)
elementwise("cosh", maths.cosh, _cosh_grad, np.cosh)
elementwise("tanh", activations.hyperbolic_tangent, activations.tanh_grad, np.tanh)
elementwise("asinh", maths.asinh, _asinh_grad, np.arcsinh)
elementwise("acosh", maths.acosh, _acosh_grad, np.arccosh, domain=Domain(1.2, 4.0), rule=(_acosh_rule,))
elementwise("atanh", maths.atanh, _atanh_grad, np.arctanh, domain=_INSIDE)
elementwise(
    "one_minus_square", maths.one_minus_square, _one_minus_square_grad, lambda x: (1 - x) * (1 + x), doc="1 - x^2, to the last digit near 1 and -1, too."
)  # fmt: skip
elementwise(
    "logit", _logit, _logit_grad, lambda x: np.log(x) - np.log1p(-x), cpu=backends.in_numpy(_logit), domain=Domain(0.1, 0.9), kinds=("float",)
)  # fmt: skip
elementwise("erf", maths.erf, _erf_grad, np.vectorize(math.erf, otypes=[np.float64]), cpu=special.erf, kinds=("float",))
elementwise("erfc", maths.erfc, _erfc_grad, np.vectorize(math.erfc, otypes=[np.float64]), cpu=special.erfc, kinds=("float",))
_APART = (Domain(0.3, 2.0), Domain(-2.0, 2.0))
elementwise("atan2", maths.atan2, (_atan2_a, _atan2_b), np.arctan2, domain=_APART, kinds=("float",), extra=_corners)
elementwise(
    "real_angle", _real_angle, flat, lambda x: np.where(x < 0, np.pi, np.where(x == x, 0, x)), kinds=("float",),
    doc="The angle of real numbers in the complex plane: pi below 0, else 0; NaN stays.",
)  # fmt: skip
elementwise("hypot", maths.hypot, (_hypot_a, _hypot_b), np.hypot, domain=_APART, kinds=("float",), extra=_corners, native=FLOATS)
# Near its zeros the larger argument and the logarithm cancel.
elementwise(
    "logaddexp", _logaddexp, (_logaddexp_a, _logaddexp_b), _logaddexp_reference, cpu=_logaddexp_cpu, kinds=("float", "complex"), extra=_corners,
    condition="measured",
)  # fmt: skip
elementwise(
    "xlogy", _xlogy, (_xlogy_a, _xlogy_b), lambda a, b: np.where((a == 0) & (b == b), 0, a * np.log(b)), domain=(Domain(-2.0, 2.0), _POSITIVE),
    kinds=("float",), extra=_corners, doc="a * log(b), 0 where a is 0 unless b is NaN.",
)  # fmt: skip
