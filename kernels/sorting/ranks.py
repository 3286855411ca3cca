"""rank_place: the index along a dim of the element of a rank, the k-th smallest or the median; values and gradients come by gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import copied
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ORDERED, refuse_empty
from tritensor.kernels.parts.rows.row_tiles import as_rows, split_shape
from tritensor.kernels.sorting import cpu_order
from tritensor.kernels.sorting.rows import first_of_rows
from tritensor.kernels.sorting.sort import special
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, normal_dim, op, refuse_kind

INT64 = np.dtype(np.int64)
BLOCK = 128
MEDIAN, NANMEDIAN = -1, -2  # ranks that depend on how many elements of a row are NaN


def _kept(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], 1, *shape[dim + 1 :]) if shape else ()


def _rank_place(x: np.ndarray, *, dim: int, rank: int) -> np.ndarray:
    """The index along dim (kept, of size 1) of the element of rank 0 to n - 1, equal ones in the order of their indices.

    rank -1: the lower median, or the first NaN where there is one. rank -2: the lower median of what is not NaN.
    """
    if x.ndim == 0:
        return np.zeros((), INT64)
    order, n = np.argsort(x, axis=dim, kind="stable"), x.shape[dim]
    numbers = np.sum(x == x, axis=dim, keepdims=True)  # what is not NaN comes first
    if rank == MEDIAN:
        at = np.where(numbers < n, numbers, (n - 1) // 2)
    else:
        at = np.maximum(numbers - 1, 0) // 2 if rank == NANMEDIAN else np.full_like(numbers, rank)
    return np.take_along_axis(order, at, dim)


def _rank_place_cpu(x: np.ndarray, *, dim: int, rank: int) -> np.ndarray:
    rows = cpu_order.to_rows(x, dim)
    return cpu_order.from_rows(cpu_order.column_of_rank(rows, _numpy_rank(rows, rank))[:, None], x.shape, dim)


def _numpy_rank(rows: np.ndarray, rank: int) -> np.ndarray | int:
    """One rank for all rows where that serves: partitioning costs less than the sort that ranks of their own need."""
    n = rows.shape[1]
    if rank >= 0:
        return rank
    if dtypes.is_float(rows.dtype):
        nan = np.count_nonzero(rows != rows, axis=1)
        if nan.any():
            valid = n - nan
            return np.where(nan > 0, valid, (n - 1) // 2) if rank == MEDIAN else np.maximum(valid - 1, 0) // 2
    return (n - 1) // 2


# y[row] = order[row, r], r by how many of the row are NaN: they are its last ones
@triton.jit(do_not_specialize=["rows", "columns"])
def _median_kernel(values, order, y, n, rows, columns, strides, y_strides, steps, SKIPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    at = (i // rows) * strides[0] + (i % rows) * strides[1]
    low = tl.zeros((BLOCK,), tl.int64)
    high = low + columns
    for _ in range(steps):
        middle = (low + high) // 2
        v = tl.load(values + at + middle * strides[2], mask=mask & (low < high), other=0)
        number = (v == v) & (low < high)
        high = tl.where((v != v) & (low < high), middle, high)
        low = tl.where(number, middle + 1, low)
    if SKIPS:
        rank = tl.maximum(low - 1, 0) // 2
    else:
        rank = tl.where(low < columns, low, (columns - 1) // 2)
    place = tl.load(order + at + rank * strides[2], mask=mask, other=0)
    tl.store(y + (i // rows) * y_strides[0] + (i % rows) * y_strides[1], place, mask=mask)


def _forward(x: CudaArray, *, dim: int, rank: int) -> CudaArray:
    before, n, after = split_shape(x.shape, dim)
    if rank < 0 and not dtypes.is_float(x.dtype):
        rank = (n - 1) // 2
    if rank >= 0:
        order = first_of_rows(x, dim, rank + 1, False)[1]
        return copied(order[(*(slice(None),) * dim, slice(rank, rank + 1))]) if x.shape else order
    values, order = first_of_rows(x, dim, n, False)
    y = allocate(_kept(x.shape, dim), INT64, x)
    source, target = as_rows(values, dim), as_rows(y, dim)
    rows = before if after == 1 else after
    launch(
        _median_kernel, (cdiv(y.size, BLOCK),), source.array, order, y, y.size, rows, n, source.strides, target.strides, n.bit_length(),
        SKIPS=rank == NANMEDIAN, BLOCK=BLOCK,
    )  # fmt: skip
    return y


def _shape(x: Any, *, dim: int, rank: int) -> Spec:
    refuse_kind("rank_place", x.dtype, ORDERED)
    d = normal_dim("rank_place", dim, len(x.shape))
    if len(x.shape):
        refuse_empty("rank_place", tuple(x.shape), (d,), "median")
    return Spec(_kept(tuple(x.shape), d), INT64)


def _samples(rng: np.random.Generator) -> list[Sample]:
    found = [
        Sample(rng.normal(size=shape), dim=dim, rank=rank) for shape, dim, rank in (((5, 7), 1, 2), ((9, 3), 0, -1), ((2, 6, 3), 1, -2))
    ]
    found += [Sample(special(rng), dim=1, rank=rank) for rank in (0, 21, MEDIAN, NANMEDIAN)]
    return [*found, Sample(np.full((2, 3), np.nan), dim=1, rank=NANMEDIAN), Sample(np.asarray(1.5), dim=0, rank=0)]


op(
    "rank_place", _rank_place, cpu=_rank_place_cpu, shape=_shape, forward=_forward, differentiable=False, samples=_samples,
    dtypes=("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"),
)  # fmt: skip
