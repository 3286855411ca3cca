"""Arithmetic in ONNX: sums and products, powers, roots, logarithms, angles, rounding, limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.onnx.element_types import BOOL, FLOAT, INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates

_UNARY = {
    "abs": "Abs", "neg": "Neg", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sqrt": "Sqrt", "reciprocal": "Reciprocal", "exp": "Exp",
    "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "sign": "Sign", "sigmoid": "Sigmoid", "selu": "Selu",
}  # fmt: skip


def _write_unary(g: Graph, x: Value, kind: str) -> Any:
    return g.op(kind, x, shape=x.shape)


for _name, _kind in _UNARY.items():
    translates(_name, kind=_kind)(_write_unary)


# ONNX computes with numbers or with truth values, by operators of other names
@translates("add", kind="Add", of_truth="Or")
@translates("sub", kind="Sub", of_truth="Xor")
@translates("mul", kind="Mul", of_truth="And")
@translates("div", kind="Div")
@translates("maximum", kind="Max", of_truth="Or")
@translates("minimum", kind="Min", of_truth="And")
def _write_binary(g: Graph, a: Any, b: Any, kind: str, of_truth: str = "") -> Any:
    x, y = as_operands(g, a, b)
    return g.op(of_truth if x.dtype == BOOL else kind, x, y)


def as_operands(g: Graph, a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands as values; a number has the other's type."""
    like = a if isinstance(a, Value) else b
    x, y = g.value(a, like), g.value(b, like)
    assert x is not None
    assert y is not None
    return x, y


@translates("square")
def square(g: Graph, x: Value) -> Any:
    return g.op("And" if x.dtype == BOOL else "Mul", x, x, shape=x.shape)


@translates("one_minus_square")
def one_minus_square(g: Graph, x: Value) -> Any:
    return g.op("Mul", g.op("Sub", 1.0, x), g.op("Add", 1.0, x))


@translates("rsqrt")
def rsqrt(g: Graph, x: Value) -> Any:
    return g.op("Reciprocal", g.op("Sqrt", x, shape=x.shape), shape=x.shape)


@translates("lerp")
def lerp(g: Graph, a: Any, b: Any, w: Any) -> Any:
    """a + w (b - a)"""
    like = next(x for x in (a, b, w) if isinstance(x, Value))
    a, b, w = (g.value(x, like) for x in (a, b, w))
    return g.op("Add", a, g.op("Mul", w, g.op("Sub", b, a)))


# -- division
@translates("remainder")
def remainder(g: Graph, a: Any, b: Any) -> Any:
    """What is left of a, with the sign of b."""
    x, y = as_operands(g, a, b)
    if not is_float(x.dtype):
        return g.op("Mod", x, y)
    # Mod of floats exists with the sign of the dividend alone (fmod=1)
    r = g.op("Mod", x, y, fmod=1)
    other = g.op("And", not_equal(g, r, 0.0), g.op("Less", g.op("Mul", g.op("Sign", r), g.op("Sign", y)), 0.0, dtype=BOOL))
    return g.where(other, g.op("Add", r, y), r)


@translates("fmod")
def fmod(g: Graph, a: Any, b: Any) -> Any:
    x, y = as_operands(g, a, b)
    return g.op("Mod", x, y, fmod=1)


@translates("floor_divide")
def floor_divide(g: Graph, a: Any, b: Any) -> Any:
    x, y = as_operands(g, a, b)
    if is_float(x.dtype):
        q = g.op("Round", g.op("Div", g.op("Sub", x, remainder(g, x, y)), y))
        special = g.op("Or", g.op("Equal", y, 0.0, dtype=BOOL), g.op("Equal", g.op("Abs", y), math.inf, dtype=BOOL))
        below = g.where(g.op("Less", g.op("Mul", g.op("Sign", x), g.op("Sign", y)), 0.0, dtype=BOOL), g.value(-1.0, x), g.op("Div", x, y))
        return g.where(special, g.where(g.op("Equal", y, 0.0, dtype=BOOL), g.op("Div", x, y), below), q)
    return g.op("Div", g.op("Sub", x, g.op("Mod", x, y)), y)


@translates("trunc_divide")
def trunc_divide(g: Graph, a: Any, b: Any) -> Any:
    x, y = as_operands(g, a, b)
    return trunc(g, g.op("Div", x, y)) if is_float(x.dtype) else g.op("Div", g.op("Sub", x, g.op("Mod", x, y, fmod=1)), y)


@translates("trunc")
def trunc(g: Graph, x: Value) -> Any:
    return g.where(g.op("Less", x, 0.0, dtype=BOOL), g.op("Ceil", x), g.op("Floor", x))


@translates("pow")
def pow(g: Graph, a: Any, b: Any) -> Any:
    x, y = as_operands(g, a, b)
    if is_float(x.dtype):
        return g.op("Pow", x, y)
    kind, x, y = x.dtype, g.cast(x, INT64), g.cast(y, INT64)
    found = g.op("Pow", x, g.op("Max", y, 0))
    if not isinstance(b, int):  # of a negative exponent only 1 and -1 are whole numbers
        even = g.op("Equal", g.op("Mod", y, 2), 0, dtype=BOOL)
        ones = g.where(g.op("Equal", g.op("Abs", x), 1, dtype=BOOL), g.where(even, g.value(1, x), x), g.value(0, x))
        found = g.where(g.op("Less", y, 0, dtype=BOOL), ones, found)
    return g.cast(found, kind)


# -- exponentials and logarithms
@translates("exp2")
def exp2(g: Graph, x: Value) -> Any:
    return g.op("Pow", g.value(2.0, x), x)


@translates("expm1")
def expm1(g: Graph, x: Value) -> Any:
    """e^x - 1 = tanh(x / 2) (e^x + 1), which does not cancel near 0."""
    return g.op("Mul", g.op("Tanh", g.op("Mul", x, 0.5)), g.op("Add", g.op("Exp", x), 1.0))


@translates("log1p")
def log1p(g: Graph, x: Value) -> Any:
    """log u x / (u - 1) with u = 1 + x as it was rounded (Kahan)."""
    u = g.op("Add", x, 1.0)
    d, log = g.op("Sub", u, 1.0), g.op("Log", u)
    small = g.where(g.op("Equal", d, 0.0, dtype=BOOL), x, g.op("Div", g.op("Mul", log, x), d))
    return g.where(g.op("Equal", d, x, dtype=BOOL), log, small)


@translates("log2", base=2.0)
@translates("log10", base=10.0)
def _log_of_base(g: Graph, x: Value, base: float) -> Any:
    return g.op("Div", g.op("Log", x), math.log(base))


@translates("logit")
def logit(g: Graph, x: Value) -> Any:
    return g.op("Sub", g.op("Log", x), log1p(g, g.op("Neg", x)))


@translates("logaddexp", base=math.e)
@translates("logaddexp2", base=2.0)
def _log_of_sum(g: Graph, a: Any, b: Any, base: float) -> Any:
    """max + log(1 + base^-|a - b|), in the base's logarithm"""
    x, y = as_operands(g, a, b)
    apart = g.op("Neg", g.op("Abs", g.op("Sub", x, y)))
    more = log1p(g, g.op("Exp", apart if base == math.e else g.op("Mul", apart, math.log(base))))
    more = more if base == math.e else g.op("Div", more, math.log(base))
    one = math.log(2.0) / math.log(base)
    return g.where(g.op("Equal", x, y, dtype=BOOL), g.op("Add", x, one), g.op("Add", g.op("Max", x, y), more))


@translates("xlogy")
@translates("xlog1py", log=log1p)
def xlogy(g: Graph, a: Any, b: Any, log: Any = None) -> Any:
    """a log b, 0 where a is 0, also at an infinite logarithm"""
    x, y = as_operands(g, a, b)
    zero = g.op("And", g.op("Equal", x, 0.0, dtype=BOOL), g.op("Not", g.op("IsNaN", y, dtype=BOOL)))
    return g.where(zero, g.value(0.0, x), g.op("Mul", x, g.op("Log", y) if log is None else log(g, y)))


@translates("entr")
def entr(g: Graph, x: Value) -> Any:
    """-x log x, 0 at 0, -inf below"""
    below = g.where(g.op("Less", x, 0.0, dtype=BOOL), g.value(-math.inf, x), g.op("Neg", g.op("Mul", x, g.op("Log", x))))
    return g.where(g.op("Equal", x, 0.0, dtype=BOOL), g.value(0.0, x), below)


# -- angles and lengths
@translates("atan2")
def atan2(g: Graph, a: Any, b: Any) -> Any:
    """The angle of (b, a): that of the right half plane, turned by pi in the left one. Two infinities stand for a diagonal."""
    y, x = as_operands(g, a, b)
    far = g.op("And", *[g.op("Equal", g.op("Abs", v), math.inf, dtype=BOOL) for v in (x, y)])
    p, q = (g.where(far, g.op("Sign", v), v) for v in (y, x))
    origin = g.op("And", *[g.op("Equal", v, 0.0, dtype=BOOL) for v in (x, y)])
    flat = g.where(origin, g.value(0.0, x), g.op("Atan", g.op("Div", p, q)))
    turn = g.where(signbit(g, y), g.value(-math.pi, x), g.value(math.pi, x))
    return g.where(signbit(g, x), g.op("Add", flat, turn), flat)


@translates("hypot")
def hypot(g: Graph, a: Any, b: Any) -> Any:
    """The root of both squares, of numbers that are divided by the larger one, so that nothing overflows."""
    x, y = g.op("Abs", as_operands(g, a, b)[0]), g.op("Abs", as_operands(g, a, b)[1])
    most, least = g.op("Max", x, y), g.op("Min", x, y)
    ratio = g.op("Div", least, g.where(g.op("Equal", most, 0.0, dtype=BOOL), g.value(1.0, x), most))
    found = g.op("Mul", most, g.op("Sqrt", g.op("Add", g.op("Mul", ratio, ratio), 1.0)))
    far = g.op("Or", *[g.op("Equal", v, math.inf, dtype=BOOL) for v in (x, y)])
    return g.where(far, g.value(math.inf, x), found)


@translates("real_angle")
def real_angle(g: Graph, x: Value) -> Any:
    found = g.where(g.op("Less", x, 0.0, dtype=BOOL), g.value(math.pi, x), g.value(0.0, x))
    return g.where(g.op("IsNaN", x, dtype=BOOL), x, found)


@translates("sinc")
def sinc(g: Graph, x: Value) -> Any:
    """sin(pi x) / (pi x), 1 at 0"""
    zero, t = g.op("Equal", x, 0.0, dtype=BOOL), g.op("Mul", x, math.pi)
    return g.where(zero, g.value(1.0, x), g.op("Div", g.op("Sin", t), g.where(zero, g.value(1.0, x), t)))


# -- the normal distribution
@translates("erfc")
def erfc(g: Graph, x: Value) -> Any:
    return g.op("Sub", 1.0, g.op("Erf", x))


@translates("ndtr")
def ndtr(g: Graph, x: Value) -> Any:
    return g.op("Mul", g.op("Add", g.op("Erf", g.op("Mul", x, math.sqrt(0.5))), 1.0), 0.5)


_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


@translates("erfinv")
def erfinv(g: Graph, x: Value) -> Any:
    """Two polynomials in -log(1 - x^2) (Giles, "Approximating the erfinv function", 2011)."""

    def polynomial(factors: tuple[float, ...], t: Value) -> Value:
        found: Any = g.value(factors[0], t)
        for c in factors[1:]:
            found = g.op("Add", g.op("Mul", found, t), c, like=t)
        return found  # type: ignore[no-any-return]

    w = g.op("Neg", g.op("Log", one_minus_square(g, x)))
    near = polynomial(_CENTRAL, g.op("Sub", w, 2.5))
    far = polynomial(_TAIL, g.op("Sub", g.op("Sqrt", g.op("Max", w, 0.0)), 3.0))
    found = g.op("Mul", g.where(g.op("Less", w, 5.0, dtype=BOOL), near, far), x)
    edge = g.op("Equal", g.op("Abs", x), 1.0, dtype=BOOL)
    return g.where(edge, g.op("Mul", x, math.inf), found)


# -- limits and choices
@translates("fmax", kind="Max", of_truth="Or")
@translates("fmin", kind="Min", of_truth="And")
def _ignore_nan(g: Graph, a: Any, b: Any, kind: str, of_truth: str) -> Any:
    """The larger or smaller one, and the other where one is NaN."""
    x, y = as_operands(g, a, b)
    found = _write_binary(g, x, y, kind, of_truth)
    if not is_float(x.dtype):
        return found
    return g.where(g.op("IsNaN", x, dtype=BOOL), y, g.where(g.op("IsNaN", y, dtype=BOOL), x, found))


@translates("clamp")
def clamp(g: Graph, x: Value, low: Any = None, high: Any = None) -> Any:
    # Clip takes scalars as limits, not tensors
    if not isinstance(low, Value) and not isinstance(high, Value):
        return g.op("Clip", x, low, high)
    x = x if low is None else g.op("Max", x, low)
    return x if high is None else g.op("Min", x, high)


@translates("where")
def where(g: Graph, condition: Value, a: Any, b: Any) -> Any:
    kind = g.call.results[0].dtype
    x, y = (v if isinstance(v, Value) else g.number(v, kind) for v in (a, b))
    return g.op("Where", g.cast(condition, BOOL), x, y, dtype=kind)


@translates("nan_to_num")
def nan_to_num(g: Graph, x: Value, nan: float = 0.0, posinf: float = 0.0, neginf: float = 0.0) -> Any:
    if not is_float(x.dtype):
        return x
    found = g.where(g.op("IsNaN", x, dtype=BOOL), g.value(nan, x), x)
    found = g.where(g.op("Equal", x, math.inf, dtype=BOOL), g.value(posinf, x), found)
    return g.where(g.op("Equal", x, -math.inf, dtype=BOOL), g.value(neginf, x), found)


@translates("copysign")
def copysign(g: Graph, a: Any, b: Any) -> Any:
    x, y = as_operands(g, a, b)
    size = g.op("Abs", x)
    return g.where(signbit(g, y), g.op("Neg", size), size)


@translates("signbit")
def signbit(g: Graph, x: Value) -> Any:
    """Whether x is below 0, or -0, whose inverse is -inf."""
    if x.dtype == BOOL or x.dtype.kind == "u":
        return g.full(g.call.results[0].shape, False, BOOL)
    below = g.op("Less", x, 0, dtype=BOOL)
    if not is_float(x.dtype):
        return below
    return g.op("Or", below, g.op("Equal", g.op("Reciprocal", x), -math.inf, dtype=BOOL))


def not_equal(g: Graph, a: Any, b: Any) -> Any:
    """a != b"""
    x, y = as_operands(g, a, b)
    return g.op("Not", g.op("Equal", x, y, dtype=BOOL))


def float_kind(x: Value) -> np.dtype[Any]:
    """The type to compute in what ONNX has for float16, float32 and float64 alone: float32 for bfloat16."""
    return x.dtype if x.dtype in (np.float16, np.float32, np.float64) else FLOAT
