"""Sums with a multiple: add, sub and rsub with their alpha, addcmul, addcdiv, and lerp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ops.table import ops
from tritensor.tensor.casting import cast, compute_in_float32
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.elementary import require_tensors
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function


def _scale_by_alpha(name: str, x: Any, other: Any, alpha: Any) -> Any:
    """alpha * other in the type that it meets x in; a fraction makes floats of integers."""
    # The common case, without promotion: one floating type on both sides.
    if isinstance(other, Tensor) and isinstance(x, Tensor) and type(alpha) in (int, float):
        kind = x._array.dtype
        if kind.kind == "f" and kind == other._array.dtype:
            return other * alpha
    elif not isinstance(other, Tensor | bool | int | float | complex):
        other = as_tensor(other, x, name)
    kind = _result_type(name, x, other)
    # A fraction makes floats of integers, so the product keeps its own type.
    if isinstance(alpha, Tensor) or (isinstance(alpha, float) and kind.kind in "iub"):
        return other * alpha
    if not isinstance(other, Tensor):
        return dtypes.as_factor(kind, other * alpha, name)
    return ops.mul(cast(other, kind), dtypes.as_factor(kind, alpha, name))


def _result_type(name: str, *operands: Any) -> np.dtype:
    return dtypes.result_type([x._array if isinstance(x, Tensor) else x for x in operands], name)


def _make_inplace_inputs(name: str) -> Callable[..., tuple[Any, ...]]:
    """What the op of a function in place takes."""

    def inputs(x: Tensor, other: Any, *, alpha: float = 1) -> tuple[Any, ...]:
        return x, other if alpha == 1 else _scale_by_alpha(name, x, other, alpha)

    return inputs


@function(inplace=_make_inplace_inputs("add_"), out=True)
def add(x: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """x + alpha * other."""
    return ops.add(x, other if alpha == 1 else _scale_by_alpha("add", x, other, alpha))


@function(inplace=_make_inplace_inputs("sub_"), out=True, names=("subtract",))
def sub(x: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """x - alpha * other."""
    return ops.sub(x, other if alpha == 1 else _scale_by_alpha("sub", x, other, alpha))


@function
def rsub(x: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """other - alpha * x."""
    require_tensors("rsub", input=x)
    return ops.sub(other, x if alpha == 1 else _scale_by_alpha("rsub", other, x, alpha))


def _add_multiple(name: str, joined: Callable[..., Tensor], x: Tensor, tensor1: Operand, tensor2: Operand, value: Any) -> Tensor:
    """x + value * joined(tensor1, tensor2), taken in the type that all three meet in."""
    a, b = tensor1, tensor2
    kind = x._array.dtype
    # Promotion is looked up only where types differ.
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a._array.dtype == b._array.dtype == kind):
        kind = _result_type(name, x, a, b)
        a, b = (cast(v, kind) if isinstance(v, Tensor) else v for v in (a, b))
    if value != 1 and not isinstance(value, Tensor) and (kind.kind not in "iub" or name == "addcmul"):
        value = dtypes.as_factor(kind, value, name)
    return compute_in_float32(lambda x, a, b: ops.add(x, joined(a, b) if value == 1 else joined(a, b) * value), x, a, b)


@function(inplace=True, out=True)
def addcmul(x: Tensor, tensor1: Operand, tensor2: Operand, *, value: float = 1) -> Tensor:
    """x + value * tensor1 * tensor2; of integers value is cut to a whole number."""
    return _add_multiple("addcmul", ops.mul, x, tensor1, tensor2, value)


@function(inplace=True, out=True)
def addcdiv(x: Tensor, tensor1: Operand, tensor2: Operand, *, value: float = 1) -> Tensor:
    """x + value * tensor1 / tensor2."""
    return _add_multiple("addcdiv", ops.div, x, tensor1, tensor2, value)


@function(inplace=True, out=True)
def lerp(x: Tensor, end: Operand, weight: Operand) -> Tensor:
    """x + weight * (end - x), from the nearer end: exactly x where weight is 0 and end where it is 1."""
    if isinstance(weight, complex):
        weight = dtypes.as_factor(_result_type("lerp", x, end), weight, "lerp")
    return compute_in_float32(_lerp, x, end, weight)


def _lerp(x: Tensor, end: Operand, weight: Operand) -> Tensor:
    if isinstance(weight, Tensor) and isinstance(end, Tensor) and x.is_floating_point() and x.dtype == end.dtype == weight.dtype:
        return ops.lerp(x, end, weight)
    back = ops.sub(x, end)  # in x's layout
    if not isinstance(weight, Tensor):
        return ops.sub(x, ops.mul(back, weight)) if abs(weight) < 0.5 else ops.add(ops.mul(back, 1 - weight), end)
    # From the nearer end, so that weight 1 gives exactly `end`: x + 1 (end - x) would round.
    near = ops.lt(ops.abs(weight), 0.5)
    return ops.add(ops.mul(back, ops.where(near, ops.neg(weight), ops.sub(1, weight))), ops.where(near, x, end))
