"""Views and rearrangements in ONNX, and the base of a view after a write into the view."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.onnx.errors import DynamicAxisError, UnsupportedOperatorError
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.sizes import is_static_shape
from tritensor.ops.table import registry as ops

END = np.iinfo(np.int64).max


@translates("reshape")
def reshape(g: Graph, x: Value, shape: tuple[Any, ...]) -> Any:
    return g.reshape(x, shape)


@translates("permute")
def permute(g: Graph, x: Value, dims: tuple[int, ...]) -> Any:
    return g.transpose(x, [d % x.ndim for d in dims])


@translates("expand")
def expand(g: Graph, x: Value, shape: tuple[Any, ...]) -> Any:
    return g.expand(x, shape)


@translates("copy")
def copy(g: Graph, x: Value, memory_format: Any = None) -> Any:
    return x


@translates("cast")
def cast(g: Graph, x: Value, dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if "c" in (kind.kind, x.dtype.kind):
        raise UnsupportedOperatorError(f"ONNX's operators take no complex numbers ({x.dtype} to {kind})")
    return g.cast(x, kind)


# -- basic indices
@translates("index_view")
def index_view(g: Graph, x: Value, index: tuple[Any, ...]) -> Any:
    """One Slice for all that is cut, a Squeeze for numbers, an Unsqueeze for new axes."""
    starts, stops, axes, steps, dropped, new = [], [], [], [], [], []
    d = out = 0
    for i in index:
        if i is None:
            new.append(out)
            out += 1
            continue
        start, stop, step, whole = _slice_bounds(i)
        if not whole:
            starts.append(start)
            stops.append(stop)
            axes.append(d)
            steps.append(step)
        if not isinstance(i, slice):
            dropped.append(d)
        else:
            out += 1
        d += 1
    y = g.op("Slice", x, starts, stops, axes, steps) if axes else x
    if dropped:
        y = g.op("Squeeze", y, dropped)
    return g.op("Unsqueeze", y, new) if new else y


def _slice_bounds(i: Any) -> tuple[Any, Any, int, bool]:
    """Start, stop and step of an entry of an index, and whether it takes the whole axis."""
    if not isinstance(i, slice):
        # to the axis's end: -1 + 1 would be its beginning
        last = isinstance(i, int) and i == -1
        return i, END if last else i + 1, 1, False
    step = 1 if i.step is None else i.step
    start = (0 if step > 0 else END) if i.start is None else i.start
    stop = (END if step > 0 else -END) if i.stop is None else i.stop
    return start, stop, step, i.start in (None, 0) and i.stop is None and step == 1


# -- other views, by positions
def _positions_of_view(name: str, shape: tuple[int, ...], how: dict[str, Any]) -> np.ndarray:
    """Which elements of an array of a shape a view reads, counted in C order."""
    return np.asarray(ops[name].cpu(np.arange(math.prod(shape)).reshape(shape), **how))


@translates("as_strided")
def as_strided(g: Graph, x: Value, shape: Any, strides: Any, offset: int) -> Any:
    sizes = [g.number_of(n, "as_strided: a size") for n in (*x.shape, *shape, *strides, offset)]
    at = _positions_of_view("as_strided", (sizes[0],), {"shape": tuple(shape), "strides": tuple(strides), "offset": offset})
    return g.op("Gather", x, g.const(at, np.int64), axis=0)


@translates("diagonal")
def diagonal(g: Graph, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    first, second = dim1 % x.ndim, dim2 % x.ndim
    rest = [d for d in range(x.ndim) if d not in (first, second)]
    rows, columns = (g.number_of(x.shape[d], "diagonal: the size of a matrix") for d in (first, second))
    at = np.diagonal(np.arange(rows * columns).reshape(rows, columns), offset)
    flat = g.reshape(g.transpose(x, [*rest, first, second]), (*[x.shape[d] for d in rest], rows * columns))
    return g.op("Gather", flat, g.const(at, np.int64), axis=len(rest))


@translates("unfold")
def unfold(g: Graph, x: Value, dim: int, size: int, step: int) -> Any:
    """Element k of window i stands at i step + k."""
    axis = dim % x.ndim
    count = (x.shape[axis] - size) // step + 1
    starts = g.op("Mul", g.range(count), step)
    at = g.op("Add", g.unsqueeze(starts, [1]), g.const(np.arange(size)[None], np.int64))
    y = g.op("Gather", x, at, axis=axis)
    n = x.ndim + 1
    return g.op("Transpose", y, perm=[*range(axis + 1), *range(axis + 2, n), axis + 1])


# -- joining and order
@translates("cat")
def cat(g: Graph, *xs: Value, dim: int) -> Any:
    return g.op("Concat", *xs, axis=dim % xs[0].ndim) if len(xs) > 1 else xs[0]


@translates("stack")
def stack(g: Graph, *xs: Value, dim: int) -> Any:
    axis = dim % (xs[0].ndim + 1)
    return g.op("Concat", *[g.unsqueeze(x, [axis]) for x in xs], axis=axis)


@translates("flip")
def flip(g: Graph, x: Value, dims: Any) -> Any:
    axes = [d % x.ndim for d in dims if x.shape[d % x.ndim] != 0]
    n = len(axes)
    return g.op("Slice", x, [-1] * n, [-END] * n, axes, [-1] * n, shape=x.shape) if axes else x


@translates("roll")
def roll(g: Graph, x: Value, shifts: Any, dims: Any) -> Any:
    for shift, dim in zip(shifts, dims, strict=True):
        d = dim % x.ndim
        n = x.shape[d]
        # two slices need the size as a number; else positions are computed in the graph
        if not isinstance(n, int):
            at = g.op("Mod", g.op("Sub", g.range(n), shift), g.number(n, np.int64))
            x = g.op("Gather", x, at, axis=d, shape=x.shape)
            continue
        k = shift % n if n else 0
        if k:
            x = g.op("Concat", g.slice(x, d, n - k, END), g.slice(x, d, 0, n - k), axis=d, shape=x.shape)
    return x


# -- writes in place
@translates("write_view")
def write_view(g: Graph, base: Value, x: Value, view: str, how: dict[str, Any]) -> Any:
    """The base after x was written over a view of it."""
    if view == "reshape":
        return g.reshape(x, base.shape)
    if view == "permute":
        dims = [d % base.ndim for d in how["dims"]]
        return g.transpose(x, [dims.index(d) for d in range(len(dims))])
    if view == "index_view":
        new = [k for k, i in enumerate([i for i in how["index"] if i is None or isinstance(i, slice)]) if i is None]
        y = g.squeeze(x, new)
        y = g.unsqueeze(y, [d for d, i in enumerate(i for i in how["index"] if i is not None) if not isinstance(i, slice)])
        return _write_cuts(g, base, y, _find_cuts(how["index"]))
    if not is_static_shape(base.shape):
        raise DynamicAxisError(f"a write in place through {view} needs the sizes of what is written, {base.shape}, as numbers")
    at = _positions_of_view(view, base.shape, how).reshape(-1)
    flat = g.op("ScatterElements", g.reshape(base, (-1,)), g.const(at, np.int64), g.op("Reshape", x, [-1]), axis=0)
    return g.op("Reshape", flat, list(base.shape), shape=base.shape)


def _find_cuts(index: tuple[Any, ...]) -> list[tuple[int, Any, Any, int]]:
    """(axis, start, stop, step) of each axis that is cut."""
    found = []
    for axis, i in enumerate([i for i in index if i is not None]):
        start, stop, step, whole = _slice_bounds(i)
        # an empty slice may stop before its start; what lies behind it begins at the start
        if isinstance(start, int) and isinstance(stop, int) and step == 1:
            stop = max(start, stop)
        if not whole:
            found.append((axis, start, stop, step))
    return found


def _write_cuts(g: Graph, base: Value, x: Value, cuts: list[tuple[int, Any, Any, int]]) -> Value:
    """x between what lies before and behind it along the first axis that is cut; inside, the same along the others."""
    if not cuts:
        return x
    (axis, start, stop, step), *rest = cuts
    inner = x
    if rest:
        part = g.op("Slice", base, [start], [stop], [axis], [step], shape=(*base.shape[:axis], x.shape[axis], *base.shape[axis + 1 :]))
        inner = _write_cuts(g, part, x, rest)
    if step != 1:
        return _write_strided(g, base, inner, axis, base.shape[axis] - 1 if start == END else start, step, x.shape[axis])
    pieces = [inner]
    if start != 0:
        pieces.insert(0, g.slice(base, axis, 0, start))
    if stop != END:
        pieces.append(g.slice(base, axis, stop, END))
    return g.op("Concat", *pieces, axis=axis, shape=base.shape) if len(pieces) > 1 else inner  # type: ignore[no-any-return]


def _write_strided(g: Graph, base: Value, x: Value, axis: int, start: Any, step: int, count: Any) -> Value:
    """x at every `step`-th place along an axis."""
    order = [axis, *[d for d in range(base.ndim) if d != axis]]
    at = g.op("Add", g.op("Mul", g.range(count), step), g.number(start, np.int64))
    y = g.op("ScatterND", g.op("Transpose", base, perm=order), g.unsqueeze(at, [1]), g.op("Transpose", x, perm=order))
    return g.op("Transpose", y, perm=[order.index(d) for d in range(base.ndim)], shape=base.shape)  # type: ignore[no-any-return]


@translates("pad_view")
def pad_view(g: Graph, x: Value, shape: Any, index: Any) -> Any:
    return write_view(g, g.full(shape, 0, x.dtype), x, "index_view", {"index": index})


@translates("pad_diagonal")
def pad_diagonal(g: Graph, x: Value, shape: Any, offset: int, dim1: int, dim2: int) -> Any:
    return write_view(g, g.full(shape, 0, x.dtype), x, "diagonal", {"offset": offset, "dim1": dim1, "dim2": dim2})
