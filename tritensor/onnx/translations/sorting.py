"""Sorting in ONNX: sorts, the largest elements, search in sorted rows, counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.onnx.element_types import BOOL, INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates


def sort_first(g: Graph, x: Value, axis: int, k: Any, largest: bool) -> tuple[Value, Value]:
    """The k first elements in order and their places; of equal ones the first comes first, as TopK promises."""
    wide = g.cast(x, np.int32) if x.dtype.name in ("bool", "int8", "int16", "uint8", "uint16") else x
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
