"""gather, scatter and scatter_add: elements picked and put along one dimension, each at a position of its own.

`called` is the function that messages name, one whose index is a vector along `dim` (index_add); the op has its shape broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, OutOfRangeError, ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import assigned, to_c_order
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.float8 import is_float8, moved_as_bytes
from tritensor.kernels.parts.indices.error_reports import Watch, check_integers, check_range, first, out_of_range, report, spot, watch
from tritensor.kernels.parts.indices.flat_positions import at_least_1d, fold_at, position_blocks, put_at, reached, row_keys
from tritensor.kernels.parts.indices.rows_by_key import FEW_SUMS, keys_of, numpy_fold_rows, put_rows
from tritensor.kernels.parts.view_arithmetic import zero_tensor
from tritensor.ops.array import CudaArray, contiguous_strides
from tritensor.ops.table import Sample, Spec, op, ops

BLOCK = 512
BLOCK_ELEMENTS = 1 << 15  # of a block on the CPU
FEW = 16  # up to so many sources per line every target looks at all of them; above, sources are sorted
TYPES = ("float16", "bfloat16", "float32", "float64", "int64")
INT64 = np.dtype(np.int64)


@triton.jit
def _coordinates(rest, shape, strides_a, strides_b, dim, NDIM: tl.constexpr):
    """Offsets through two sets of strides with dimension `dim` left out, and the coordinate along `dim`."""
    a = rest * 0
    b = rest * 0
    along = rest * 0
    for k in tl.static_range(NDIM):
        i = rest % shape[NDIM - 1 - k]
        rest = rest // shape[NDIM - 1 - k]
        here = dim == NDIM - 1 - k
        along += tl.where(here, i, 0)
        a += tl.where(here, 0, i * strides_a[NDIM - 1 - k])
        b += tl.where(here, 0, i * strides_b[NDIM - 1 - k])
    return a, b, along


# y[.., i, ..] = x[.., index[.., i, ..], ..], 0 where the index is out of range
@triton.jit(do_not_specialize=["x_strides", "index_strides", "dim", "x_step", "index_step", "size"])
def _gather_kernel(
    x, index, y, n, shape, x_strides, index_strides, dim, x_step, index_step, size, errors, site, NDIM: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    at, to, along = _coordinates(i, shape, x_strides, index_strides, dim, NDIM)
    k = tl.load(index + to + along * index_step, mask=mask, other=0).to(tl.int64)
    good = mask & (k >= 0) & (k < size)
    tl.store(y + i, tl.load(x + at + k * x_step, mask=good, other=0), mask=mask)
    if errors is not None:
        _look(k, size, mask & (good == 0), errors, site, BLOCK)


@triton.jit
def _look(k, size, bad, errors, site, BLOCK: tl.constexpr):
    """Report the first bad element of this program's tile of the index, k (BLOCK,)."""
    found = first(bad, BLOCK)
    if found < BLOCK:
        value = tl.sum(tl.where(tl.arange(0, BLOCK) == found, k, 0), 0)
        report(errors, site, value, tl.program_id(0).to(tl.int64) * BLOCK + found, size)


# y[.., k, ..] = x[.., k, ..] + the sum of (or, SET, the last) source[.., j, ..] over the j < count with index[.., j, ..] = k
@triton.jit(do_not_specialize=["index_strides", "source_strides", "dim", "index_step", "source_step", "count", "size"])
def _scatter_kernel(
    x, index, source, y, n, shape, limits, index_strides, source_strides, dim, index_step, source_step, count, size, errors, site,
    NDIM: tl.constexpr, SET: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    at, to, along = _coordinates(i, shape, index_strides, source_strides, dim, NDIM)
    reached = mask
    rest = i
    for d in tl.static_range(NDIM):  # index may be smaller than x in the other dimensions
        reached = reached & (rest % shape[NDIM - 1 - d] < limits[NDIM - 1 - d])
        rest = rest // shape[NDIM - 1 - d]
    old = tl.load(x + i, mask=mask, other=0).to(SUM)
    total = tl.zeros((BLOCK,), SUM)
    bad = i < 0
    for j in range(count):
        k = tl.load(index + at + j * index_step, mask=reached, other=0)
        hit = reached & (k == along)
        value = tl.load(source + to + j * source_step, mask=hit, other=0).to(SUM)
        if SET:
            old = tl.where(hit, value, old)
        else:
            total += value
        if errors is not None:
            bad = bad | (k < 0) | (k >= size)
    tl.store(y + i, (old + total).to(y.dtype.element_ty) if not SET else old.to(y.dtype.element_ty), mask=mask)
    if errors is not None:  # the first target of a line speaks for it
        found = first(bad & reached & (along == 0), BLOCK)
        if found < BLOCK:
            line = tl.sum(tl.where(i == start + found, at, 0), 0)
            for j in range(count):
                wrong = tl.load(index + line + j * index_step)
                if (wrong < 0) | (wrong >= size):
                    report(errors, site, wrong, (start + found) * count + j, size)


# keys[i] = the flat position in a contiguous x that index element i points to, prod(x.shape) where it is out of range
@triton.jit(do_not_specialize=["total", "shape", "index_strides", "x_strides", "dim", "index_step", "x_step", "size"])
def _positions_kernel(
    index, keys, n, total, shape, index_strides, x_strides, dim, index_step, x_step, size, errors, site,
    NDIM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    at, to, along = _coordinates(i, shape, index_strides, x_strides, dim, NDIM)
    k = tl.load(index + at + along * index_step, mask=mask, other=-1).to(tl.int64)
    good = (k >= 0) & (k < size)
    tl.store(keys + i, tl.where(good, to + k * x_step, total), mask=mask)
    if errors is not None:
        _look(k, size, mask & (good == 0), errors, site, BLOCK)


def at_index(name: str, dim: int, shape: tuple[int, ...], along: bool, value: int, position: int, size: int) -> str:
    """The words for a bad element of an index of `shape`; `along`: of the vector along `dim` of which that is a broadcast."""
    where = spot(position, shape)
    return out_of_range(name, dim, size, value, where[dim] if along and len(shape) > 1 else where)


def _at_target(
    name: str, dim: int, shape: tuple[int, ...], along: bool, targets: tuple[int, ...], value: int, place: int, size: int
) -> str:
    """The words for a record of `_scatter_kernel`: the j-th source of the line of target i has the place i * count + j."""
    i, j = divmod(place, shape[dim])
    at = [int(c) for c in np.unravel_index(i, targets)]
    at[dim] = j
    return out_of_range(name, dim, size, value, j if along or len(at) == 1 else tuple(at))


def check(name: str, x: Any, index: Any, dim: int) -> None:
    check_integers(name, index)
    if len(x.shape) != len(index.shape):
        raise ShapeError(
            f"{name}: x {tuple(x.shape)} and index {tuple(index.shape)} differ in their number of dimensions; reshape one of them"
        )
    for d, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)):
        if d != dim and m > n:
            raise ShapeError(
                f"{name}: index {tuple(index.shape)} is larger than x {tuple(x.shape)} at dim {d}: {m} > {n}; give a smaller index"
            )
    if x.shape and x.shape[dim] == 0 and 0 not in index.shape:
        raise OutOfRangeError(
            f"{name}: index {tuple(index.shape)} into dim {dim} of x {tuple(x.shape)}, which has size 0; give an empty index"
        )


# gather
def _gather(x: np.ndarray, index: np.ndarray, *, dim: int, called: str = "") -> np.ndarray:
    return np.take_along_axis(reached(x, index.shape, dim), index, dim) if x.ndim else x


def _gather_cpu(x: np.ndarray, index: np.ndarray, *, dim: int, called: str = "") -> np.ndarray:
    if not x.shape:
        check_range("gather", index, 1, dim, negative=False)
        return x.copy()
    keys = row_keys(index, index.strides, x.shape, dim)
    if keys is not None:
        check_range(called or "gather", keys, x.shape[dim], dim, negative=False)
        return x.take(keys, dim)
    if not x.flags.c_contiguous:
        check_range("gather", index, x.shape[dim], dim, negative=False)
        return np.take_along_axis(reached(x, index.shape, dim), index.astype(np.int64, copy=False), dim)
    y, flat = np.empty(index.shape, x.dtype), x.reshape(-1)
    for block, at in position_blocks("gather", x.shape, index, dim):
        flat.take(at, out=y[block].reshape(-1), mode="clip")  # mode: numpy would copy `out` to be able to raise
    return y


def _gather_shape(x: Any, index: Any, *, dim: int, called: str = "") -> Spec:
    check("gather", x, index, dim)
    return Spec(tuple(index.shape), x.dtype)


def vector(x: CudaArray) -> CudaArray:
    """A 0-d array as one of a single element: kernels walk at least one dimension."""
    return x if x.shape else x.expand((1,))


@moved_as_bytes
def _gather_forward(x: CudaArray, index: CudaArray, *, dim: int, called: str = "") -> CudaArray:
    return _picked(x, index, dim, watch("gather", x, at_index, called or "gather", dim, index.shape, bool(called)))


def _picked(x: CudaArray, index: CudaArray, dim: int, watching: Watch | None = None) -> CudaArray:
    y = allocate(index.shape, x.dtype, x.device)
    x, index = vector(x), vector(index)
    errors, site = watching or (None, None)
    launch(
        _gather_kernel, (triton.cdiv(index.size, BLOCK),), x, index, y, index.size, index.shape, x.strides, index.strides, dim,
        x.strides[dim], index.strides[dim], x.shape[dim], errors, site, NDIM=index.ndim, BLOCK=BLOCK,
    )  # fmt: skip
    return y


def _gather_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((4, 5)), rng.integers(0, 5, (4, 1)), dim=1),
        Sample(rng.standard_normal((4, 5)), rng.integers(0, 4, (30, 3)), dim=0),
        Sample(rng.standard_normal((2, 3, 4)), rng.integers(0, 3, (2, 2, 3)).astype(np.int32), dim=1),
        Sample(rng.standard_normal((5,)), rng.integers(0, 5, 530), dim=0),
        Sample(rng.standard_normal((3, 4)), np.zeros((3, 0), np.int64), dim=1),
        Sample(rng.standard_normal(()), np.array(0), dim=0),
    ]


op(
    "gather", _gather, cpu=_gather_cpu, shape=_gather_shape, forward=_gather_forward, samples=_gather_samples, dtypes=TYPES, reports=True,
    rule=(lambda g, index, x_shape, dim: ops.scatter_add(zero_tensor(x_shape, g), index, g, dim=dim), None),
    backward=(lambda g, index, x_shape, dim: _scatter_forward(filled(x_shape, g.dtype, g.device, 0), index, g, dim, False, False), None),
    cpu_backward=(lambda g, index, x_shape, dim: _scatter_add_cpu(np.zeros(x_shape, g.dtype), index, g, dim=dim), None),
    doc="y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; index is of y's shape and not larger than x elsewhere.",
)  # fmt: skip


# scatter_add and scatter
def targets(index: np.ndarray, dim: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(where to, where from) of each element that an index names: its own position, in which the index stands along `dim`."""
    for at in np.ndindex(*index.shape):
        yield ((*at[:dim], int(index[at]), *at[dim + 1 :]) if at else ()), at


def _scatter_add(x: np.ndarray, index: np.ndarray, source: np.ndarray, *, dim: int, called: str = "") -> np.ndarray:
    y = np.array(x)
    for to, at in targets(index, dim):
        y[to] += source[at]
    return y


def _scatter(x: np.ndarray, index: np.ndarray, source: np.ndarray, *, dim: int, called: str = "") -> np.ndarray:
    y = np.array(x)
    for to, at in targets(index, dim):
        y[to] = source[at]
    return y


def fold_along(name: str, ufunc: np.ufunc, y: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int) -> None:
    """y[.., index[.., j, ..], ..] = ufunc(itself, source[.., j, ..]), y C-ordered and of the type to compute in; rows at once where index repeats itself.

    Sums of float32 are kept in float64: they are long, and one after the other.
    """
    y, index, source = at_least_1d(y), at_least_1d(index), at_least_1d(source)
    keys = row_keys(index, index.strides, y.shape, dim)
    lead, width = math.prod(y.shape[:dim]), math.prod(y.shape[dim + 1 :])
    # index repeats itself across the other dims: whole rows go together, one key for each
    if keys is not None and lead * width > 1:
        check_range(name, keys, y.shape[dim], dim, negative=False)
        values = reached(source, index.shape).astype(y.dtype, copy=False).reshape(lead, keys.size, width)
        numpy_fold_rows(ufunc, y.reshape(lead, y.shape[dim], width), keys.astype(np.int64, copy=False), values)
    elif ufunc is np.add and y.dtype.kind == "f" and max(y.size, index.size) <= FEW_SUMS:
        for block, at in position_blocks(name, y.shape, index, dim):
            y += np.bincount(at, reached(source, index.shape)[block].reshape(-1), y.size).reshape(y.shape)
    # ufunc.at adds one element after the other, so that long sums in float32 would lose digits
    elif ufunc is np.add and y.dtype == np.float32:
        step = max(BLOCK_ELEMENTS // max(y[:1].size, 1), 1) if dim else y.shape[0]  # slices that do not meet are summed apart, in the cache
        for first in range(0, y.shape[0], max(step, 1)):
            part = slice(first, first + step) if dim else slice(None)
            sums = y[part].astype(np.float64)
            fold_at(name, ufunc, sums, index[part], source[part], dim)
            y[part] = sums
    else:
        fold_at(name, ufunc, y, index, source, dim)


def _scatter_add_cpu(x: np.ndarray, index: np.ndarray, source: np.ndarray, *, dim: int, called: str = "") -> np.ndarray:
    y = np.array(x, dtypes.accumulator(x.dtype) if dtypes.is_float(x.dtype) else x.dtype, order="C")
    fold_along(called or "scatter_add", np.add, y, index, source, dim)
    return y.astype(x.dtype, copy=False)


def _scatter_cpu(x: np.ndarray, index: np.ndarray, source: np.ndarray, *, dim: int, called: str = "") -> np.ndarray:
    y = np.array(x, order="C")
    keys = row_keys(index, index.strides, x.shape, dim) if x.shape else None
    if keys is None:
        put_at("scatter", at_least_1d(y), at_least_1d(index), at_least_1d(source), dim)
    else:
        check_range(called or "scatter", keys, x.shape[dim], dim, negative=False)
        y[(*(slice(None),) * dim, keys)] = reached(source, index.shape)
    return y


def scatter_shape(name: str, x: Any, index: Any, source: Any, dim: int) -> Spec:
    check(name, x, index, dim)
    if len(source.shape) != len(index.shape) or any(m > n for m, n in zip(index.shape, source.shape, strict=True)):
        raise ShapeError(f"{name}: index {tuple(index.shape)} is larger than source {tuple(source.shape)}; give a smaller one")
    if source.dtype != x.dtype:
        raise DTypeError(f"{name}: source is {dtypes.of(source.dtype).name}, x is {dtypes.of(x.dtype).name}; cast one of them")
    if name == "scatter_add" and is_float8(x.dtype):
        raise DTypeError(f"scatter_add: {dtypes.of(x.dtype).name} is a storage type; add in .to(float16), bfloat16 or float32")
    return Spec(tuple(x.shape), x.dtype)


# Triton's types by name, as nothing of Triton is read where a file is loaded.
SUMS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64", "uint64": "uint64"}


def _scatter_forward(
    x: CudaArray, index: CudaArray, source: CudaArray, dim: int, replace: bool, watched: bool = True, called: str = ""
) -> CudaArray:
    """Up to FEW sources per line: each target looks at all of them, one launch. More: the positions are sorted.

    `watched`: bad indices are reported; a backward need not, its forward has.
    """
    shape, name = x.shape, "scatter" if replace else "scatter_add"
    facts = called or name, dim, index.shape, bool(called)
    x, index, source = vector(x), vector(index), vector(source)
    # looking at all sources costs targets times sources; sorting is linear in both
    if index.shape[dim] > FEW or x.size == 0:
        y = assigned(allocate(x.shape, x.dtype, x.device), x)
        rows, keys = keyed(name, y, index, dim, watched, called)
        put_rows(y.reshape(rows), keys, to_c_order(reached(source, index.shape)).reshape((rows[0], keys.size, rows[2])), add=not replace)
        return y.reshape(shape)
    errors, site = watch(name, x, _at_target, *facts, x.shape) if watched else (None, None)
    x = to_c_order(x)
    y = allocate(x.shape, x.dtype, x.device)
    limits = tuple(n if d == dim else m for d, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)))
    launch(
        _scatter_kernel, (triton.cdiv(y.size, BLOCK),), x, index, source, y, y.size, y.shape, limits, index.strides, source.strides, dim,
        index.strides[dim], source.strides[dim], index.shape[dim], x.shape[dim], errors, site,
        NDIM=y.ndim, SET=replace, SUM=getattr(tl, SUMS.get(dtypes.of(x.dtype).name, "int64")), BLOCK=BLOCK,
    )  # fmt: skip
    return y.reshape(shape)


def keyed(name: str, x: CudaArray, index: CudaArray, dim: int, watched: bool, called: str = "") -> tuple[tuple[int, int, int], CudaArray]:
    """x's shape as rows (L, R, D) and int64 keys (n,) that say to which of the R each slice (L, n, D) of a source goes.

    Where index is a broadcast vector those are x's rows along `dim`, else x's elements. Keys out of range are R, and reported where `watched`.
    """
    along = row_keys(index, index.strides, x.shape, dim)
    words = called or name, dim
    if along is not None:
        watching = watch(name, x, _at_row, *words, len(index.shape), bool(called)) if watched else None
        keys = keys_of((along,), (x.shape[dim],), along.shape, wrap=False, watching=watching)
        return (math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])), keys
    errors, site = (watch(name, x, at_index, *words, index.shape, bool(called)) if watched else None) or (None, None)
    keys = allocate((index.size,), INT64, x.device)
    strides = contiguous_strides(x.shape)
    launch(
        _positions_kernel, (triton.cdiv(index.size, BLOCK),), index, keys, index.size, math.prod(x.shape), index.shape, index.strides, strides,
        dim, index.strides[dim], strides[dim], x.shape[dim], errors, site, NDIM=x.ndim, BLOCK=BLOCK,
    )  # fmt: skip
    return (1, x.size, 1), keys


def _at_row(name: str, dim: int, ndim: int, along: bool, value: int, position: int, size: int) -> str:
    """The words for a bad element of a vector, of which the index is a broadcast along `dim`."""
    at = tuple([position if d == dim else 0 for d in range(ndim)])
    return out_of_range(name, dim, size, value, position if along or ndim == 1 else at)


def _source_gradient(g: Any, index: Any, source_shape: tuple[int, ...], dim: int) -> Any:
    """Tensors: what was read of source gets g at its place, the part that index does not reach gets 0."""
    taken = ops.gather(g, index, dim=dim)
    if tuple(source_shape) == tuple(index.shape):
        return taken
    return ops.pad_view(taken, shape=tuple(source_shape), index=tuple(slice(m) for m in index.shape))


def _scatter_samples(rng: np.random.Generator, repeat: bool) -> list[Sample]:
    def lines(n: int, m: int, count: int) -> np.ndarray:
        """(count, m) positions below n, without repeats in a line unless asked for."""
        return rng.integers(0, n, (count, m)) if repeat else np.stack([rng.permutation(n)[:m] for _ in range(count)])

    return [
        Sample(rng.standard_normal((4, 5)), lines(5, 3, 4), rng.standard_normal((4, 3)), dim=1),
        Sample(rng.standard_normal((4, 5)), lines(4, 2, 3).T.copy(), rng.standard_normal((3, 5)), dim=0),
        Sample(rng.standard_normal((2, 5)), lines(5, 1, 2), rng.standard_normal((2, 1)), dim=1),
        Sample(rng.standard_normal((2, 40)), lines(40, 33, 2), rng.standard_normal((2, 33)), dim=1),
        Sample(rng.standard_normal((2, 3, 5)), lines(5, 2, 4).reshape(2, 2, 2).astype(np.int32), rng.standard_normal((2, 2, 3)), dim=2),
        Sample(rng.standard_normal((2, 5)), np.zeros((2, 0), np.int64), np.zeros((2, 0)), dim=1),
        Sample(rng.standard_normal(()), np.array(0), rng.standard_normal(()), dim=0),
    ]


op(
    "scatter_add", _scatter_add, cpu=_scatter_add_cpu, dtypes=TYPES, reports=True,
    shape=lambda x, index, source, *, dim, called="": scatter_shape("scatter_add", x, index, source, dim),
    forward=lambda x, index, source, *, dim, called="": _scatter_forward(x, index, source, dim, False, True, called),
    samples=lambda rng: _scatter_samples(rng, True),
    rule=(lambda g: g, None, _source_gradient),
    backward=(lambda g: g, None, lambda g, index, source_shape, dim: padded(_picked(g, index, dim), source_shape)),
    cpu_backward=(lambda g: g, None, lambda g, index, source_shape, dim: numpy_padded(_gather_cpu(g, index, dim=dim), source_shape)),
    doc="A copy of x with source[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`.",
)  # fmt: skip


def padded(x: CudaArray, shape: tuple[int, ...]) -> CudaArray:
    """What was read of a source as an array of its shape, zeros where nothing was read."""
    if x.shape == tuple(shape):
        return x
    y = filled(tuple(shape), x.dtype, x.device, 0)
    assigned(reached(y, x.shape), x)
    return y


def numpy_padded(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if x.shape == tuple(shape):
        return x
    y = np.zeros(shape, x.dtype)
    reached(y, x.shape)[...] = x
    return y


# scatter's gradient for x: g with zeros where it was overwritten
op(
    "scatter", _scatter, cpu=_scatter_cpu, dtypes=TYPES, reports=True,
    shape=lambda x, index, source, *, dim, called="": scatter_shape("scatter", x, index, source, dim),
    forward=moved_as_bytes(lambda x, index, source, *, dim, called="": _scatter_forward(x, index, source, dim, True, True, called)),
    samples=lambda rng: _scatter_samples(rng, False),
    rule=(lambda g, index, dim: ops.scatter(g, index, ops.expand(zero_tensor((), g), shape=tuple(index.shape)), dim=dim), None, _source_gradient),
    backward=(
        lambda g, index, dim: _scatter_forward(g, index, filled((), g.dtype, g.device, 0).expand(index.shape), dim, True, False),
        None,
        lambda g, index, source_shape, dim: padded(_picked(g, index, dim), source_shape),
    ),
    cpu_backward=(
        lambda g, index, dim: _scatter_cpu(g, index, np.zeros(index.shape, g.dtype), dim=dim),
        None,
        lambda g, index, source_shape, dim: numpy_padded(_gather_cpu(g, index, dim=dim), source_shape),
    ),
    doc="A copy of x with source[.., j, ..] written at [.., index[.., j, ..], ..] along `dim`; of equal positions the last one stays.",
)  # fmt: skip
