"""Smooth and rectified activations: sigmoid, silu, relu, leaky_relu, softplus, elu, selu, celu, mish, log_sigmoid, gelu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton

from tritensor.ground.errors import ArgumentError
from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import blocked, in_expression
from tritensor.kernels.parts.cpu.special import gelu_block
from tritensor.kernels.parts.elementwise import backward_of, elementwise, forward_of, shape_rule, work
from tritensor.kernels.parts.formula_llvm import formula_loop, numpy_gradient, with_machine_code
from tritensor.kernels.parts.formulas import activations as formulas
from tritensor.kernels.parts.pointwise_samples import Domain, sample_calls, timed_calls
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, op

_WIDE = Domain(-5.0, 5.0)
_BENT = Domain(-2.0, 2.0, (0.0,))
_SCALE, _ALPHA = 1.0507009873554805, 1.6732632423543772  # Klambauer et al., "Self-normalizing neural networks", 2017
_SLOPE = 2.0 * math.sqrt(2.0 / math.pi)  # of the tanh form of gelu: sigmoid(2u) = (1 + tanh(u)) / 2
_CUBIC = 0.044715 * _SLOPE


# numbers as arrays of no dimensions: to make one costs more than the maximum of few elements
_ZEROS = {t: np.zeros((), t) for t in "fd"}


def _relu_cpu(x: np.ndarray, *, out: np.ndarray | None = None) -> Any:
    return np.maximum(x, _ZEROS.get(x.dtype.char, x.dtype.type(0)), out=out)


_relu_cpu.bare = lambda x: np.maximum(x, _ZEROS[x.dtype.char])  # type: ignore[attr-defined]


# y = x where x > 0 else slope x
@triton.jit
def _leaky_relu(x, negative_slope):
    return maths.where(x > 0, x, x * negative_slope)


@triton.jit
def _leaky_relu_grad(g, x, negative_slope):
    return maths.where(x > 0, g, g * negative_slope)


def _leaky_relu_cpu(x: np.ndarray, *, negative_slope: float = 0.01) -> np.ndarray:
    """By extrema: numpy's choice guesses the sign of each element, and is wrong half of the time."""
    return (np.maximum if negative_slope <= 1 else np.minimum)(x, negative_slope * x)


# y = log(1 + exp(beta x)) / beta, x itself where beta x > threshold; dy/dx = sigmoid(beta x), 1 there
@triton.jit
def _softplus(x, beta, threshold):
    z = beta * x
    y = maths.maximum(z, maths.zeros(z)) + maths.log1p(maths.exp(-maths.abs(z)))
    return maths.where(z > threshold, x, maths.div(y, beta))


# of beta 1 and a threshold from 0 on: no division, and no choice for which x is kept through the logarithm
@triton.jit
def _plain_softplus(x, threshold):
    bend = maths.where(x > threshold, maths.zeros(x), maths.exp(-maths.abs(x)))
    return maths.maximum(x, maths.zeros(x)) + maths.log1p(bend)


@triton.jit
def _softplus_grad(g, x, beta, threshold):
    z = beta * x
    return maths.gated(g, maths.where(z > threshold, float("inf"), z))  # chosen before the division: g need not be kept through it


_softplus_scaled = forward_of(_softplus, "softplus", ("x",), {"beta": 1.0, "threshold": 20.0}, "same")
_softplus_unscaled = forward_of(_plain_softplus, "softplus", ("x",), {"threshold": 20.0}, "same")


def _softplus_forward(x: CudaArray, *, beta: float = 1.0, threshold: float = 20.0, out: CudaArray | None = None) -> CudaArray:
    if beta == 1 and threshold >= 0:
        return _softplus_unscaled(x, threshold=threshold, out=out)
    return _softplus_scaled(x, beta=beta, threshold=threshold, out=out)


def _softplus_reference(x: np.ndarray, *, beta: float = 1.0, threshold: float = 20.0) -> np.ndarray:
    """log(1 + exp(beta x)) / beta, x where beta x is above the threshold."""
    z = beta * x
    return np.where(z > threshold, x, (np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))) / beta)


def _softplus_cpu(x: np.ndarray, *, beta: float = 1.0, threshold: float = 20.0) -> np.ndarray:
    z = x if beta == 1 else beta * x
    y = np.asarray(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))))
    if beta != 1:
        y /= beta
    np.copyto(y, x, where=z > threshold)  # a choice by np.where costs as much as all the rest
    return y


# y = x where x > 0 else alpha (exp(x) - 1)
@triton.jit
def _elu(x, alpha):
    return maths.where(x > 0, x, alpha * maths.expm1(x))


@triton.jit
def _elu_grad(g, x, alpha):
    low = maths.where(x < 0, x, maths.zeros(x))  # so that no exponential overflows, and at 0 the slope's slope is 0, as PyTorch has it
    return maths.where(x <= 0, g * (alpha * maths.exp(low)), g)


# y = scale x where x > 0 else scale alpha (exp(x) - 1), both constants those that keep mean 0 and variance 1
@triton.jit
def _selu(x):
    return maths.where(x > 0, x * 1.0507009873554805, 1.7580993408473766 * maths.expm1(x))


@triton.jit
def _selu_grad(g, x):
    low = maths.where(x < 0, x, maths.zeros(x))  # so that no exponential overflows, and at 0 the slope's slope is 0, as in elu
    return g * maths.where(x <= 0, 1.7580993408473766 * maths.exp(low), 1.0507009873554805)


# y = x where x > 0 else alpha (exp(x / alpha) - 1)
@triton.jit
def _celu(x, alpha):
    return maths.where(x > 0, x, alpha * maths.expm1(maths.div(x, alpha)))


@triton.jit
def _celu_grad(g, x, alpha):
    low = maths.where(x < 0, x, maths.zeros(x))  # so that no exponential overflows where it is not asked for
    return maths.where(x <= 0, g * maths.exp(maths.div(low, alpha)), g)


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


def _mish_reference(x: np.ndarray) -> np.ndarray:
    e = np.exp(np.minimum(x, 20))
    n = e * (e + 2)
    return x * (n / (n + 2))


# y = -log(1 + e^-x), in the form that does not overflow; dy/dx = sigmoid(-x)
@triton.jit
def _log_sigmoid(x):
    return maths.minimum(x, maths.zeros(x)) - maths.log1p(maths.exp(-maths.abs(x)))


@triton.jit
def _log_sigmoid_grad(g, x):
    return maths.gated(g, -x)


_GELU = {"none": (formulas.gelu, formulas.gelu_grad), "tanh": (formulas.gelu_tanh, formulas.gelu_tanh_grad)}
_FORWARD = {form: forward_of(f, "gelu", ("x",), {}, "same") for form, (f, _) in _GELU.items()}
_BACKWARD = {form: backward_of((f,))[0] for form, (_, f) in _GELU.items()}
_CPU_BACKWARD = {form: numpy_gradient(f, False) for form, (_, f) in _GELU.items()}
_RULE = {form: backends.translate(f, backends.on_tensors) for form, (_, f) in _GELU.items()}
_ON_FEW = {"none": blocked(gelu_block), "tanh": in_expression(lambda x: x / (1 + np.exp(-x * (_SLOPE + _CUBIC * x * x))))}
_CPU = {form: with_machine_code(_ON_FEW[form], formula_loop(f), FLOATS) for form, (f, _) in _GELU.items()}
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _gelu_reference(x: np.ndarray, *, approximate: str = "none") -> np.ndarray:
    """x times the normal distribution function of x, exact ("none") or through tanh ("tanh")."""
    if approximate == "tanh":
        return x / (1 + np.exp(-_SLOPE * (x + 0.044715 * x**3)))
    return np.maximum(x, -40) * 0.5 * _erfc(-x / math.sqrt(2))


_floating = shape_rule("gelu", ("x",), "same", ("float",))


def _gelu_shape(x: Any, *, approximate: str = "none") -> Spec:
    if approximate not in _GELU:
        raise ArgumentError(f"gelu: approximate is {approximate!r}; it is 'none' or 'tanh'")
    return _floating(x)


def _gelu_cpu_backward(g: np.ndarray, x: np.ndarray, approximate: str) -> np.ndarray:
    return _CPU_BACKWARD[approximate](g, x)


def _gelu_samples(rng: np.random.Generator) -> list[Sample]:
    plain = sample_calls((_WIDE,), False, FLOATS, None)(rng)
    return [Sample(*s.inputs, approximate=form, smooth=s.smooth) for form in _GELU for s in plain]


_REAL = ("float",)
elementwise("sigmoid", formulas.sigmoid, formulas.sigmoid_grad, lambda x: 1 / (1 + np.exp(-x)), domain=_WIDE)
elementwise("silu", formulas.silu, formulas.silu_grad, lambda x: x / (1 + np.exp(-x)), kinds=_REAL, domain=_WIDE)
elementwise(
    "relu", formulas.relu, formulas.relu_grad, lambda x: np.maximum(x, 0), cpu=_relu_cpu, promote="same",
    kinds=("uint", "int", "float"), domain=_BENT, bent=True, native=FLOATS, doc="max(x, 0).",
)  # fmt: skip
elementwise(
    "leaky_relu", _leaky_relu, _leaky_relu_grad, lambda x, *, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    cpu=_leaky_relu_cpu, kinds=_REAL, attributes=("negative_slope",), domain=_BENT, bent=True, doc="x where it is positive, else negative_slope * x.",
    extra=lambda rng: [Sample(_BENT.draw(rng, (3, 5)), negative_slope=s) for s in (0.25, 2.0)],
)  # fmt: skip
elementwise(
    "softplus", _softplus, _softplus_grad, _softplus_reference, cpu=_softplus_cpu, kinds=_REAL, attributes=("beta", "threshold"),
    forward=_softplus_forward, domain=_WIDE,
    extra=lambda rng: [Sample(rng.uniform(-3.0, 0.8, (3, 5)), beta=2.0, threshold=2.0), Sample(rng.uniform(1.2, 3.0, (7,)), beta=2.0, threshold=2.0)],
)  # fmt: skip
elementwise(
    "elu", _elu, _elu_grad, lambda x, *, alpha=1.0: np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0)), kinds=_REAL, attributes=("alpha",),
    domain=_BENT, doc="x where it is positive, else alpha * (exp(x) - 1).", extra=lambda rng: [Sample(_BENT.draw(rng, (3, 5)), alpha=0.5)],
)  # fmt: skip
elementwise(
    "selu", _selu, _selu_grad, lambda x: _SCALE * (np.maximum(x, 0) + _ALPHA * np.expm1(np.minimum(x, 0))), promote="same", kinds=_REAL, domain=_BENT
)  # fmt: skip
elementwise(
    "celu", _celu, _celu_grad, lambda x, *, alpha=1.0: np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / alpha), promote="same", kinds=_REAL,
    attributes=("alpha",), domain=_BENT, doc="x where it is positive, else alpha * (exp(x / alpha) - 1).",
    extra=lambda rng: [Sample(_BENT.draw(rng, (3, 5)), alpha=0.5)],
)  # fmt: skip
elementwise("mish", _mish, _mish_grad, _mish_reference, promote="same", kinds=_REAL, domain=_WIDE)
elementwise(
    "log_sigmoid", _log_sigmoid, _log_sigmoid_grad, lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), promote="same", kinds=_REAL, domain=_WIDE,
    doc="log(1 / (1 + exp(-x))), in the form that does not overflow.",
)  # fmt: skip
op(
    "gelu", _gelu_reference, shape=_gelu_shape, broadcasts=True, promote="float", into=True, samples=_gelu_samples, sizes=timed_calls((_WIDE,)), work=work,
    cpu=lambda x, *, approximate="none", out=None: _CPU[approximate](x, out=out),
    forward=lambda x, *, approximate="none", out=None: _FORWARD[approximate](x, out=out),
    rule=(lambda g, x, approximate: _RULE[approximate](g, x),),
    backward=(lambda g, x, approximate: _BACKWARD[approximate](g, x),),
    cpu_backward=(_gelu_cpu_backward,),
)  # fmt: skip
