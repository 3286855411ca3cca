"""Piecewise activations: hardtanh, hardsigmoid, hardswish, hardshrink, softshrink, threshold, prelu."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import Sample


# y = min(max(x, low), high); dy/dx = 1 strictly inside
@triton.jit
def _hardtanh(x, low, high):
    return maths.where(x < low, low, maths.where(x > high, high, x))


@triton.jit
def _hardtanh_grad(g, x, low, high):
    return maths.where(maths.either(x <= low, x >= high), maths.zeros(g), g)


def _hardtanh_reference(x: np.ndarray, *, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """x held between low and high."""
    return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))  # whole numbers stay whole


def _hardtanh_cpu(x: np.ndarray, *, low: float = -1.0, high: float = 1.0, out: np.ndarray | None = None) -> np.ndarray:
    # with `out`, so that nothing is wrapped round it, a fifth of its time on few elements: relu6 of small models
    return np.asarray(np.minimum(np.maximum(x, x.dtype.type(low), out=out), x.dtype.type(high), out=out))


# y = min(max(x + 3, 0), 6) / 6; dy/dx = 1/6 strictly inside
@triton.jit
def _hardsigmoid(x):
    return maths.div(maths.minimum(maths.maximum(x + 3.0, maths.zeros(x)), 6.0), maths.zeros(x) + 6.0)


@triton.jit
def _hardsigmoid_grad(g, x):
    return maths.where(maths.either(x <= -3.0, x >= 3.0), maths.zeros(g), g * 0.16666666666666666)


# y = x min(max(x + 3, 0), 6) / 6; dy/dx = 0 up to -3, 1 from 3 on, (2x + 3) / 6 between
@triton.jit
def _hardswish(x):
    return maths.div(x * maths.minimum(maths.maximum(x + 3.0, maths.zeros(x)), 6.0), maths.zeros(x) + 6.0)


@triton.jit
def _hardswish_grad(g, x):
    return maths.where(x <= -3.0, maths.zeros(g), maths.where(x < 3.0, g * (x * 0.3333333333333333 + 0.5), g))


# y = 0 where |x| <= limit, else x; a NaN stays
@triton.jit
def _hardshrink(x, limit):
    return maths.where(maths.both(x >= -limit, x <= limit), maths.zeros(x), x)


@triton.jit
def _hardshrink_grad(g, x, limit):
    return maths.where(maths.both(x >= -limit, x <= limit), maths.zeros(g), g)


# y = x - limit above limit, x + limit below -limit, else 0; a NaN stays
@triton.jit
def _softshrink(x, limit):
    return maths.where(x > limit, x - limit, maths.where(x < -limit, x + limit, x * 0.0))


# y = value where x <= threshold, else x
@triton.jit
def _threshold(x, threshold, value):
    return maths.where(x <= threshold, value, x)


@triton.jit
def _threshold_grad(g, x, threshold):
    return maths.where(x <= threshold, maths.zeros(g), g)


def _threshold_reference(x: np.ndarray, *, threshold: float = 0.0, value: float = 0.0) -> np.ndarray:
    """x where it is above the threshold, else the value."""
    return np.where(x <= x.dtype.type(threshold), x.dtype.type(value), x)


# y = x where x > 0 else w x, w a number for each channel
@triton.jit
def _prelu(x, weight):
    return maths.where(x > 0, x, weight * x)


@triton.jit
def _prelu_grad_x(g, x, weight):
    return maths.where(x > 0, g, g * weight)


@triton.jit
def _prelu_grad_weight(g, x):
    return maths.where(x > 0, maths.zeros(g), g * x)


_BENDS = Domain(-5.0, 5.0, (-3.0, 3.0))
_UNITS = Domain(-2.0, 2.0, (-1.0, 1.0))
_HALVES = Domain(-2.0, 2.0, (-0.5, 0.5))
_REAL = ("float",)
elementwise(
    "hardtanh", _hardtanh, _hardtanh_grad, _hardtanh_reference, cpu=_hardtanh_cpu, promote="same", kinds=("uint", "int", "float"), attributes=("low", "high"),
    domain=_UNITS, bent=True, extra=lambda rng: [Sample(Domain(-3.0, 9.0, (0.0, 6.0)).draw(rng, (7, 3)), low=0.0, high=6.0)],
)  # fmt: skip
elementwise(
    "hardsigmoid", _hardsigmoid, _hardsigmoid_grad, lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6, promote="same", kinds=_REAL, domain=_BENDS, bent=True
)  # fmt: skip
elementwise(
    "hardswish", _hardswish, _hardswish_grad, lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6, promote="same", kinds=_REAL, domain=_BENDS,
)  # fmt: skip
elementwise(
    "hardshrink", _hardshrink, _hardshrink_grad, lambda x, *, limit=0.5: np.where((x >= -limit) & (x <= limit), 0, x),
    promote="same", kinds=_REAL, attributes=("limit",), domain=_HALVES, bent=True,
    extra=lambda rng: [Sample(_UNITS.draw(rng, (7, 3)), limit=1.0)],
)  # fmt: skip
elementwise(
    "softshrink", _softshrink, _hardshrink_grad, lambda x, *, limit=0.5: np.where(x > limit, x - limit, np.where(x < -limit, x + limit, 0 * x)),
    promote="same", kinds=_REAL, attributes=("limit",), domain=_HALVES, bent=True,
    extra=lambda rng: [Sample(_UNITS.draw(rng, (7, 3)), limit=1.0)],
)  # fmt: skip
elementwise(
    "threshold", _threshold, _threshold_grad, _threshold_reference, promote="same", kinds=("uint", "int", "float"), attributes=("threshold", "value"),
    domain=Domain(-2.0, 2.0, (0.0,)), bent=True, extra=lambda rng: [Sample(_UNITS.draw(rng, (7, 3)), threshold=1.0, value=-20.0)],
)  # fmt: skip
elementwise(
    "prelu", _prelu, (_prelu_grad_x, _prelu_grad_weight), lambda x, weight: np.where(x > 0, x, weight * x), promote="same", kinds=_REAL, scalars=False,
    domain=(Domain(-2.0, 2.0, (0.0,)), Domain(-1.0, 1.0)), bent=True,
)  # fmt: skip
