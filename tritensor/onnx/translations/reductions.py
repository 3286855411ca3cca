"""Reductions and scans in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.onnx.element_types import BOOL, FLOAT, INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.sizes import Varying


def axes_of(x: Value, dim: Any) -> list[int]:
    """The axes that `dim` names: all for None."""
    if dim is None:
        return list(range(x.ndim))
    return sorted({d % x.ndim for d in ((dim,) if isinstance(dim, int) else dim)}) if x.ndim else []


@translates("sum")
def sum(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    kind = g.call.results[0].dtype
    return g.reduce("ReduceSum", g.cast(x, kind), axes_of(x, dim), keepdim)


@translates("sum_of_squares")
def sum_of_squares(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    return g.reduce("ReduceSum", g.op("Mul", x, x, shape=x.shape), axes_of(x, dim), keepdim)


@translates("mean")
def mean(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    return g.reduce("ReduceMean", x, axes_of(x, dim), keepdim)


@translates("prod")
def prod(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    kind = g.call.results[0].dtype
    return g.reduce("ReduceProd", g.cast(x, kind), axes_of(x, dim), keepdim)


@translates("var")
def var(g: Graph, x: Value, dim: Any, correction: Any = 1, keepdim: bool = False) -> Any:
    """sum (x - mean)^2 / max(n - correction, 0)"""
    axes = axes_of(x, dim)
    apart = g.op("Sub", x, g.reduce("ReduceMean", x, axes, True), shape=x.shape)
    total = g.reduce("ReduceSum", g.op("Mul", apart, apart, shape=x.shape), axes, keepdim)
    n = math.prod([x.shape[d] for d in axes])
    if isinstance(n, Varying):
        left = g.op("Max", g.op("Sub", g.number(n, x.dtype), float(correction)), 0.0)
        return g.op("Div", total, left)
    return g.op("Div", total, float(max(n - correction, 0)))


def reduce_extreme(g: Graph, kind: str, x: Value, axes: list[int], keepdim: bool) -> Value:
    """ReduceMax or ReduceMin, which take no truth values and few kinds of integers."""
    wide = np.dtype(np.int32) if x.dtype.name in ("bool", "int16", "uint16", "int8", "uint8") else x.dtype
    return g.cast(g.reduce(kind, g.cast(x, wide), axes, keepdim), x.dtype)


def _enter_extreme(name: str, kind: str) -> None:
    @translates(name)
    def extreme(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
        return reduce_extreme(g, kind, x, axes_of(x, dim), keepdim)


_enter_extreme("amax", "ReduceMax")
_enter_extreme("amin", "ReduceMin")


def _count_true(g: Graph, x: Value, dim: Any, keepdim: bool) -> Value:
    """How many elements are true, of none 0."""
    return g.reduce("ReduceSum", g.cast(x, INT64), axes_of(x, dim), keepdim)


@translates("any")
def any(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    return g.op("Greater", _count_true(g, g.cast(x, BOOL), dim, keepdim), 0, dtype=BOOL)


@translates("all")
def all(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    return g.op("Equal", _count_true(g, g.op("Not", g.cast(x, BOOL)), dim, keepdim), 0, dtype=BOOL)


def arg_extreme(g: Graph, kind: str, x: Value, axis: int, keepdim: bool, last: bool = False) -> Value:
    """The place of the first (last) extreme along an axis."""
    given = g.cast(x, np.int32) if x.dtype == BOOL else x
    return g.op(kind, given, axis=axis, keepdims=int(keepdim), select_last_index=int(last) or None, dtype=INT64)  # type: ignore[no-any-return]


def _enter_arg(name: str, kind: str) -> None:
    @translates(name)
    def arg(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
        # ArgMax needs an axis: all elements are one row
        if dim is None or not x.ndim:
            flat = arg_extreme(g, kind, g.op("Reshape", x, [-1]), 0, False)
            return g.op("Reshape", flat, [1] * x.ndim if keepdim else g.ints([]))
        return arg_extreme(g, kind, x, dim % x.ndim, keepdim)


_enter_arg("argmax", "ArgMax")
_enter_arg("argmin", "ArgMin")


def _enter_extreme_with_index(name: str, kind: str) -> None:
    @translates(name)
    def both(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
        if not x.ndim:
            return g.op("Identity", x), g.const(np.int64(0))
        axis = dim % x.ndim
        at = arg_extreme(g, kind, x, axis, keepdim)
        return reduce_extreme(g, "ReduceMax" if kind == "ArgMax" else "ReduceMin", x, [axis], keepdim), at


_enter_extreme_with_index("max_dim", "ArgMax")
_enter_extreme_with_index("min_dim", "ArgMin")


# -- scans
@translates("cumsum")
def cumsum(g: Graph, x: Value, dim: int, reverse: bool = False) -> Any:
    kind = g.call.results[0].dtype
    if not x.ndim:
        return g.cast(g.op("Identity", x), kind)
    wide = kind if kind.name in ("float32", "float64", "int32", "int64") else FLOAT if is_float(kind) else INT64
    y = g.op("CumSum", g.cast(x, wide), g.const(np.int64(dim % x.ndim)), reverse=int(reverse) or None, shape=x.shape)
    return g.cast(y, kind)


def _collect_prefixes(g: Graph, x: Value, axis: int, outside: Any) -> Value:
    """x with a last axis more: of each element all up to it, `outside` for those behind it."""
    n, last = x.shape[axis], x.ndim - 1
    dims = [*[d for d in range(x.ndim) if d != axis], axis]
    rows = g.unsqueeze(g.transpose(x, dims), [last])  # (..., 1, n)
    i = g.range(n)
    seen = g.op("LessOrEqual", g.unsqueeze(i, [0]), g.unsqueeze(i, [1]), dtype=BOOL)  # (n, n)
    return g.where(seen, rows, g.value(outside, x))


def _restore_axis(g: Graph, y: Value, x: Value, axis: int) -> Value:
    """(..., n) with the scanned axis at its place."""
    dims = [*[d for d in range(x.ndim) if d != axis], axis]
    return g.op("Transpose", y, perm=[dims.index(d) for d in range(x.ndim)], shape=x.shape)  # type: ignore[no-any-return]


@translates("cumprod")
def cumprod(g: Graph, x: Value, dim: int) -> Any:
    kind = g.call.results[0].dtype
    x = g.cast(x, kind)
    if not x.ndim or x.shape[dim % x.ndim] == 0:
        return g.op("Identity", x)
    axis = dim % x.ndim
    return _restore_axis(g, g.reduce("ReduceProd", _collect_prefixes(g, x, axis, 1), [x.ndim], False), x, axis)


@translates("logcumsumexp")
def logcumsumexp(g: Graph, x: Value, dim: int) -> Any:
    if not x.ndim:
        return g.op("Identity", x)
    axis, kind = dim % x.ndim, x.dtype
    # the exponentials of 16-bit numbers overflow, and their sums lose digits
    if kind.itemsize == 2:
        x = g.cast(x, FLOAT)
    rows = _collect_prefixes(g, x, axis, -math.inf)
    most = g.reduce("ReduceMax", rows, [x.ndim], True)
    even = g.where(g.op("Equal", g.op("Abs", most), math.inf, dtype=BOOL), g.value(0.0, x), most)
    total = g.reduce("ReduceSum", g.op("Exp", g.op("Sub", rows, even)), [x.ndim], False)
    return g.cast(_restore_axis(g, g.op("Add", g.op("Log", total), g.squeeze(even, [x.ndim])), x, axis), kind)


def _enter_cumulative(name: str, kind: str, lowest: float) -> None:
    @translates(name)
    def extreme(g: Graph, x: Value, dim: int) -> Any:
        """The extreme so far, and the last place that it stands at."""
        if not x.ndim:
            return g.op("Identity", x), g.const(np.int64(0))
        if x.shape[dim % x.ndim] == 0:
            return g.op("Identity", x), g.full(x.shape, 0, INT64)
        axis, limits = dim % x.ndim, None if is_float(x.dtype) or x.dtype == BOOL else np.iinfo(x.dtype)
        outside = lowest if limits is None else limits.min if lowest < 0 else limits.max
        wide = g.cast(x, np.int32) if x.dtype == BOOL else x
        wide.shape = x.shape
        rows = _collect_prefixes(g, wide, axis, outside if x.dtype != BOOL else int(lowest > 0))
        last = arg_extreme(g, kind, rows, x.ndim, False, last=True)  # of no number but the one outside, a place beyond
        at = _restore_axis(g, g.op("Min", last, g.range(x.shape[axis])), x, axis)
        return g.op("GatherElements", x, at, axis=axis), at


_enter_cumulative("cummax", "ArgMax", -math.inf)
_enter_cumulative("cummin", "ArgMin", math.inf)
