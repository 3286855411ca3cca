"""Reductions, scans, sorts and searches in ONNX."""

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


@translates("sum", kind="ReduceSum")
@translates("prod", kind="ReduceProd")
@translates("mean", kind="ReduceMean")
def _reduce_as_result(g: Graph, x: Value, dim: Any, keepdim: bool = False, *, kind: str) -> Any:
    """In the type of the result: PyTorch adds integers up in int64, ONNX in their own."""
    return g.reduce(kind, g.cast(x, g.call.results[0].dtype), axes_of(x, dim), keepdim)


@translates("sum_of_squares")
def sum_of_squares(g: Graph, x: Value, dim: Any, keepdim: bool = False) -> Any:
    return g.reduce("ReduceSum", g.op("Mul", x, x, shape=x.shape), axes_of(x, dim), keepdim)


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


@translates("amax", kind="ReduceMax")
@translates("amin", kind="ReduceMin")
def _extreme(g: Graph, x: Value, dim: Any, keepdim: bool = False, *, kind: str) -> Any:
    return reduce_extreme(g, kind, x, axes_of(x, dim), keepdim)


def _count_true(g: Graph, x: Value, dim: Any, keepdim: bool) -> Value:
    """How many elements are true, of none 0."""
    # ReduceMax takes truth values from opset 20 on, and has no result of nothing
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


@translates("argmax", kind="ArgMax")
@translates("argmin", kind="ArgMin")
def _place_of_extreme(g: Graph, x: Value, dim: Any, keepdim: bool = False, *, kind: str) -> Any:
    # ArgMax needs an axis: all elements are one row
    if dim is None or not x.ndim:
        flat = arg_extreme(g, kind, g.op("Reshape", x, [-1]), 0, False)
        return g.op("Reshape", flat, [1] * x.ndim if keepdim else g.ints([]))
    return arg_extreme(g, kind, x, dim % x.ndim, keepdim)


@translates("max_dim", kind="Max")
@translates("min_dim", kind="Min")
def _extreme_and_place(g: Graph, x: Value, dim: Any, keepdim: bool = False, *, kind: str) -> Any:
    if not x.ndim:
        return g.op("Identity", x), g.const(np.int64(0))
    axis = dim % x.ndim
    at = arg_extreme(g, f"Arg{kind}", x, axis, keepdim)
    return reduce_extreme(g, f"Reduce{kind}", x, [axis], keepdim), at


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


@translates("cummax", kind="ArgMax", lowest=-math.inf)
@translates("cummin", kind="ArgMin", lowest=math.inf)
def _cumulative_extreme(g: Graph, x: Value, dim: int, kind: str, lowest: float) -> Any:
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


def sort_first(g: Graph, x: Value, axis: int, k: Any, largest: bool) -> tuple[Value, Value]:
    """The k first elements in order and their places; of equal ones the first comes first, as TopK promises."""
    wide = g.cast(x, np.int32) if x.dtype.name in ("bool", "int8", "int16", "uint8", "uint16") else x
    # Sort is no operator of ONNX: TopK of all is one
    values, at = g.op("TopK", wide, [k], axis=axis, largest=int(largest), sorted=1, outputs=2, dtype=(wide.dtype, INT64))
    return g.cast(values, x.dtype), at


def _sort_scalar(g: Graph, x: Value) -> tuple[Value, Value]:
    return g.op("Identity", x), g.const(np.int64(0))


@translates("sort")
def sort(g: Graph, x: Value, dim: int, descending: bool = False) -> Any:
    return sort_first(g, x, dim % x.ndim, x.shape[dim % x.ndim], descending) if x.ndim else _sort_scalar(g, x)


@translates("argsort")
def argsort(g: Graph, x: Value, dim: int, descending: bool = False) -> Any:
    return sort_first(g, x, dim % x.ndim, x.shape[dim % x.ndim], descending)[1] if x.ndim else g.const(np.int64(0))


@translates("sort_values")
def sort_values(g: Graph, x: Value, dim: int) -> Any:
    return sort_first(g, x, dim % x.ndim, x.shape[dim % x.ndim], False)[0] if x.ndim else g.op("Identity", x)


@translates("topk")
def topk(g: Graph, x: Value, k: Any, dim: int, largest: bool = True) -> Any:
    return sort_first(g, x, dim % x.ndim, k, largest) if x.ndim else _sort_scalar(g, x)


@translates("rank_place")
def rank_place(g: Graph, x: Value, dim: int, rank: int) -> Any:
    """The place of the element of a rank: the last of the rank + 1 smallest. Of a median (rank -1) half of all, NaN before all;
    of one without NaN (rank -2) half of the others."""
    if not x.ndim:
        return g.const(np.int64(0))
    axis = dim % x.ndim
    if rank >= 0 or not is_float(x.dtype):
        k = (x.shape[axis] - 1) // 2 if rank < 0 else rank
        return g.slice(sort_first(g, x, axis, k + 1, False)[1], axis, k, k + 1)
    # TopK leaves the order of NaN open; PyTorch's medians give it first or leave it out
    nan = g.op("IsNaN", x, dtype=BOOL)
    _, at = sort_first(g, g.where(nan, g.value(math.inf, x), x), axis, x.shape[axis], False)
    holes = g.cast(nan, np.int32)
    some = g.cast(g.reduce("ReduceMax", holes, [axis], True), BOOL)
    first = g.op("ArgMax", holes, axis=axis, keepdims=1, dtype=INT64)
    if rank == -1:
        k = (x.shape[axis] - 1) // 2
        return g.where(some, first, g.slice(at, axis, k, k + 1))
    count = g.reduce("ReduceSum", g.cast(g.op("Not", nan), INT64), [axis], True)
    middle = g.op("Max", g.op("Div", g.op("Sub", count, 1), 2), 0)
    found = g.op("GatherElements", at, middle, axis=axis)
    return g.where(g.op("Equal", count, 0, dtype=BOOL), first, found)


@translates("searchsorted")
def searchsorted(
    g: Graph, sorted_rows: Value, values: Value, sorter: Value | None = None, *, right: bool = False, out_int32: bool = False
) -> Any:  # fmt: skip
    """How many elements of the row are smaller (right: not larger); NaN is larger than all."""
    rows = sorted_rows
    if sorter is not None:
        rows = g.op("GatherElements", rows, sorter, axis=rows.ndim - 1, shape=rows.shape)
    n = values.ndim
    if rows.ndim == n and n:
        rows = g.unsqueeze(rows, [n - 1])
    sought = g.unsqueeze(values, [n])
    less = g.op("LessOrEqual" if right else "Less", rows, sought, dtype=BOOL)
    if is_float(values.dtype):
        nan = g.op("IsNaN", sought, dtype=BOOL)
        less = g.op("Or", less, nan if right else g.op("And", nan, g.op("Not", g.op("IsNaN", rows, dtype=BOOL))))
    return g.reduce("ReduceSum", g.cast(less, np.int32 if out_int32 else INT64), [-1], False)


@translates("count_keys")
def count_keys(g: Graph, keys: Value, weights: Value | None = None, *, size: int) -> Any:
    """Of each number how often it stands among the keys, or the sum of the weights that stand there."""
    kind = g.call.results[0].dtype
    flat = g.cast(g.op("Reshape", keys, [1, -1]), INT64)
    found = g.cast(g.op("Equal", flat, g.unsqueeze(g.range(size), [1]), dtype=BOOL), kind)
    if weights is not None:
        found = g.op("Mul", found, g.cast(g.op("Reshape", weights, [1, -1]), kind))
    return g.reduce("ReduceSum", found, [1], False)


@translates("nonzero_static")
def nonzero_static(g: Graph, x: Value, size: int, fill_value: int = -1) -> Any:
    """The first positions, as many as the trace saw, and the filling for those that are not there. Where the runs saw different numbers of them, all:
    their number is then one of the graph's own sizes."""
    if not x.ndim:
        return g.full((size, 0), fill_value, INT64)
    at = g.op("Transpose", g.op("NonZero", g.cast(x, BOOL), dtype=INT64), perm=[1, 0])
    if not isinstance(size, int):
        return at
    filling = g.const(np.full((size, x.ndim), fill_value), np.int64)
    return g.slice(g.op("Concat", at, filling, axis=0), 0, 0, size)
