"""Activations: sigmoid, relu, leaky_relu, gelu, silu, softplus, elu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton

from tritensor.ground.errors import ArgumentError
from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import blocked, evaluate, is_narrow, like, run_blocked, zeroed
from tritensor.kernels.parts.cpu.special import gelu32, gelu32_gradient, normal_tail
from tritensor.kernels.parts.elementwise import backward_of, elementwise, forward_of, shape_rule, work
from tritensor.kernels.parts.formula_llvm import loop_of, numpy_gradient
from tritensor.kernels.parts.formulas import activations as formulas
from tritensor.kernels.parts.pointwise_samples import Domain, sample_calls, timed_calls
from tritensor.llvm.loops import MANY
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, op

_WIDE = Domain(-5.0, 5.0)
_BENT = Domain(-2.0, 2.0, (0.0,))
_SLOPE = 2.0 * math.sqrt(2.0 / math.pi)  # of the tanh form of gelu: sigmoid(2u) = (1 + tanh(u)) / 2
_CUBIC = 0.044715 * _SLOPE
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


def _sigmoid_block(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(1, out, out=out)


_ZEROS = {t: np.zeros((), t) for t in "fd"}  # arrays: to make one of a number costs more than the maximum of few elements


_INFINITY = (0x7F80, 0x7C00)  # the bits of bfloat16's and of float16's


def _relu_reference(x: np.ndarray, *, out: np.ndarray | None = None) -> Any:
    """max(x, 0)."""
    if is_narrow(x.dtype):
        bits = x.view(np.int16)  # negative numbers are negative integers; numpy compares 16-bit floats one by one
        if not bits.size or np.maximum.reduce(np.bitwise_and(bits, 0x7FFF), axis=None) <= _INFINITY[x.dtype.char == "e"]:
            if out is None:
                return np.maximum(bits, 0).view(x.dtype)
            np.maximum(bits, 0, out=out.view(np.int16))
            return out
    zero = _ZEROS.get(x.dtype.char)
    return np.maximum(x, x.dtype.type(0) if zero is None else zero, out=out)


_relu_reference.bare = lambda x: np.maximum(x, _ZEROS[x.dtype.char])  # type: ignore[attr-defined]


_RELU_GRADIENT = loop_of(formulas.relu_grad)


def _relu_numpy(g: np.ndarray, y: np.ndarray) -> np.ndarray:
    if g.size >= MANY and g.shape == y.shape and g.flags.c_contiguous and y.flags.c_contiguous:
        out = np.empty(g.shape, g.dtype)
        if _RELU_GRADIENT([g, y], out):
            return out
    return zeroed(g, y <= 0)


# y = x where x > 0 else slope x
@triton.jit
def _leaky_relu(x, negative_slope):
    return maths.where(x > 0, x, x * negative_slope)


@triton.jit
def _leaky_relu_grad(g, x, negative_slope):
    return maths.where(x > 0, g, g * negative_slope)


def _leaky_relu_block(x: np.ndarray, out: np.ndarray, negative_slope: float) -> None:
    np.multiply(x, x.dtype.type(negative_slope), out=out)
    (np.maximum if negative_slope <= 1 else np.minimum)(x, out, out=out)


def _leaky_relu_reference(x: np.ndarray, *, negative_slope: float = 0.01, out: np.ndarray | None = None) -> np.ndarray:
    """x where it is positive, else negative_slope * x."""
    if out is None:
        out = like(x)
    run_blocked(_leaky_relu_block, x, out, negative_slope)
    return out


def _silu_block(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(x, out, out=out)


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


def _softplus_block(x: np.ndarray, out: np.ndarray, beta: float, threshold: float) -> None:
    z = x if beta == 1 else x * beta
    np.abs(z, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(z, 0)
    if beta != 1:
        out /= beta
    if x.size and not np.maximum.reduce(z, axis=None) <= threshold:  # NaN counts as above: it hides the others
        np.copyto(out, x, where=z > threshold)


def _softplus_reference(x: np.ndarray, *, beta: float = 1.0, threshold: float = 20.0, out: np.ndarray | None = None) -> np.ndarray:
    """log(1 + exp(beta x)) / beta, x where beta x is above the threshold."""
    if out is None:
        out = np.empty(x.shape, x.dtype)
    run_blocked(_softplus_block, x, out, beta, threshold)
    return out


# y = x where x > 0 else alpha (exp(x) - 1)
@triton.jit
def _elu(x, alpha):
    return maths.where(x > 0, x, alpha * maths.expm1(x))


@triton.jit
def _elu_grad(g, x, alpha):
    low = maths.where(x < 0, x, maths.zeros(x))  # so that no exponential overflows, and at 0 the slope's slope is 0, as PyTorch has it
    return maths.where(x <= 0, g * (alpha * maths.exp(low)), g)


def _elu_block(x: np.ndarray, out: np.ndarray, alpha: float) -> None:
    low = np.minimum(x, 0)
    np.expm1(low, out=low)
    low *= alpha
    np.maximum(x, 0, out=out)
    out += low


def _elu_reference(x: np.ndarray, *, alpha: float = 1.0, out: np.ndarray | None = None) -> np.ndarray:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    if out is None:
        out = like(x)
    run_blocked(_elu_block, x, out, alpha)
    return out


def _gelu_block(x: np.ndarray, out: np.ndarray) -> None:
    if x.dtype == np.float32:
        gelu32(x, out)
        return
    # max(x, 0) - |x| P(X > |x|): one formula for both signs, without cancellation
    t, tail = normal_tail(x)
    tail *= t
    np.subtract(np.maximum(x, 0), tail, out=out, casting="same_kind")


def _gelu_tanh_block(x: np.ndarray, out: np.ndarray) -> None:
    np.multiply(x, x, out=out)
    out *= -_CUBIC
    out -= _SLOPE
    out *= x
    np.exp(out, out=out)
    out += 1
    np.divide(x, out, out=out)


_GELU = {"none": (formulas.gelu, formulas.gelu_grad, _gelu_block), "tanh": (formulas.gelu_tanh, formulas.gelu_tanh_grad, _gelu_tanh_block)}
_FORWARD = {name: forward_of(one[0], "gelu", ("x",), {}, "same") for name, one in _GELU.items()}
_BACKWARD = {name: backward_of(one[1:2])[0] for name, one in _GELU.items()}
_NUMPY = {name: numpy_gradient(one[1], False) for name, one in _GELU.items()}
_MACHINE = {name: loop_of(one[0]) for name, one in _GELU.items()}
_RULE = {name: backends.twin(one[1], backends.on_tensors) for name, one in _GELU.items()}


def _gelu_reference(x: np.ndarray, *, approximate: str = "none", out: np.ndarray | None = None) -> np.ndarray:
    """x times the normal distribution function of x, exact ("none") or through tanh ("tanh")."""
    if out is None:
        out = like(x)
    if not (out.dtype == x.dtype and _MACHINE[approximate]((x,), out)):
        run_blocked(_GELU[approximate][2], x, out)
    return out


_floating = shape_rule("gelu", ("x",), "same", ("float",))


def _gelu_shape(x: Any, *, approximate: str = "none") -> Spec:
    if approximate not in _GELU:
        raise ArgumentError(f"gelu: approximate is {approximate!r}; it is 'none' or 'tanh'")
    return _floating(x)


def _gelu_forward(x: CudaArray, *, approximate: str = "none", out: CudaArray | None = None) -> CudaArray:
    return _FORWARD[approximate](x, out=out)


def _gelu_rule(g: Any, x: Any, approximate: str) -> Any:
    return _RULE[approximate](g, x)


def _gelu_backward(g: CudaArray, x: CudaArray, approximate: str) -> CudaArray:
    return _BACKWARD[approximate](g, x)


def _gelu_cpu_backward(g: np.ndarray, x: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "none" and x.dtype != np.float64 and x.size < MANY:
        return evaluate(gelu32_gradient, (g, x))
    return _NUMPY[approximate](g, x)


def _gelu_samples(rng: np.random.Generator) -> list[Sample]:
    plain = sample_calls((_WIDE,), False, FLOATS, None)(rng)
    return [Sample(*s.inputs, approximate=form, smooth=s.smooth) for form in _GELU for s in plain]


_REAL = ("float",)
elementwise("sigmoid", formulas.sigmoid, formulas.sigmoid_grad, blocked(_sigmoid_block), kinds=("float", "complex"), domain=_WIDE)
elementwise(
    "relu",
    formulas.relu,
    formulas.relu_grad,
    _relu_reference,
    promote="same",
    kinds=("uint", "int", "float"),
    domain=_BENT,
    bent=True,
    cpu_backward=(_relu_numpy,),
    native=FLOATS,
)
elementwise(
    "leaky_relu", _leaky_relu, _leaky_relu_grad, _leaky_relu_reference, kinds=_REAL, attributes=("negative_slope",), domain=_BENT, bent=True,
    extra=lambda rng: [Sample(_BENT.draw(rng, (3, 5)), negative_slope=s) for s in (0.25, 2.0)],
)  # fmt: skip
elementwise("silu", formulas.silu, formulas.silu_grad, blocked(_silu_block), kinds=_REAL, domain=_WIDE)
elementwise(
    "softplus", _softplus, _softplus_grad, _softplus_reference, kinds=_REAL, attributes=("beta", "threshold"), forward=_softplus_forward, domain=_WIDE,
    extra=lambda rng: [Sample(rng.uniform(-3.0, 0.8, (3, 5)), beta=2.0, threshold=2.0), Sample(rng.uniform(1.2, 3.0, (7,)), beta=2.0, threshold=2.0)],
)  # fmt: skip
elementwise(
    "elu", _elu, _elu_grad, _elu_reference, kinds=_REAL, attributes=("alpha",), domain=_BENT,
    extra=lambda rng: [Sample(_BENT.draw(rng, (3, 5)), alpha=0.5)],
)  # fmt: skip
op(
    "gelu", _gelu_reference, cpu=_gelu_reference, shape=_gelu_shape, forward=_gelu_forward, rule=(_gelu_rule,), backward=(_gelu_backward,),
    cpu_backward=(_gelu_cpu_backward,), broadcasts=True, promote="float", into=True, samples=_gelu_samples, sizes=timed_calls((_WIDE,)), work=work,
)  # fmt: skip
