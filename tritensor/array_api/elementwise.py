"""Elementwise functions of the array API standard, over the same ops; only names and promotion are the standard's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tritensor.array_api.operands import common_type, functions, promote_operands, require_array, to_dtype
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

# What a name of the standard is called among our functions, and what it gives.
_UNARY = {
    "abs": ("abs", "The absolute value; of complex numbers the modulus."),
    "acos": ("acos", "The inverse cosine."),
    "acosh": ("acosh", "The inverse hyperbolic cosine."),
    "asin": ("asin", "The inverse sine."),
    "asinh": ("asinh", "The inverse hyperbolic sine."),
    "atan": ("atan", "The inverse tangent."),
    "atanh": ("atanh", "The inverse hyperbolic tangent."),
    "bitwise_invert": ("bitwise_not", "Every bit flipped."),
    "ceil": ("ceil", "The smallest whole number not below x."),
    "conj": ("conj", "The complex conjugate."),
    "cos": ("cos", "The cosine of x in radians."),
    "cosh": ("cosh", "The hyperbolic cosine."),
    "exp": ("exp", "e to the power x."),
    "floor": ("floor", "The largest whole number not above x."),
    "isfinite": ("isfinite", "Whether x is neither infinite nor NaN."),
    "isinf": ("isinf", "Whether x is infinite."),
    "isnan": ("isnan", "Whether x is NaN."),
    "log": ("log", "The natural logarithm."),
    "log1p": ("log1p", "log(1 + x), accurate near 0."),
    "log2": ("log2", "The logarithm to base 2."),
    "log10": ("log10", "The logarithm to base 10."),
    "logical_not": ("logical_not", "Whether x is false."),
    "negative": ("neg", "-x."),
    "positive": ("positive", "x."),
    "real": ("real", "The real part."),
    "reciprocal": ("reciprocal", "1 / x."),
    "signbit": ("signbit", "Whether the sign bit is set, that of -0 and of NaN too."),
    "sin": ("sin", "The sine of x in radians."),
    "sinh": ("sinh", "The hyperbolic sine."),
    "square": ("square", "x * x."),
    "sqrt": ("sqrt", "The square root."),
    "tan": ("tan", "The tangent of x in radians."),
    "tanh": ("tanh", "The hyperbolic tangent."),
    "trunc": ("trunc", "x without its fraction."),
}
_BINARY = {
    "add": ("add", "x1 + x2."),
    "atan2": ("atan2", "The angle of the point (x2, x1), in [-pi, pi]."),
    "bitwise_and": ("bitwise_and", "Bits set in both."),
    "bitwise_left_shift": ("bitwise_left_shift", "Bits shifted up by x2."),
    "bitwise_or": ("bitwise_or", "Bits set in one or both."),
    "bitwise_right_shift": ("bitwise_right_shift", "Bits shifted down by x2."),
    "bitwise_xor": ("bitwise_xor", "Bits set in one only."),
    "copysign": ("copysign", "The size of x1 with the sign of x2."),
    "divide": ("div", "x1 / x2."),
    "equal": ("eq", "Whether x1 == x2."),
    "greater": ("gt", "Whether x1 > x2."),
    "greater_equal": ("ge", "Whether x1 >= x2."),
    "hypot": ("hypot", "The square root of x1^2 + x2^2."),
    "less": ("lt", "Whether x1 < x2."),
    "less_equal": ("le", "Whether x1 <= x2."),
    "logaddexp": ("logaddexp", "log(exp(x1) + exp(x2))."),
    "logical_and": ("logical_and", "Whether both are true."),
    "logical_or": ("logical_or", "Whether one or both are true."),
    "logical_xor": ("logical_xor", "Whether exactly one is true."),
    "maximum": ("maximum", "The larger one, NaN where either is."),
    "minimum": ("minimum", "The smaller one, NaN where either is."),
    "multiply": ("mul", "x1 * x2."),
    "nextafter": ("nextafter", "The next number after x1 towards x2."),
    "not_equal": ("ne", "Whether x1 != x2."),
    "pow": ("pow", "x1 to the power x2."),
    "subtract": ("sub", "x1 - x2."),
}


def _make_unary(name: str, function: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /) -> Tensor:
        return getattr(functions, function)(require_array(name, x))

    return rename_function(call, name, doc)


def _make_binary(name: str, op: str, doc: str) -> Callable[..., Tensor]:
    def call(x1: Any, x2: Any, /) -> Tensor:
        # Promotion costs more than a small op: two arrays of one type need none.
        alike = isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1._array.dtype is x2._array.dtype
        a, b = (x1, x2) if alike else promote_operands(name, x1, x2)
        return getattr(ops, op)(a, b)

    return rename_function(call, name, doc)


made: dict[str, Callable[..., Tensor]] = {n: _make_unary(n, *given) for n, given in _UNARY.items()} | {
    n: _make_binary(n, *given) for n, given in _BINARY.items()
}
globals().update(made)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part; zeros for real numbers."""
    return functions.imag(x) if require_array("imag", x).is_complex() else functions.zeros_like(x)


def sign(x: Tensor, /) -> Tensor:
    """1, 0 or -1 by the sign of x; x / |x| for complex numbers, and NaN for NaN."""
    # The standard's sign of NaN is NaN, and of complex numbers x / |x|: PyTorch's sign gives 0 and refuses.
    if require_array("sign", x).is_complex():
        return functions.sgn(x)
    return functions.where(functions.isnan(x), x, functions.sign(x)) if x.is_floating_point() else functions.sign(x)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole number, halves to the even neighbour; of complex numbers both parts."""
    if require_array("round", x).is_complex():
        return functions.complex(functions.round(functions.real(x)), functions.round(functions.imag(x)))
    return functions.round(x)


def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, accurate near 0; of complex infinities as exp has them."""
    if not require_array("expm1", x).is_complex():
        return functions.expm1(x)
    far = functions.logical_or(~functions.isfinite(x), x == 0)  # the formula for finite numbers makes NaN of infinities, -0 of 0
    return functions.where(far, functions.exp(x) - 1, functions.expm1(x))


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """floor(x1 / x2), of infinities too, which PyTorch makes NaN or -1 of."""
    a, b = promote_operands("floor_divide", x1, x2)
    found = ops.floor_divide(a, b)
    # Integers have no infinities.
    if not found.is_floating_point():
        return found
    quotient = ops.div(a, b)
    # Where one is infinite the quotient is exact: infinite, 0 with its sign, or NaN.
    return ops.where(_find_infinite(a, b), ops.floor(quotient), found)


def _find_infinite(*values: Any) -> Any:
    """Where one of the values, arrays or numbers, is infinite."""
    found = [ops.isinf(v) if isinstance(v, Tensor) else math.isinf(v) for v in values]
    return ops.logical_or(*found)


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """x1 - floor(x1 / x2) * x2, which has the sign of x2, where it is 0 too."""
    a, b = promote_operands("remainder", x1, x2)
    found = ops.remainder(a, b)
    # Of an exact division the standard wants the zero with x2's sign.
    return ops.where(ops.eq(found, 0), ops.copysign(found, b), found) if found.is_floating_point() else found


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x, but at least min and at most max (arrays that broadcast, numbers, or None), in x's type."""
    given = [v for v in (min, max) if v is not None]
    kind = require_array("clip", x)._array.dtype
    if not given:
        # The standard allows both bounds to be missing; PyTorch refuses that.
        return functions.clone(x)
    # Compared in the common type and cast back: the standard gives x's type.
    common = common_type("clip", x, *given)
    low, high = (to_dtype(v, common) if isinstance(v, Tensor) else v for v in (min, max))
    return to_dtype(functions.clamp(to_dtype(x, common), low, high), kind)


__all__ = sorted([*made, "clip", "expm1", "floor_divide", "imag", "remainder", "round", "sign"])
