"""Indexing in ONNX: gathers, scatters and embedding rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.onnx.element_types import BOOL, FLOAT, INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates


def as_index(g: Graph, index: Value) -> Value:
    """An index in a type that ONNX takes."""
    return index if index.dtype in (INT64, np.int32) else g.cast(index, INT64)


@translates("embedding")
def embedding(g: Graph, weight: Value, index: Value, padding_idx: int | None = None) -> Any:
    return g.op("Gather", weight, as_index(g, index), axis=0)


@translates("embedding_bag")
def embedding_bag(
    g: Graph, weight: Value, index: Value, edges: Value, scale: Value | None = None, *, padding_idx: int | None = None, length: int | None = None
) -> Any:  # fmt: skip
    """A product of a matrix, which says how much of each picked row a bag has, with the picked rows."""
    share = g.cast(_is_in_bag(g, index, edges, padding_idx), weight.dtype)
    if scale is not None:
        share = g.op("Mul", share, g.unsqueeze(scale, [0]))
    return g.op("MatMul", share, g.op("Gather", weight, as_index(g, index), axis=0))


def _is_in_bag(g: Graph, index: Value, edges: Value, padding_idx: int | None) -> Value:
    """(bags, indices): whether an index counts in a bag."""
    (n,) = index.shape
    at = g.unsqueeze(g.range(n), [0])
    ends = g.unsqueeze(g.cast(edges, INT64), [1])
    from_, to = g.slice(ends, 0, 0, -1), g.slice(ends, 0, 1, np.iinfo(np.int64).max)
    inside = g.op("And", g.op("LessOrEqual", from_, at, dtype=BOOL), g.op("Less", at, to, dtype=BOOL))
    if padding_idx is None:
        return inside  # type: ignore[no-any-return]
    other = g.op("Not", g.op("Equal", index, padding_idx, dtype=BOOL))
    return g.op("And", inside, g.unsqueeze(other, [0]))  # type: ignore[no-any-return]


@translates("bag_tops")
def bag_tops(g: Graph, weight: Value, index: Value, edges: Value, *, padding_idx: int | None = None, length: int | None = None) -> Any:
    """For each bag and column the row of the largest element, -1 of an empty bag."""
    inside = g.unsqueeze(_is_in_bag(g, index, edges, padding_idx), [2])  # (bags, n, 1)
    rows = g.unsqueeze(g.op("Gather", weight, as_index(g, index), axis=0), [0])  # (1, n, d)
    if index.shape == (0,):
        return g.full((edges.shape[0] - 1, weight.shape[1]), -1, INT64)
    low = g.where(inside, rows, g.value(-np.inf, weight))
    at = g.op("ArgMax", low, axis=1, keepdims=0, dtype=INT64)
    found = g.op("Gather", g.cast(index, INT64), at, axis=0)
    some = g.reduce("ReduceMax", g.cast(inside, np.int32), [1], False)  # (bags, 1)
    return g.where(g.cast(some, BOOL), found, g.const(np.int64(-1)))


# -- along one dimension
def _at_least_1d(g: Graph, x: Value) -> Value:
    return x if x.ndim else g.op("Reshape", x, [1], shape=(1,))


@translates("gather")
def gather(g: Graph, x: Value, index: Value, dim: int, called: str = "") -> Any:
    axis, data = dim % max(x.ndim, 1), _at_least_1d(g, x)
    cut = [d for d in range(x.ndim) if d != axis and x.shape[d] != index.shape[d]]
    if cut:  # as much of x as there are indices
        data = g.op("Slice", data, [0] * len(cut), [index.shape[d] for d in cut], cut)
    y = g.op("GatherElements", data, _at_least_1d(g, as_index(g, index)), axis=axis)
    return y if index.ndim else g.op("Reshape", y, g.ints([]))


@translates("scatter")
@translates("scatter_add", reduction="add")
def _scatter(g: Graph, x: Value, index: Value, source: Value, dim: int, reduction: str | None = None, called: str = "") -> Value:
    axis = dim % max(x.ndim, 1)
    # reductions came to ScatterElements with opset 16, max and min with 18
    if reduction is not None:
        g.needs(18 if reduction in ("max", "min") else 16, f"ScatterElements(reduction={reduction!r})")
    base, at, put = _at_least_1d(g, x), _at_least_1d(g, as_index(g, index)), _at_least_1d(g, source)
    if tuple(put.shape) != tuple(at.shape):  # of a larger source only as much as there are indices
        n = at.ndim
        put = g.op("Slice", put, [0] * n, list(at.shape), list(range(n)))
    y = g.op("ScatterElements", base, at, put, axis=axis, reduction=reduction, shape=base.shape)
    return y if x.ndim else g.op("Reshape", y, g.ints([]))  # type: ignore[no-any-return]


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}


@translates("scatter_reduce")
def scatter_reduce(
    g: Graph, x: Value, index: Value, source: Value, dim: int, reduce: str, include_self: bool = True, called: str = ""
) -> Any:  # fmt: skip
    """The reduction of all that arrives at an element, with what was there or, include_self=False, without it where something arrives."""
    base = x
    limits = (-np.inf, np.inf) if is_float(x.dtype) else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max) if x.dtype != BOOL else (0, 1)
    if not include_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": limits[0], "amin": limits[1]}[reduce]
        base = _scatter(g, x, index, g.full(index.shape, neutral, x.dtype), dim, None)
    found = _scatter(g, base, index, source, dim, _REDUCTIONS[reduce])
    if reduce != "mean":
        return found
    ones = g.full(x.shape, int(include_self), x.dtype)
    counts = g.op("Max", _scatter(g, ones, index, g.full(index.shape, 1, x.dtype), dim, "add"), 1)
    if is_float(x.dtype):
        return g.op("Div", found, counts)
    return g.op("Div", g.op("Sub", found, g.op("Mod", found, counts)), counts)


# -- by arrays of indices
def _split_dims(rank: int, dims: tuple[int, ...], front: bool) -> tuple[list[int], list[int], list[int]]:
    """Dimensions before the indexed ones in the result, the indexed ones, those behind."""
    before = [] if front else list(range(dims[0]))
    return before, list(dims), [d for d in range(rank) if d not in dims and d not in before]


def _stack_indices(g: Graph, indices: tuple[Value, ...]) -> Value:
    """Index arrays as rows of one position each, (..., dims)."""
    given = [g.cast(i, INT64) for i in indices]
    if len(given) == 1:
        return g.unsqueeze(given[0], [given[0].ndim])
    rank = max(i.ndim for i in given)
    shapes = [(1,) * (rank - i.ndim) + tuple(i.shape) for i in given]
    common = tuple([next((s[d] for s in shapes if s[d] != 1), 1) for d in range(rank)])
    wide = [g.op("Expand", i, list(common), shape=common) if tuple(i.shape) != common else i for i in given]
    return g.op("Concat", *[g.unsqueeze(i, [rank]) for i in wide], axis=rank, shape=(*common, len(given)))  # type: ignore[no-any-return]


@translates("index_get")
def index_get(g: Graph, x: Value, *indices: Value, dims: tuple[int, ...], front: bool, called: str = "getitem") -> Any:
    # one index array is a plain Gather; GatherND needs transposes around it
    if len(indices) == 1 and not front:
        return g.op("Gather", x, as_index(g, indices[0]), axis=dims[0])
    before, at, after = _split_dims(x.ndim, dims, front)
    rows = _stack_indices(g, indices)
    y = g.op("GatherND", g.transpose(x, [*at, *before, *after]), rows)  # (*index, *before, *after)
    if not before:
        return y
    n, lead = rows.ndim - 1, len(before)
    return g.op("Transpose", y, perm=[*range(n, n + lead), *range(n), *range(n + lead, n + lead + len(after))])


@translates("index_put")
def index_put(
    g: Graph, x: Value, value: Value, *indices: Value, dims: tuple[int, ...], front: bool, accumulate: bool = False, called: str = "setitem"
) -> Any:  # fmt: skip
    before, at, after = _split_dims(x.ndim, dims, front)
    order = [*at, *before, *after]
    rows = _stack_indices(g, indices)
    n, lead = rows.ndim - 1, len(before)
    updates = g.transpose(value, [*range(lead, lead + n), *range(lead), *range(lead + n, value.ndim)])
    if accumulate:
        g.needs(16, "ScatterND(reduction='add')")
    wide = FLOAT if accumulate and is_float(x.dtype) and x.dtype.itemsize == 2 else x.dtype  # sums of 16 bits
    whole = g.op("ScatterND", g.cast(g.transpose(x, order), wide), rows, g.cast(updates, wide), reduction="add" if accumulate else None)
    y = g.cast(whole, x.dtype)
    return g.transpose(y, [order.index(d) for d in range(x.ndim)])
