"""Parts of floating numbers under PyTorch's names: signs, mantissa and exponent, infinities, and powers in float64."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError
from tritensor.ops.table import ops
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import ones_like
from tritensor.tensor.functions.pointwise.elementary import require_tensors
from tritensor.tensor.functions.shaping.reshaping import to_c_order
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type


class frexp_result(NamedTuple):
    """What frexp gives."""

    mantissa: Tensor
    exponent: Tensor


@function(out=True)
def frexp(x: Tensor) -> Any:
    """(mantissa, exponent) with x = mantissa * 2^exponent and 1/2 <= |mantissa| < 1; the exponent is int32. Raises DTypeError for integers."""
    return return_type("frexp", frexp_result)(*ops.frexp(x))


@function(inplace=True, out=True)
@borrow_saved
def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """x * 2^other in the type of both, integers as floating; of a large other in steps that do not overflow before the result does."""
    require_tensors("ldexp", input=x, other=other)
    # A complex exponent has no integer part to take steps of.
    if other.is_complex():
        return ops.mul(x, ops.pow(2.0, other))
    kind = dtypes.result_type([x._array, other._array], "ldexp")
    if kind.kind in "biu":
        kind = dtypes.default_float().numpy
    y, left = to_dtype(x, kind), to_dtype(other, np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind)
    limit = 1 - int(ml_dtypes.finfo(left._array.dtype).minexp)
    for _ in range(3):  # from the smallest subnormal number to the largest
        now = ops.clamp(left, -limit, limit)
        y, left = ops.mul(y, ops.pow(2.0, now)), ops.sub(left, now)
    return y


@function(out=True)
def float_power(x: Operand, exponent: Operand) -> Tensor:
    """x to the power exponent in float64 (complex128 for complex numbers), whatever their types."""
    if not isinstance(x, Tensor) and isinstance(exponent, Tensor):
        exponent = to_c_order(exponent)  # as pow's result is
    return ops.pow(_to_double(x), _to_double(exponent))


def _to_double(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return float(x) if isinstance(x, bool | int) else x
    return to_dtype(x, np.dtype(np.complex128 if x.dtype.is_complex else np.float64))


def _float_power_in_place(x: Tensor, exponent: Operand) -> Tensor:
    """float_power over x, which is float64 or complex128 already."""
    if not isinstance(exponent, Tensor | bool | int | float | complex | np.generic):
        raise TypeError(
            f"float_power_: exponent is {'None' if exponent is None else f'a {type(exponent).__name__}'}; give a tensor or a number"
        )
    if x._array.dtype != np.float64 and x._array.dtype != np.complex128:
        raise DTypeError(f"float_power_: the tensor is {x.dtype.name}, the result float64; use the out-of-place form")
    return x.pow_(_to_double(exponent))  # type: ignore[attr-defined,no-any-return]


Tensor.float_power_ = _float_power_in_place  # type: ignore[method-assign, assignment]


@function(out=True)
def signbit(x: Tensor) -> Tensor:
    """Whether the sign's bit is set: of negative numbers, -0 and -NaN."""
    if x._array.dtype == np.bool_:
        # False everywhere, in x's shape and layout: bools have no sign.
        return ops.logical_xor(x, x)
    return ops.signbit(x)


@function(out=True)
def isposinf(x: Tensor) -> Tensor:
    """Whether x is inf. Raises DTypeError for complex numbers."""
    _refuse_complex("isposinf", x)
    return ops.eq(x, math.inf) if x.dtype.is_floating_point else ops.ne(x, x)


@function(out=True)
def isneginf(x: Tensor) -> Tensor:
    """Whether x is -inf. Raises DTypeError for complex numbers."""
    _refuse_complex("isneginf", x)
    return ops.eq(x, -math.inf) if x.dtype.is_floating_point else ops.ne(x, x)


def _refuse_complex(name: str, x: Tensor) -> None:
    if dtypes.of(x._array.dtype).kind == "complex":
        raise DTypeError(f"{name}: input is {x.dtype.name}, which has no sign; ask of .real and .imag")


@function
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part is 0: true of every number that is not complex."""
    if x.dtype.is_complex:
        return ops.eq(x.imag, 0)  # type: ignore[attr-defined]
    return ones_like(x, dtype=dtypes.bool_)  # type: ignore[no-any-return]
