"""Activations that PyTorch publishes as torch.<name> too: celu, selu, prelu, rrelu, threshold, hardshrink."""

from __future__ import annotations

import math
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DivisionByZeroError, DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import draw_uniform_between
from tritensor.tensor.public_api.publish import function


@function(method=False, inplace=True)
def selu(x: Tensor) -> Tensor:
    """1.0507 x where positive, else 1.0507 * 1.6733 (exp(x) - 1): keeps mean 0 and variance 1 through layers (Klambauer et al. 2017)."""
    return ops.selu(x)


@function(method=False, inplace=True)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where positive, else alpha (exp(x / alpha) - 1) (Barron 2017)."""
    if alpha == 0:
        raise DivisionByZeroError("celu: alpha is 0, by which x is divided; give another number")
    return ops.celu(x, alpha=float(alpha))


@function
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """x where positive, else weight x; weight holds one number, or one for each channel (dim 1 of x). Both of one type.

    Raises ShapeError for other numbers of weights, DTypeError for two types.
    """
    if x.dtype is not weight.dtype:
        raise DTypeError(f"prelu: input is {x.dtype.name}, weight {weight.dtype.name}; cast one of them")
    if weight.ndim > 1:
        raise ShapeError(
            f"prelu: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give one number, or a vector of one for each channel"
        )
    w, count = weight._array.size, weight._array.size if weight.ndim else 1
    channels = x.shape[1] if x.ndim > 1 else 1
    if w != 1 and count != channels:
        raise ShapeError(
            f"prelu: weight {tuple(weight.shape)} has {count} numbers, input {tuple(x.shape)} {channels} channels; give 1 or {channels}"
        )
    # One weight per channel broadcasts along dim 1: the dims behind it need sizes of 1.
    if x.ndim != 2 or w == 1:
        weight = ops.reshape(weight, shape=(w,) + (1,) * max(x.ndim - 2, 0) if x.ndim > 1 else () if x.ndim == 0 else (1,))
    return ops.prelu(x, weight)


@function(method=False, inplace=True)
def rrelu(x: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Generator | None = None) -> Tensor:
    """x where positive, else a x: a is drawn from [lower, upper) for each element in training, else halfway between (Xu et al. 2015)."""
    if not -math.inf < lower <= upper < math.inf:
        raise ArgumentError(f"rrelu: lower is {lower}, upper {upper}; give finite numbers, lower <= upper")
    x = x.contiguous()  # PyTorch's result is in C order, too
    if not training:
        return ops.leaky_relu(x, negative_slope=(float(lower) + float(upper)) / 2)
    # Slopes are drawn in x's type.
    if not x.dtype.is_floating_point:
        raise DTypeError(f"rrelu: input is {x.dtype.name}; it takes float types; cast it with .float()")
    return ops.prelu(x, draw_uniform_between(float(lower), float(upper), tuple(x._array.shape), x._array.dtype, x.device, generator))


@function(method=False, inplace=True, out=True)
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above the threshold, else the value."""
    return ops.threshold(x, threshold=to_number("threshold", "threshold", threshold), value=to_number("threshold", "value", value))


def to_number(name: str, label: str, given: Any) -> Any:
    """A number, or that of a tensor of one element."""
    if not isinstance(given, Tensor):
        return given
    if given._array.size != 1:
        raise ShapeError(f"{name}: {label} has shape {tuple(given._array.shape)}; give a number")
    return given.item()


@function(out=True)
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """0 where |x| <= lambd, as x's type holds it, else x."""
    return ops.hardshrink(x, limit=dtypes.as_held(x._array.dtype, float(lambd)))
