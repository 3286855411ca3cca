"""Elementwise functions under PyTorch's names: arithmetic, transcendental functions, comparisons, selection, bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ground.strides import preserve_format
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import make_constant
from tritensor.tensor.functions.shaping.reshaping import to_c_order
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function, public, rename_function


def _publish_unary(name: str, doc: str, *aliases: str, inplace: Any = True, out: bool = True) -> Callable[..., Any]:
    """A function of one tensor that is its op and nothing else."""

    def call(x: Tensor) -> Tensor:
        return ops.abs(x)  # in whose place stands the name of this op: sooner found than by getattr

    return function(inplace=inplace, out=out, names=aliases)(rename_function(_name_op(call, name), name, doc))


def _name_op(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function whose body says ops.abs, of the op `name`: the interpreter caches an attribute of `ops`, and no getattr with a variable name."""
    call.__code__ = call.__code__.replace(co_names=tuple(name if n == "abs" else n for n in call.__code__.co_names))
    return call


_UNARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "neg": ("-x.", ("negative",)),
    "abs": ("The absolute value; its gradient at 0 is 0.", ("absolute",)),
    "sqrt": ("The square root, correctly rounded; NaN below 0.", ()),
    "rsqrt": ("1 / sqrt(x).", ()),
    "reciprocal": ("1 / x.", ()),
    "exp": ("e to the power x.", ()),
    "exp2": ("2 to the power x.", ()),
    "expm1": ("exp(x) - 1, accurate near 0.", ()),
    "log": ("The natural logarithm; NaN below 0.", ()),
    "log2": ("The logarithm to base 2.", ()),
    "log10": ("The logarithm to base 10.", ()),
    "log1p": ("log(1 + x), accurate near 0.", ()),
    "sin": ("The sine of x in radians.", ()),
    "cos": ("The cosine of x in radians.", ()),
    "tan": ("The tangent of x in radians.", ()),
    "asin": ("The inverse sine.", ("arcsin",)),
    "acos": ("The inverse cosine.", ("arccos",)),
    "atan": ("The inverse tangent.", ("arctan",)),
    "sinh": ("The hyperbolic sine.", ()),
    "cosh": ("The hyperbolic cosine.", ()),
    "tanh": ("The hyperbolic tangent.", ()),
    "asinh": ("The inverse hyperbolic sine.", ("arcsinh",)),
    "acosh": ("The inverse hyperbolic cosine.", ("arccosh",)),
    "atanh": ("The inverse hyperbolic tangent.", ("arctanh",)),
    "erf": ("The error function.", ()),
    "erfc": ("1 - erf(x), accurate where erf is near 1.", ()),
    "sigmoid": ("1 / (1 + exp(-x)).", ("expit",)),
    "relu": ("max(x, 0); the gradient at 0 is 0.", ()),
    "logical_not": ("Whether x is 0.", ()),
    "bitwise_not": ("Every bit flipped; `not` of booleans.", ("bitwise_invert",)),
}


def _require_real(x: Tensor) -> tuple[Tensor]:
    if x.is_complex():
        raise DTypeError(f"abs_: input is {x.dtype.name}, whose absolute values are real and have no place in it; use abs")
    return (x,)


# abs_ alone refuses complex numbers: a real result does not fit into their memory in place.
for _name, (_doc, _aliases) in _UNARY.items():
    _publish_unary(_name, _doc, *_aliases, inplace=_require_real if _name == "abs" else True)
for _name, _doc in {
    "isnan": "Whether x is NaN.",
    "isinf": "Whether x is infinite.",
    "isfinite": "Whether x is neither infinite nor NaN.",
}.items():
    _publish_unary(_name, _doc, inplace=False, out=False)


_EXACT_KINDS = frozenset(("bool", "int", "uint"))  # the kinds of types that have neither fractions nor NaN


def _copy_in_layout(x: Tensor) -> Tensor:
    """What changes no element of x, laid out as every elementwise result is."""
    return ops.copy(x, memory_format=preserve_format)


def _copy_exact(name: str, x: Tensor) -> Tensor:
    """Integers and truths are whole already, and come back copied."""
    if x.is_complex():
        raise DTypeError(f"{name}: input is {x.dtype.name}, which has no order; take it of x.real and x.imag")
    return _copy_in_layout(x)


def _publish_rounding(name: str, doc: str, *aliases: str) -> Callable[..., Any]:
    def call(x: Tensor) -> Tensor:
        return getattr(ops, name)(x) if x.dtype.is_floating_point else _copy_exact(name, x)

    # The op itself takes floats only; integers need no rounding.
    doc += " Integers come back copied. Raises DTypeError for complex numbers."
    return function(inplace=True, out=True, names=aliases)(rename_function(call, name, doc))


_publish_rounding("floor", "The largest whole number not above x.")
_publish_rounding("ceil", "The smallest whole number not below x.")
_publish_rounding("trunc", "x without its fraction.", "fix")


@function(inplace=True, out=True)
def round(x: Tensor, *, decimals: int = 0) -> Tensor:
    """x rounded to `decimals` places, halves to the even neighbour; integers come back copied.

    Raises DTypeError for complex numbers, and for integers with `decimals` below 0.
    """
    if not x.dtype.is_floating_point:
        # Tens of integers would have to be computed in floats, which lose digits.
        if decimals < 0 and not x.is_complex():
            raise DTypeError(f"round: input is {x.dtype.name}, decimals is {decimals}; tens are rounded of floats, cast it first")
        return _copy_exact("round", x)
    if decimals == 0:
        return ops.round(x)
    # A whole power of ten, multiplied or divided by: 10^-2 is no float, and would add a rounding.
    scale = 10.0 ** math.fabs(decimals)
    return ops.round(x * scale) / scale if decimals > 0 else ops.round(x / scale) * scale


@function(inplace=True, out=True)
def frac(x: Tensor) -> Tensor:
    """x - trunc(x)."""
    return x - ops.trunc(x)


@function(inplace=True, out=True)
def sign(x: Tensor) -> Tensor:
    """1, 0 or -1 by the sign of x; its gradient is 0. Raises DTypeError for complex numbers, which `sgn` takes."""
    if x.is_complex():
        raise DTypeError(f"sign: input is {x.dtype.name}, which has no order; use sgn, which is x / |x|")
    return ops.sign(x)


@function
def positive(x: Tensor) -> Tensor:
    """x itself. Raises DTypeError for bool."""
    if x._array.dtype == np.bool_:
        raise DTypeError("positive: input is bool, which has no sign; cast it with .to(...)")
    return x


@function(inplace=True, out=True)
def square(x: Tensor) -> Tensor:
    """x * x; whole numbers of bools."""
    # PyTorch's square of a bool is int64, as its pow is.
    return ops.square(ops.cast(x, dtype=np.dtype(np.int64)) if x._array.dtype == np.bool_ else x)


# -- two inputs
@function(inplace=True, out=True, names=("multiply",))
def mul(x: Tensor, other: Operand) -> Tensor:
    """x * other."""
    return ops.mul(x, other)


@function(inplace=True, out=True, names=("divide", "true_divide"))
def div(x: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """x / other.

    Args:
        rounding_mode: None (integers give floats), "floor" or "trunc" (the type stays; the gradient is 0).

    Raises:
        DivisionByZeroError: integers on the CPU divided by 0 with a rounding mode; on a GPU nothing is said.
    """
    # The usual division, before any string is compared.
    if rounding_mode is None:
        return ops.div(x, other)
    if rounding_mode == "floor":
        return ops.floor_divide(x, other)
    if rounding_mode != "trunc":
        raise ArgumentError(f"div: rounding_mode is {rounding_mode!r}; it is None, 'floor' or 'trunc'")
    return ops.trunc_divide(x, other)


def require_tensors(name: str, **given: Any) -> None:
    """Refuse numbers where PyTorch refuses them: a tensor is what a result's type and device come from."""
    for label, x in given.items():
        if isinstance(x, bool | int | float | complex):
            raise TypeError(f"{name}: {label} is the number {x!r}; give a tensor (tritensor.tensor({x!r}))")


def _publish_binary(
    name: str, doc: str, *aliases: str, also: dict[str, str] | None = None, numbers: str = "either", inplace: bool = True
) -> Callable[..., Any]:
    """A function of two inputs that is its op and nothing else. `numbers` says which of them may be one: "either", "other" or "none", and "power"."""

    def either(x: Operand, other: Operand) -> Tensor:
        return ops.abs(x, other)

    def power(x: Operand, other: Operand) -> Tensor:
        if type(x) is not Tensor and type(other) is Tensor:  # a number's powers are in C order in PyTorch
            other = to_c_order(other)
        return ops.abs(x, other)

    def first(x: Tensor, other: Operand) -> Tensor:
        if type(x) is not Tensor:
            require_tensors(name, input=x)
        return ops.abs(x, other)

    def both(x: Tensor, other: Tensor) -> Tensor:
        if type(x) is not Tensor or type(other) is not Tensor:
            require_tensors(name, input=x, other=other)
        return ops.abs(x, other)

    # type() first in each: isinstance of every operand would be paid by every call.
    call = {"either": either, "other": first, "none": both, "power": power}[numbers]
    return function(inplace=inplace, out=True, names=aliases, also=also)(rename_function(_name_op(call, name), name, doc))


BINARY: dict[str, tuple[str, tuple[str, ...]]] = {
    "floor_divide": (
        "floor(x / other) in x's type; integers on the CPU divided by 0 raise DivisionByZeroError, on a GPU nothing is said.",
        (),
    ),
    "remainder": ("x - floor(x / other) * other: it has the sign of other.", ()),
    "fmod": ("x - trunc(x / other) * other: it has the sign of x.", ()),
    "atan2": ("The angle of the point (other, x), in (-pi, pi].", ("arctan2",)),
    "eq": ("Whether x == other, element by element.", ()),
    "ne": ("Whether x != other.", ("not_equal",)),
    "lt": ("Whether x < other.", ("less",)),
    "le": ("Whether x <= other.", ("less_equal",)),
    "gt": ("Whether x > other.", ("greater",)),
    "ge": ("Whether x >= other.", ("greater_equal",)),
    "logical_and": ("Whether neither is 0.", ()),
    "logical_or": ("Whether one of them is not 0.", ()),
    "logical_xor": ("Whether exactly one of them is 0.", ()),
    "bitwise_and": ("Bits set in both.", ()),
    "bitwise_or": ("Bits set in one or both.", ()),
    "bitwise_xor": ("Bits set in one only.", ()),
    "bitwise_left_shift": ("Bits shifted up by other.", ()),
    "bitwise_right_shift": ("Bits shifted down by other.", ()),
    "copysign": ("|x| with the sign of other, also that of -0 and of NaN; integers give floats.", ()),
    "nextafter": ("The next number after x towards other. Floating types only; its gradient is x's, none where they are equal.", ()),
    "fmax": ("The larger of x and other, the other one where one is NaN; at a tie the gradient is x's.", ()),
    "fmin": ("The smaller of x and other, the other one where one is NaN; at a tie the gradient is x's.", ()),
    "maximum": ("The larger of x and other, NaN where either is; at a tie each gets half of the gradient.", ()),
    "minimum": ("The smaller of x and other, NaN where either is; at a tie each gets half of the gradient.", ()),
    "gcd": ("The greatest common divisor of integers; gcd(0, 0) is 0.", ()),
    "lcm": ("The least common multiple of integers, 0 where one of them is 0.", ()),
    "hypot": (
        "sqrt(x^2 + other^2), whose squares neither overflow nor vanish; inf where one is infinite, NaN beside it or not. "
        "Its gradient at the origin is 0.",
        (),
    ),
    "logaddexp": ("log(exp(x) + exp(other)) without overflow. Between two equal infinities its gradient is NaN.", ()),
    "logaddexp2": ("log2(2^x + 2^other) without overflow.", ()),
    "xlogy": ("x * log(other), 0 where x is 0 and other no NaN; integers give floats. One of them may be a number.", ()),
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SECOND_MAY_BE_NUMBER = {"fmod", "copysign", *COMPARISONS}
_TENSORS_ONLY = {
    "atan2", "logical_and", "logical_or", "logical_xor", "nextafter", "maximum", "minimum", "fmax", "fmin", "gcd", "lcm", "hypot",
    "logaddexp", "logaddexp2",
}  # fmt: skip
# As in PyTorch; comparing.py has the comparisons' own in-place forms.
_NOT_IN_PLACE = {"maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", *COMPARISONS}
for _name, (_doc, _aliases) in BINARY.items():
    _kind = "other" if _name in _SECOND_MAY_BE_NUMBER else "none" if _name in _TENSORS_ONLY else "either"
    _publish_binary(_name, _doc, *_aliases, numbers=_kind, inplace=_name not in _NOT_IN_PLACE)
maximum, minimum, logaddexp, xlogy = (public[_name] for _name in ("maximum", "minimum", "logaddexp", "xlogy"))  # imported by name elsewhere
_publish_binary("pow", "x to the power other; integers stay integers.", also={"exponent": "other"}, numbers="power")


# -- selection
def promote_operands(name: str, *values: Any) -> list[Any]:
    """Tensors among the values cast to the type that all of them promote to."""
    # Numbers stay numbers: they do not outrank the tensors beside them.
    common = dtypes.result_type([v._array if isinstance(v, Tensor) else v for v in values], name)
    return [ops.cast(v, dtype=common) if isinstance(v, Tensor) and v._array.dtype != common else v for v in values]


@function(method=False, out=True)
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """input where condition holds, else other: tensors that broadcast, or numbers. With condition alone: where it holds, as `nonzero(as_tuple=True)`.

    >>> x = tt.tensor([-1.0, 2.0])
    >>> tt.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    # where(condition) is numpy's one-argument form.
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    a, b = promote_operands("where", input, other)
    return ops.where(condition, a, b)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """self where condition holds, else other."""
    return where(condition, self, other)


Tensor.where = _where_method  # type: ignore[assignment, method-assign]


@function(inplace=True, out=True, names=("clip",))
def clamp(x: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """x, but at least min and at most max (tensors that broadcast, numbers, or None); max wins where min exceeds it."""
    return ops.clamp(x, min, max)


@function(inplace=True, out=True)
def clamp_min(x: Tensor, min: Operand) -> Tensor:
    """x, but at least min."""
    return ops.clamp(x, min, None)


@function(inplace=True, out=True)
def clamp_max(x: Tensor, max: Operand) -> Tensor:
    """x, but at most max."""
    return ops.clamp(x, None, max)


@function(inplace=True)
def masked_fill(x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """x with `value`, a number or 0-d tensor, where mask is True; the number becomes one of x's type. The result is contiguous."""
    if mask._array.dtype != np.bool_:
        raise DTypeError(f"masked_fill: mask is {mask.dtype.name}, not bool; compare it, as in mask != 0")
    if not isinstance(value, Tensor):
        value = dtypes.as_element(x._array.dtype, value, "masked_fill")
    elif value._array.shape:
        raise ShapeError(f"masked_fill: value has shape {tuple(value._array.shape)}; give a number or a 0-d tensor, or use where")
    elif value._array.dtype != x._array.dtype:
        value = ops.cast(value, dtype=x._array.dtype)
    # PyTorch's masked_fill gives C order, where does not.
    return to_c_order(ops.where(mask, value, x))


@function(inplace=True, out=True)
def nan_to_num(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with NaN (by 0) and infinities replaced, infinities by the type's largest and smallest values unless given; so both parts of complex numbers."""
    if x.is_complex():
        return ops.complex(nan_to_num(ops.real(x), nan, posinf, neginf), nan_to_num(ops.imag(x), nan, posinf, neginf))
    # Integers hold neither NaN nor infinities.
    if x.dtype.kind in _EXACT_KINDS:
        return _copy_in_layout(x)
    # Finite in x's own type: float64's largest number would be infinite in float16.
    largest = float(_largest_number(x._array.dtype))
    high, low = largest if posinf is None else float(posinf), -largest if neginf is None else float(neginf)
    return ops.nan_to_num(x, nan=0.0 if nan is None else float(nan), posinf=high, neginf=low)


def _largest_number(dtype: np.dtype) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype).max


# -- combinations


@function(inplace=True, out=True)
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), NaN outside [0, 1] as is its gradient; x first clamped to [eps, 1 - eps] where eps is given."""
    if eps is not None:
        x = ops.clamp(x, eps, 1 - eps)
    return ops.logit(x)


@function(inplace=True, out=True)
def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians."""
    return x * (math.pi / 180)


@function(inplace=True, out=True)
def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees."""
    return x * (180 / math.pi)


@function(inplace=True, out=True)
def heaviside(x: Tensor, values: Tensor) -> Tensor:
    """0 below 0, `values` at 0, 1 above; constant in x. Raises DTypeError for two types, and for complex numbers."""
    require_tensors("heaviside", input=x, values=values)
    if x._array.dtype != values._array.dtype:
        raise DTypeError(f"heaviside: input is {x.dtype.name}, values is {values.dtype.name}; cast one of them with .to(...)")
    return make_constant("heaviside", ops.where(ops.eq(x, 0), values, ops.cast(ops.gt(x, 0), dtype=x._array.dtype)), x)
