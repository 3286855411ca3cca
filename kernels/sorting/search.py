"""Binary search in sorted rows: searchsorted, and run_lengths, which counts equal neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ORDERED
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, op, refuse_kind, refuse_mixed

INT64 = np.dtype(np.int64)
BLOCK = 256


@triton.jit
def comparable(x):
    """16-bit floats as float32, truth values as numbers."""
    if x.dtype.is_floating() and x.dtype.primitive_bitwidth < 32:
        x = x.to(tl.float32)
    elif x.dtype == tl.int1:
        x = x.to(tl.int8)
    return x


# y[i] = how many elements of its row are less than value i (RIGHT: not larger): the first index from which on none is
@triton.jit(do_not_specialize=["rows", "columns", "count", "steps"])
def _search_kernel(sorted_rows, values, sorter, y, n, rows, columns, count, steps, RIGHT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    value = comparable(tl.load(values + i, mask=mask, other=0))
    start = (i // count) % rows * columns
    low = tl.zeros((BLOCK,), tl.int64)
    high = low + columns
    for _ in range(steps):
        live = mask & (low < high)
        middle = low + (high - low) // 2
        at = start + middle
        if sorter is not None:
            at = start + tl.load(sorter + at, mask=live, other=0)
        here = comparable(tl.load(sorted_rows + at, mask=live, other=0))
        stays = (here > value) if RIGHT else (here >= value)  # of NaN neither holds: the search goes on to its right
        low = tl.where(live & (stays == 0), middle + 1, low)
        high = tl.where(live & stays, middle, high)
    tl.store(y + i, low.to(y.dtype.element_ty), mask=mask)


# y[row, i] = how many of x[row, :i + 1] equal x[row, i], in sorted rows
@triton.jit(do_not_specialize=["columns", "steps"])
def _runs_kernel(x, y, n, columns, steps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    value = comparable(tl.load(x + i, mask=mask, other=0))
    start = i // columns * columns
    low = start
    high = i
    for _ in range(steps):
        live = mask & (low < high)
        middle = low + (high - low) // 2
        less = comparable(tl.load(x + middle, mask=live, other=0)) < value
        low = tl.where(live & less, middle + 1, low)
        high = tl.where(live & (less == 0), middle, high)
    tl.store(y + i, tl.where(value == value, i - low + 1, 1), mask=mask)


def _bisected(rows: np.ndarray, values: np.ndarray, sorter: np.ndarray | None, right: bool) -> np.ndarray:
    """Indices of values (m, k) in sorted rows (m or 1, n), all searches one step at a time."""
    m, n = rows.shape
    flat = rows.reshape(-1)
    start = (np.arange(m) * n)[:, None]
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, n, np.int64)
    for _ in range(n.bit_length()):
        live = low < high
        middle = (low + high) >> 1
        at = start + np.minimum(middle, n - 1)
        if sorter is not None:
            at = start + sorter.reshape(-1).take(at)
        here = flat.take(at)
        stays = here > values if right else here >= values
        low = np.where(live & ~stays, middle + 1, low)
        high = np.where(live & stays, middle, high)
    return low


CHUNK = 1 << 15  # values whose searches go together, in the cache


def _counted(rows: np.ndarray, values: np.ndarray, right: bool) -> np.ndarray:
    """How many elements of its sorted row (m, n) are less than each of values (m, k) (right: not larger), by steps of powers of two."""
    m, n = rows.shape
    k = values.shape[1]
    flat, sought, found = rows.reshape(-1), values.reshape(-1), np.empty(m * k, np.int64)
    for first in range(0, m * k, CHUNK):
        v, at = sought[first : first + CHUNK], found[first : first + CHUNK]
        start = np.arange(first, first + v.size) // k * n
        at[...] = start - 1  # the last element known to be less
        end = start + n
        step = 1 << (n.bit_length() - 1)
        while step:
            ahead = at + step
            np.minimum(ahead, end - 1, out=ahead)
            here = flat.take(ahead)
            less = here <= v if right else here < v
            np.copyto(at, ahead, where=less)
            step >>= 1
        at -= start - 1
    return found.reshape(m, k)


def _searchsorted(
    sorted_rows: np.ndarray, values: np.ndarray, sorter: np.ndarray | None = None, *, right: bool = False, out_int32: bool = False
) -> np.ndarray:
    """The indices at which values would be put into ascending rows: before equal elements, with `right` behind them.

    sorted_rows is a vector, or of values' shape but for the last dim; `sorter` names the order of each row.
    """
    rows = sorted_rows if sorter is None else np.take_along_axis(sorted_rows, sorter, -1)
    found = np.zeros(values.shape, INT64)
    for at in np.ndindex(*values.shape):
        found[at] = _bisect(rows if rows.ndim == 1 else rows[at[:-1]], values[at], right)
    return found


def _bisect(row: np.ndarray, value: Any, right: bool) -> int:
    """The first index from which on no element is less than value (right: none is not larger). NaN is neither, so that the search goes on to its right."""
    low, high = 0, len(row)
    while low < high:
        middle = (low + high) // 2
        if row[middle] > value if right else row[middle] >= value:
            high = middle
        else:
            low = middle + 1
    return low


def _searchsorted_cpu(
    sorted_rows: np.ndarray, values: np.ndarray, sorter: np.ndarray | None = None, *, right: bool = False, out_int32: bool = False
) -> np.ndarray:
    kind = np.dtype(np.int32 if out_int32 else np.int64)
    # numpy's own search is in C, for one row without NaN at its end, of which it thinks otherwise than PyTorch
    if rows_are_one(sorted_rows) and sorted_rows.size and not _last_is_nan(sorted_rows, sorter):
        row = sorted_rows.reshape(-1)
        row, sought = (_wide(a) for a in (row if sorter is None else row[sorter.reshape(-1)], values))
        found = np.searchsorted(row, np.ascontiguousarray(sought).reshape(-1), side="right" if right else "left")
        return found.astype(kind, copy=False).reshape(values.shape)
    n = sorted_rows.shape[-1]
    if n == 0 or values.size == 0:
        return np.zeros(values.shape, kind)
    rows = np.ascontiguousarray(sorted_rows).reshape(-1, n)
    sought = np.ascontiguousarray(values).reshape(rows.shape[0], -1)
    # without NaN fixed steps of powers of two need no test of each search's end
    if sorter is None and (rows[:, -1] == rows[:, -1]).all() and not (sought != sought).any():
        found = _counted(_wide(rows), _wide(sought), right)
    else:
        found = _bisected(rows, sought, sorter, right)
    return found.astype(kind, copy=False).reshape(values.shape)


def _wide(x: np.ndarray) -> np.ndarray:
    """16-bit floats as float32: numpy compares them one by one."""
    return x.astype(np.float32) if dtypes.is_float(x.dtype) and x.itemsize == 2 else x


def rows_are_one(x: Any) -> bool:
    """Is there one row for all values?"""
    return math.prod(x.shape[:-1]) == 1


def _last_is_nan(row: np.ndarray, sorter: np.ndarray | None) -> bool:
    last = row.reshape(-1)[-1 if sorter is None else sorter.reshape(-1)[-1]]
    return bool(last != last)


def _forward(
    sorted_rows: CudaArray, values: CudaArray, sorter: CudaArray | None = None, *, right: bool = False, out_int32: bool = False
) -> CudaArray:
    y = allocate(values.shape, np.dtype(np.int32 if out_int32 else np.int64), values)
    n, rows = sorted_rows.shape[-1], math.prod(sorted_rows.shape[:-1])
    count = values.size if rows == 1 else values.shape[-1]
    order = None if sorter is None else to_c_order(sorter)
    launch(
        _search_kernel, (cdiv(y.size, BLOCK),), to_c_order(sorted_rows), to_c_order(values), order, y, y.size, rows, n, count, n.bit_length(),
        RIGHT=right, BLOCK=BLOCK,
    )  # fmt: skip
    return y


def _shape(sorted_rows: Any, values: Any, sorter: Any = None, *, right: bool = False, out_int32: bool = False) -> Spec:
    refuse_kind("searchsorted", sorted_rows.dtype, ORDERED, "sorted_sequence")
    refuse_mixed("searchsorted", ("sorted_sequence", sorted_rows), ("input", values))
    shape = tuple(sorted_rows.shape)
    if not shape or not (rows_are_one(sorted_rows) or shape[:-1] == tuple(values.shape[:-1])):
        raise ShapeError(f"searchsorted: sorted_sequence {shape} and input {tuple(values.shape)}: give a vector, or rows for rows")
    if sorter is not None and (tuple(sorter.shape) != shape or sorter.dtype != INT64):
        raise ShapeError(
            f"searchsorted: sorter {tuple(sorter.shape)} of {sorter.dtype} for sorted_sequence {shape}: give int64 of that shape"
        )
    return Spec(tuple(values.shape), np.dtype(np.int32 if out_int32 else np.int64))


def _run_lengths(x: np.ndarray) -> np.ndarray:
    """How many elements up to each one, itself included, equal it, along the last dim, which is sorted. NaN equals nothing."""
    y = np.ones(x.shape, INT64)
    for i in range(1, x.shape[-1]):
        y[..., i] += y[..., i - 1] * (x[..., i] == x[..., i - 1])
    return y


def _run_lengths_cpu(x: np.ndarray) -> np.ndarray:
    if x.size == 0:
        return np.zeros(x.shape, np.int64)
    places = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    start = np.array(places)
    start[..., 1:][np.equal(x[..., 1:], x[..., :-1])] = 0
    np.maximum.accumulate(start, axis=-1, out=start)
    return np.asarray(places - start + 1)


def _runs_forward(x: CudaArray) -> CudaArray:
    y = allocate(x.shape, INT64, x)
    launch(_runs_kernel, (cdiv(y.size, BLOCK),), to_c_order(x), y, y.size, x.shape[-1], x.shape[-1].bit_length(), BLOCK=BLOCK)
    return y


def _runs_shape(x: Any) -> Spec:
    refuse_kind("run_lengths", x.dtype, ORDERED)
    return Spec(tuple(x.shape), INT64)


def _samples(rng: np.random.Generator) -> list[Sample]:
    # None below 0, so that rows are sorted as unsigned integers as well.
    row, rows = np.sort(np.abs(np.round(rng.normal(size=9) * 3))), np.sort(np.abs(np.round(rng.normal(size=(2, 3, 5)) * 2)), -1)
    loose = np.abs(np.round(rng.normal(size=(2, 7))))
    holes = np.array([-1.0, 2.0, np.nan, np.nan])
    return [
        Sample(row, np.round(rng.normal(size=(4, 6)) * 3), right=False, out_int32=False),
        Sample(row, np.round(rng.normal(size=(300,)) * 3), right=True, out_int32=True),
        Sample(rows, np.round(rng.normal(size=(2, 3, 4)) * 2), right=True, out_int32=False),
        Sample(loose, rng.normal(size=(2, 3)), np.argsort(loose, -1), right=False, out_int32=False),
        Sample(row, np.asarray(0.0), right=False, out_int32=False),
        Sample(holes, np.array([-2.0, 0.0, 3.0, np.nan]), right=False, out_int32=False),
        Sample(rng.normal(size=(0,)), rng.normal(size=(3,)), right=False, out_int32=False),
    ]


def _runs_samples(rng: np.random.Generator) -> list[Sample]:
    x = np.sort(np.round(rng.normal(size=(3, 100)) * 3), -1)
    x[1, -3:] = np.nan
    return [Sample(x), Sample(np.zeros((2, 0)))]


TYPES = ("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool")
op(
    "searchsorted", _searchsorted, cpu=_searchsorted_cpu, shape=_shape, forward=_forward, differentiable=False, dtypes=TYPES[:6], samples=_samples,
)  # fmt: skip
op(
    "run_lengths", _run_lengths, cpu=_run_lengths_cpu, shape=_runs_shape, forward=_runs_forward, differentiable=False, dtypes=TYPES[:4],
    samples=_runs_samples,
)  # fmt: skip
