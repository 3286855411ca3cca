"""Comparisons, truth values and bits in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.onnx.element_types import BOOL, FLOAT, INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations.arithmetic import as_operands


@translates("eq")
def eq(g: Graph, a: Any, b: Any) -> Any:
    return g.op("Equal", *as_operands(g, a, b), dtype=BOOL)


@translates("ne")
def ne(g: Graph, a: Any, b: Any) -> Any:
    return g.op("Not", eq(g, a, b))


@translates("lt", kind="Less")
@translates("le", kind="LessOrEqual")
@translates("gt", kind="Greater")
@translates("ge", kind="GreaterOrEqual")
def _compare(g: Graph, a: Any, b: Any, kind: str) -> Any:
    x, y = as_operands(g, a, b)
    if x.dtype == BOOL:  # which has no order in ONNX
        x, y = g.cast(x, np.int32), g.cast(y, np.int32)
    return g.op(kind, x, y, dtype=BOOL)


@translates("logical_and", kind="And")
@translates("logical_or", kind="Or")
@translates("logical_xor", kind="Xor")
def _of_truth(g: Graph, a: Any, b: Any, kind: str) -> Any:
    return g.op(kind, *[g.cast(x, BOOL) for x in as_operands(g, a, b)])


@translates("logical_not")
def logical_not(g: Graph, x: Value) -> Any:
    return g.op("Not", g.cast(x, BOOL))


@translates("bitwise_and", kind="And")
@translates("bitwise_or", kind="Or")
@translates("bitwise_xor", kind="Xor")
@translates("bitwise_not", kind="Not")
def _of_bits(g: Graph, *operands: Any, kind: str) -> Any:
    xs = as_operands(g, *operands) if len(operands) == 2 else operands
    if xs[0].dtype == BOOL:
        return g.op(kind, *xs)
    g.needs(18, f"Bitwise{kind}")
    return g.op(f"Bitwise{kind}", *xs)


def _power_of_two(g: Graph, b: Value) -> Value:
    return g.op("Pow", g.const(np.int64(2)), g.cast(b, INT64))  # type: ignore[no-any-return]


@translates("bitwise_left_shift")
def left(g: Graph, a: Any, b: Any) -> Any:
    """a 2^b; BitShift is for unsigned numbers alone."""
    x, y = as_operands(g, a, b)
    return g.cast(g.op("Mul", g.cast(x, INT64), _power_of_two(g, y)), x.dtype)


@translates("bitwise_right_shift")
def right(g: Graph, a: Any, b: Any) -> Any:
    """The floor of a / 2^b"""
    x, y = as_operands(g, a, b)
    power, wide = _power_of_two(g, y), g.cast(x, INT64)
    # Div cuts off towards 0: the remainder is taken off before it
    return g.cast(g.op("Div", g.op("Sub", wide, g.op("Mod", wide, power)), power), x.dtype)


@translates("isnan")
def isnan(g: Graph, x: Value) -> Any:
    return g.op("IsNaN", x, dtype=BOOL) if is_float(x.dtype) else g.full(x.shape, False, BOOL)


@translates("isinf")
def isinf(g: Graph, x: Value) -> Any:
    if not is_float(x.dtype):
        return g.full(x.shape, False, BOOL)
    # IsInf takes 16-bit types from opset 20 on
    return g.op("IsInf", x if x.dtype in (np.float32, np.float64) or g.opset >= 20 else g.cast(x, FLOAT), dtype=BOOL)


@translates("isfinite")
def isfinite(g: Graph, x: Value) -> Any:
    if not is_float(x.dtype):
        return g.full(x.shape, True, BOOL)
    return g.op("Not", g.op("Or", isnan(g, x), isinf(g, x)))
