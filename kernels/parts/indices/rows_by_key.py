"""Rows picked and put by integer keys: the machinery under embedding, indexing and scatter, on both devices.

Everything here sees memory as (L, R, D): L leading slices, R rows that a key chooses among, D elements of a row. Adding
is deterministic: keys are sorted, and each row's contributions are summed by one program in the order of their positions.
On the CPU an index that points outside raises before anything is read or written. On the device its key is R, and is
skipped (a gather gives 0 there): no access leaves the tensor; the kernel reports it, and the next wait raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.indices.error_reports import Watch, check_range, first, out_of_range, report, watch
from tritensor.kernels.parts.indices.flat_positions import fold_at
from tritensor.kernels.parts.indices.radix_sort import sort_keys
from tritensor.kernels.parts.tapes.pointwise import collapse
from tritensor.ops.array import CudaArray

BLOCK = 1024
INT64 = np.dtype(np.int64)


# On the CPU
def numpy_keys(name: str, indices: Sequence[np.ndarray], sizes: Sequence[int], dims: Sequence[int]) -> np.ndarray:
    """One key per broadcast index tuple, the position in C order among `sizes`; negative indices count from the end."""
    key: Any = None
    for index, size, dim in zip(indices, sizes, dims, strict=True):
        check_range(name, index, size, dim, negative=True)
        index = index.astype(np.int64, copy=False)
        if index.size and int(index.min()) < 0:
            index = np.where(index < 0, index + size, index)
        key = index if key is None else key * size + index
    return np.broadcast_to(key, np.broadcast_shapes(*(i.shape for i in indices))).reshape(-1)


def _runs(keys: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Stable order of keys, and each run of equal keys in it, longest first: where it starts, how long it is, its key."""
    small = keys.astype(np.uint16) if rows <= 1 << 16 else keys  # numpy sorts 16-bit keys by radix
    order = np.argsort(small, kind="stable")
    sorted_keys = keys[order]
    new = np.empty(keys.size, np.bool_)
    new[:1] = True
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    lengths = np.diff(starts, append=keys.size)
    by_length = np.argsort(-lengths, kind="stable")
    starts = starts[by_length]
    return order, starts, lengths[by_length], sorted_keys[starts]


TOGETHER = 256  # rows of a long run that are added in their own type
NARROW = 32  # rows of up to so many elements are folded one element after the other, which needs no sort
COLUMNS = 8  # rows of up to so many elements are summed column by column
FEW_SUMS = 1 << 12  # elements that are summed one after the other in float64, whatever the rows
LONG = 32  # runs longer than this are summed one by one, the others in rounds: the first of every run, the second, ...


def _sum_of_run(run: np.ndarray) -> np.ndarray:
    """Floats (L, n, D) summed over n: blocks of rows by BLAS, the blocks in float64, since both BLAS and np.sum add row after row here."""
    lead, n, width = run.shape
    blocks = n // TOGETHER
    if blocks < 2:
        return np.asarray(np.ones(n, run.dtype) @ run)
    whole = run[:, : blocks * TOGETHER].reshape(lead, blocks, TOGETHER, width)
    sums = (np.ones(TOGETHER, run.dtype) @ whole).sum(1, dtype=np.float64)  # (L, D)
    return np.asarray(sums + run[:, blocks * TOGETHER :].sum(1)).astype(run.dtype)


def numpy_add_rows(target: np.ndarray, keys: np.ndarray, source: np.ndarray) -> None:
    """target[:, keys[i], :] += source[:, i, :], equal keys summed first; target (L, R, D), source (L, n, D) of one type."""
    numpy_fold_rows(np.add, target, keys, source)


def numpy_fold_rows(ufunc: np.ufunc, target: np.ndarray, keys: np.ndarray, source: np.ndarray) -> None:
    """target[:, keys[i], :] = ufunc(itself, source[:, i, :]) for add, multiply, maximum or minimum; target (L, R, D), source (L, n, D) of one type."""
    if keys.size == 0 or source.size == 0:
        return
    _, rows, width = target.shape
    if ufunc is np.add and target.dtype.kind == "f" and max(target.size, source.size) <= FEW_SUMS:
        at = keys[:, None] * width + np.arange(width)
        if len(target) > 1:
            at = np.arange(0, target.size, rows * width)[:, None, None] + at
        target += np.bincount(at.reshape(-1), source.reshape(-1), target.size).reshape(target.shape)
        return
    if width <= NARROW and rows <= 4 * keys.size:
        _fold_narrow(ufunc, target, keys, source)
        return
    order, starts, lengths, found = _runs(keys, rows)
    long = int(np.searchsorted(-lengths, -LONG))
    for k in range(long):
        run = source[:, order[starts[k] : starts[k] + lengths[k]]]
        summed = ufunc is np.add and target.dtype.kind == "f"
        folded = _sum_of_run(run) if summed else ufunc.reduce(run, 1, dtype=target.dtype)
        target[:, found[k]] = ufunc(target[:, found[k]], folded)
    step = max(TOGETHER * 128 // (target.shape[0] * width), 16)  # runs whose sums are in the cache together
    for begin in range(long, starts.size, step):
        some = slice(begin, begin + step)
        _fold_rounds(ufunc, target, source, order, starts[some], lengths[some], found[some])


def _fold_rounds(
    ufunc: np.ufunc, target: np.ndarray, source: np.ndarray, order: np.ndarray, starts: np.ndarray, lengths: np.ndarray, found: np.ndarray
) -> None:
    """Short runs, longest first, in rounds: the first of every run, the second, ..."""
    folds = source[:, order[starts]]
    for r in range(1, int(lengths[0])):
        m = int(np.searchsorted(-lengths, -r))  # so many runs are longer than r
        ufunc(folds[:, :m], source[:, order[starts[:m] + r]], out=folds[:, :m])
    target[:, found] = ufunc(target[:, found], folds)


def _fold_narrow(ufunc: np.ufunc, target: np.ndarray, keys: np.ndarray, source: np.ndarray) -> None:
    """Rows of few elements, one element after the other, which needs no sort; sums of float32 in float64."""
    lead, rows, width = target.shape
    wide = ufunc is np.add and target.dtype == np.float32
    if lead == 1 and width <= COLUMNS and ufunc is np.add and target.dtype.kind == "f":
        for d in range(width):
            target[0, :, d] += np.bincount(keys, source[0, :, d], rows).astype(target.dtype, copy=False)
        return
    if lead == 1:
        sums = target.astype(np.float64) if wide else target
        fold_at("index", ufunc, sums, np.broadcast_to(keys.reshape(1, -1, 1), source.shape), source, 1)
        if wide:
            target[...] = sums
        return
    step = max(TOGETHER * 128 // max(rows * width, keys.size * width), 1)
    at = ((np.arange(min(step, lead)) * (rows * width))[:, None, None] + keys[:, None] * width + np.arange(width)).reshape(-1)
    for begin in range(0, lead, step):
        part, values = target[begin : begin + step], source[begin : begin + step].reshape(-1)
        sums = part.astype(np.float64) if wide else part
        ufunc.at(sums.reshape(-1), at[: values.size], values.astype(sums.dtype, copy=False))
        if wide:
            part[...] = sums


# On the device
# keys[i] = (index_0[i] * size_1 + index_1[i]) * size_2 + ..., negative ones counted from the end, R where one is out of range
@triton.jit(do_not_specialize=["rows", "sizes", "shape", "strides", "skip"])
def _keys_kernel(
    keys, indices, n, rows, sizes, shape, strides, skip, errors, site,
    COUNT: tl.constexpr, NDIM: tl.constexpr, SKIP: tl.constexpr, WRAP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    key = tl.zeros((BLOCK,), tl.int64)
    good = mask
    for k in tl.static_range(COUNT):
        value = tl.load(indices[k] + _walked(i, shape, strides[k], NDIM), mask=mask, other=0).to(tl.int64)
        if WRAP:
            value = tl.where(value < 0, value + sizes[k], value)
        good = good & (value >= 0) & (value < sizes[k])
        key = key * sizes[k] + value
    kept = good & (key != skip) if SKIP else good
    tl.store(keys + i, tl.where(kept, key, rows), mask=mask)
    if errors is not None:
        bad = first(mask & (good == 0), BLOCK)
        if bad < BLOCK:
            for k in tl.static_range(COUNT):
                wrong = tl.load(indices[k] + _walked(start + bad, shape, strides[k], NDIM)).to(tl.int64)
                if (wrong >= sizes[k]) | (wrong < (-sizes[k] if WRAP else 0)):
                    report(errors, site, wrong, (start + bad) * COUNT + k, sizes[k])


@triton.jit
def _walked(i, shape, strides, NDIM: tl.constexpr):
    """The offset of element i (of i's type, a tile or a number) of a strided array."""
    at = i * 0
    for d in tl.static_range(NDIM):
        at += i % shape[NDIM - 1 - d] * strides[NDIM - 1 - d]
        i = i // shape[NDIM - 1 - d]
    return at


def keys_of(
    indices: Sequence[CudaArray], sizes: Sequence[int], shape: tuple[int, ...], *, skip: int | None = None, wrap: bool = True,
    watching: Watch | None = None,
) -> CudaArray:  # fmt: skip
    """int64 keys (n,) of index arrays that broadcast to `shape`; invalid ones, and `skip`, become prod(sizes).

    `wrap`: negative ones count from the end, otherwise they are invalid. `watching` (see `watch_keys`): invalid ones are reported.
    """
    n = math.prod(shape)
    keys = allocate((n,), INT64, indices[0].device)
    walk, strides = collapse(shape, [i.expand(shape).strides for i in indices])
    errors, site = watching or (None, None)
    launch(
        _keys_kernel, (triton.cdiv(n, BLOCK),), keys, tuple(indices), n, math.prod(sizes), tuple(sizes), walk, strides, skip or 0, errors, site,
        COUNT=len(indices), NDIM=len(walk), SKIP=skip is not None, WRAP=wrap, BLOCK=BLOCK,
    )  # fmt: skip
    return keys


def watch_keys(op: str, name: str, indices: Sequence[CudaArray], dims: Sequence[int], shape: tuple[int, ...]) -> Watch:
    """For the forward of `op`, which messages call `name`: bad indices for `dims` in `keys_of(indices, ..., shape)` are reported."""
    return watch(op, indices[0], _in_tuple, name, tuple(dims), shape, tuple(i.shape for i in indices))


def _in_tuple(
    name: str, dims: tuple[int, ...], shape: tuple[int, ...], shapes: tuple[tuple[int, ...], ...], value: int, place: int, size: int
) -> str:
    """The words for a record of `_keys_kernel`: the k-th index of tuple i has the place i * count + k."""
    i, k = divmod(place, len(dims))
    at = np.unravel_index(i, shape)[len(shape) - len(shapes[k]) :] if shape else ()
    own = tuple(0 if n == 1 else int(a) for n, a in zip(shapes[k], at, strict=True))
    return out_of_range(name, dims[k], size, value, own[0] if len(own) == 1 else own)


# y[l, i, d] = x[l, keys[i], d], 0 where the key is R
@triton.jit(do_not_specialize=["count", "rows"])
def _take_kernel(x, keys, y, total, count, rows, width, BLOCK: tl.constexpr):
    j = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = j < total
    d = j % width
    i = j // width % count
    lead = j // width // count
    key = tl.load(keys + i, mask=mask, other=0)
    value = tl.load(x + (lead * rows + key) * width + d, mask=mask & (key < rows), other=0)
    tl.store(y + j, value, mask=mask)


def take_rows(x: CudaArray, keys: CudaArray) -> CudaArray:
    """(L, n, D): the rows of a contiguous x (L, R, D) that the keys name."""
    y = allocate((x.shape[0], keys.size, x.shape[2]), x.dtype, x.device)
    launch(_take_kernel, (triton.cdiv(y.size, BLOCK),), x, keys, y, y.size, keys.size, x.shape[1], x.shape[2], BLOCK=BLOCK)
    return y


# target[l, k, d] = (ADD: target[l, k, d] + the sum of, else: the last) source[l, i, d] over the i with keys[i] = k
@triton.jit(do_not_specialize=["rows"])
def _runs_kernel(
    target, keys, order, source, count, rows, width, columns,
    ADD: tl.constexpr, SUM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    program, row_blocks = tl.program_id(0), tl.cdiv(count, BM)
    p = (program % row_blocks).to(tl.int64) * BM + tl.arange(0, BM)  # (BM,)
    c = (program // row_blocks).to(tl.int64) * BN + tl.arange(0, BN)  # (BN,)
    lead, d = c // width, c % width
    key = tl.load(keys + p, mask=p < count, other=rows)
    before = tl.load(keys + p - 1, mask=(p > 0) & (p < count), other=-1)
    first = (key < rows) & (key != before)  # this lane's program owns the run that starts here
    inside = (c < columns)[None, :]
    acc = tl.zeros((BM, BN), SUM)
    live = first
    k = 0
    while tl.max(live.to(tl.int32), 0) > 0:
        row = tl.load(order + p + k, mask=live, other=0)
        mask = live[:, None] & inside  # (BM, BN)
        value = tl.load(source + (lead[None, :] * count + row[:, None]) * width + d[None, :], mask=mask, other=0).to(SUM)
        acc = acc + value if ADD else tl.where(mask, value, acc)
        k += 1
        after = tl.load(keys + p + k, mask=live & (p + k < count), other=-1)
        live = live & (after == key)
    to = target + (lead[None, :] * rows + key[:, None]) * width + d[None, :]
    mask = first[:, None] & inside
    if ADD:
        acc += tl.load(to, mask=mask, other=0).to(SUM)
    tl.store(to, acc.to(target.dtype.element_ty), mask=mask)


_SUM = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "float64": "float64", "uint64": "uint64"}


def put_rows(target: CudaArray, keys: CudaArray, source: CudaArray, *, add: bool) -> None:
    """Write the rows of source (L, n, D) into target (L, R, D) at the keys, in place; both contiguous.

    Equal keys: their sum is added (float32 in a float64 accumulator), or the last one stays. Costs a sort of the keys,
    and one program walks each run of equal keys from end to end, so one very frequent key takes long.
    """
    lead, rows, width = target.shape
    columns, n = lead * width, keys.size
    if n == 0 or columns == 0:
        return
    sorted_keys, order = sort_keys(keys, rows.bit_length())
    block_columns = min(triton.next_power_of_2(columns), 256)
    block_rows = max(256 // block_columns, 1)
    name = dtypes.of(target.dtype).name
    launch(
        _runs_kernel, (triton.cdiv(n, block_rows) * triton.cdiv(columns, block_columns),), target, sorted_keys, order, source, n, rows, width, columns,
        ADD=add, SUM=getattr(tl, _SUM.get(name, "int64")), BM=block_rows, BN=block_columns,
    )  # fmt: skip
