"""Smooth activations: selu, celu, mish, log_sigmoid."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.cpu.blocks import blocked, like, run_blocked
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import Sample

_SCALE, _ALPHA = 1.0507009873554805, 1.6732632423543772  # Klambauer et al., "Self-normalizing neural networks", 2017


# y = scale x where x > 0 else scale alpha (exp(x) - 1), both constants those that keep mean 0 and variance 1
@triton.jit
def _selu(x):
    return maths.where(x > 0, x * 1.0507009873554805, 1.7580993408473766 * maths.expm1(x))


@triton.jit
def _selu_grad(g, x):
    low = maths.where(x < 0, x, maths.zeros(x))  # so that no exponential overflows, and at 0 the slope's slope is 0, as in elu
    return g * maths.where(x <= 0, 1.7580993408473766 * maths.exp(low), 1.0507009873554805)


def _selu_block(x: np.ndarray, out: np.ndarray) -> None:
    low = np.minimum(x, 0)
    np.expm1(low, out=low)
    low *= _SCALE * _ALPHA
    np.maximum(x, 0, out=out)
    out *= _SCALE
    out += low


# y = x where x > 0 else alpha (exp(x / alpha) - 1)
@triton.jit
def _celu(x, alpha):
    return maths.where(x > 0, x, alpha * maths.expm1(maths.div(x, alpha)))


@triton.jit
def _celu_grad(g, x, alpha):
    low = maths.where(x < 0, x, maths.zeros(x))  # so that no exponential overflows where it is not asked for
    return maths.where(x <= 0, g * maths.exp(maths.div(low, alpha)), g)


def _celu_block(x: np.ndarray, out: np.ndarray, alpha: float) -> None:
    np.divide(x, x.dtype.type(alpha), out=out)
    np.expm1(out, out=out)
    out *= alpha
    np.copyto(out, x, where=x > 0)


def _celu_reference(x: np.ndarray, *, alpha: float = 1.0, out: np.ndarray | None = None) -> np.ndarray:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    out = like(x) if out is None else out
    run_blocked(_celu_block, x, out, alpha)
    return out


# y = x tanh(log(1 + e^x)) = x n / (n + 2), n = e (e + 2), e = e^x; from 20 on n / (n + 2) is 1
@triton.jit
def _mish(x):
    e = maths.exp(maths.minimum(x, 20.0))
    n = e * (e + 2.0)
    return x * maths.div(n, n + 2.0)


# dy/dx = n / (n + 2) + x 4 e (e + 1) / (n + 2)^2
@triton.jit
def _mish_grad(g, x):
    low = maths.minimum(x, 20.0)
    e = maths.exp(low)
    below = e * (e + 2.0) + 2.0
    return g * maths.div(e * (e + 2.0) + low * maths.div(4.0 * e * (e + 1.0), below), below)


def _mish_block(x: np.ndarray, out: np.ndarray) -> None:
    np.exp(np.minimum(x, 20), out=out)
    out *= out + 2
    np.divide(out, out + 2, out=out)
    out *= x


# y = -log(1 + e^-x), in the form that does not overflow; dy/dx = sigmoid(-x)
@triton.jit
def _log_sigmoid(x):
    return maths.minimum(x, maths.zeros(x)) - maths.log1p(maths.exp(-maths.abs(x)))


@triton.jit
def _log_sigmoid_grad(g, x):
    return maths.gated(g, -x)


def _log_sigmoid_block(x: np.ndarray, out: np.ndarray) -> None:
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    np.subtract(np.minimum(x, 0), out, out=out)


_REAL = ("float",)
_BENT = Domain(-2.0, 2.0, (0.0,))
_WIDE = Domain(-5.0, 5.0)
elementwise("selu", _selu, _selu_grad, blocked(_selu_block), promote="same", kinds=_REAL, domain=_BENT)
elementwise(
    "celu", _celu, _celu_grad, _celu_reference, promote="same", kinds=_REAL, attributes=("alpha",), domain=_BENT,
    extra=lambda rng: [Sample(_BENT.draw(rng, (3, 5)), alpha=0.5)],
)  # fmt: skip
elementwise("mish", _mish, _mish_grad, blocked(_mish_block), promote="same", kinds=_REAL, domain=_WIDE)
elementwise("log_sigmoid", _log_sigmoid, _log_sigmoid_grad, blocked(_log_sigmoid_block), promote="same", kinds=_REAL, domain=_WIDE)
