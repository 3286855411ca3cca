"""Transcendental functions: exponentials, logarithms, powers, trigonometry, the error function."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels import maths, special
from tritensor.kernels.elementwise import elementwise
from tritensor.kernels.pointwise_samples import Domain


@triton.jit
def _exp(x):
    return maths.exp(x)


@triton.jit
def _exp_grad(g, y):
    return g * y


@triton.jit
def _exp2(x):
    return maths.exp2(x)


@triton.jit
def _exp2_grad(g, y):
    return g * (y * 0.6931471805599453)


@triton.jit
def _expm1(x):
    return maths.expm1(x)


@triton.jit
def _expm1_grad(g, y):
    return g * (y + 1.0)


@triton.jit
def _log(x):
    return maths.log(x)


@triton.jit
def _log_grad(g, x):
    return maths.div(g, maths.safe(g, x))


@triton.jit
def _log2(x):
    return maths.log2(x)


@triton.jit
def _log2_grad(g, x):
    return maths.div(g, maths.safe(g, x) * 0.6931471805599453)


@triton.jit
def _log10(x):
    return maths.log10(x)


@triton.jit
def _log10_grad(g, x):
    return maths.div(g, maths.safe(g, x) * 2.302585092994046)


@triton.jit
def _log1p(x):
    return maths.log1p(x)


@triton.jit
def _log1p_grad(g, x):
    return maths.div(g, maths.safe(g, x + 1.0))


@triton.jit
def _sin(x):
    return maths.sin(x)


@triton.jit
def _sin_grad(g, x):
    return g * maths.cos(x)


@triton.jit
def _cos(x):
    return maths.cos(x)


@triton.jit
def _cos_grad(g, x):
    return -g * maths.sin(x)


@triton.jit
def _tan(x):
    return maths.tan(x)


@triton.jit
def _tan_grad(g, y):
    return g * (1.0 + y * y)


# d asin(x)/dx = 1 / sqrt(1 - x^2)
@triton.jit
def _asin(x):
    return maths.asin(x)


@triton.jit
def _asin_grad(g, x):
    return maths.div(g, maths.safe(g, maths.sqrt((1.0 - x) * (1.0 + x))))


@triton.jit
def _acos(x):
    return maths.acos(x)


@triton.jit
def _acos_grad(g, x):
    return maths.div(-g, maths.safe(g, maths.sqrt((1.0 - x) * (1.0 + x))))


@triton.jit
def _atan(x):
    return maths.atan(x)


@triton.jit
def _atan_grad(g, x):
    return maths.div(g, 1.0 + x * x)


@triton.jit
def _sinh(x):
    return maths.sinh(x)


@triton.jit
def _sinh_grad(g, x):
    return g * maths.cosh(x)


@triton.jit
def _cosh(x):
    return maths.cosh(x)


@triton.jit
def _cosh_grad(g, x):
    return g * maths.sinh(x)


@triton.jit
def _tanh(x):
    return maths.tanh(x)


@triton.jit
def _tanh_grad(g, y):
    return g * (1.0 - y * y)


@triton.jit
def _asinh(x):
    return maths.asinh(x)


@triton.jit
def _asinh_grad(g, x):
    return maths.div(g, maths.sqrt(x * x + 1.0))


@triton.jit
def _acosh(x):
    return maths.acosh(x)


@triton.jit
def _acosh_grad(g, x):
    return maths.div(g, maths.safe(g, maths.sqrt((x - 1.0) * (x + 1.0))))


@triton.jit
def _atanh(x):
    return maths.atanh(x)


@triton.jit
def _atanh_grad(g, x):
    return maths.div(g, maths.safe(g, (1.0 - x) * (1.0 + x)))


# d erf(x)/dx = 2 / sqrt(pi) exp(-x^2)
@triton.jit
def _erf(x):
    return maths.erf(x)


@triton.jit
def _erf_grad(g, x):
    return g * (1.1283791670955126 * maths.exp(-x * x))


@triton.jit
def _erfc(x):
    return maths.erfc(x)


@triton.jit
def _erfc_grad(g, x):
    return g * (-1.1283791670955126 * maths.exp(-x * x))


# d atan2(a, b) = (b da - a db) / (a^2 + b^2)
@triton.jit
def _atan2(a, b):
    return maths.atan2(a, b)


@triton.jit
def _atan2_a(g, a, b):
    d = maths.safe(g, a * a + b * b)
    return maths.div(g * b, d)


@triton.jit
def _atan2_b(g, a, b):
    d = maths.safe(g, a * a + b * b)
    return maths.div(-g * a, d)


_TURN = Domain(-3.0, 3.0)
_INSIDE = Domain(-0.9, 0.9)
_POSITIVE = Domain(0.1, 4.0)

elementwise("exp", _exp, _exp_grad, np.exp, one_rounding=True)
elementwise("exp2", _exp2, _exp2_grad, np.exp2)
elementwise("expm1", _expm1, _expm1_grad, np.expm1)
elementwise("log", _log, _log_grad, np.log, domain=_POSITIVE)
elementwise("log2", _log2, _log2_grad, np.log2, domain=_POSITIVE)
elementwise("log10", _log10, _log10_grad, np.log10, domain=_POSITIVE)
elementwise("log1p", _log1p, _log1p_grad, np.log1p, domain=Domain(-0.8, 4.0))
elementwise("sin", _sin, _sin_grad, np.sin, domain=_TURN)
elementwise("cos", _cos, _cos_grad, np.cos, domain=_TURN)
elementwise("tan", _tan, _tan_grad, np.tan, domain=Domain(-1.2, 1.2))
elementwise("asin", _asin, _asin_grad, np.arcsin, domain=_INSIDE)
elementwise("acos", _acos, _acos_grad, np.arccos, domain=_INSIDE)
elementwise("atan", _atan, _atan_grad, np.arctan, domain=_TURN)
elementwise("sinh", _sinh, _sinh_grad, np.sinh)
elementwise("cosh", _cosh, _cosh_grad, np.cosh)
elementwise("tanh", _tanh, _tanh_grad, np.tanh)
elementwise("asinh", _asinh, _asinh_grad, np.arcsinh)
elementwise("acosh", _acosh, _acosh_grad, np.arccosh, domain=Domain(1.2, 4.0))
elementwise("atanh", _atanh, _atanh_grad, np.arctanh, domain=_INSIDE)
elementwise("erf", _erf, _erf_grad, special.erf)
elementwise("erfc", _erfc, _erfc_grad, special.erfc)
elementwise("atan2", _atan2, (_atan2_a, _atan2_b), np.arctan2, domain=(Domain(0.3, 2.0), Domain(-2.0, 2.0)))
