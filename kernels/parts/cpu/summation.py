"""Sums on the CPU: pairwise or in blocks, never in one long sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.parts.axes import count, reduced
from tritensor.kernels.parts.cpu.float_conversions import as_float32, converted, is_half
from tritensor.llvm import products
from tritensor.llvm.passes.sums import total as total_of_halves

_ROWS = 32  # rows that one BLAS call adds, one after the other
_FEW = 4096  # elements that float64 sums, or means, in one call
_RUN = 128  # elements of a row that one BLAS call adds
_RUNS = (_RUN, 100, 96, 80, 64)  # so many at a time, where that divides the row
_first_ones = {t: [np.ones(n, t) for n in range(_RUN + 1)] for t in "fd"}  # so many ones
_ones = {np.dtype(t): np.ones(_RUN, t) for t in (np.float32, np.float64)}


def row_sums(x: np.ndarray) -> np.ndarray:
    """Sum over axis 1 of a C-ordered (rows, n): runs by BLAS, their sums pairwise; three times as fast as add.reduce alone."""
    rows, n = x.shape
    run = next((r for r in _RUNS if n % r == 0), 0)
    # runs must divide the row, so that the array is a matrix of them as it lies; a row of one run is one call of numpy's
    if n < 2 * _RUN or not run:
        return np.add.reduce(x, axis=1)
    return np.add.reduce((x.reshape(-1, run) @ _ones[x.dtype][:run]).reshape(rows, -1), axis=1)


def _sum_all(x: np.ndarray) -> np.ndarray:
    """Sum of a C-ordered array."""
    flat = x.reshape(-1)
    whole = flat.size // _RUN * _RUN
    return np.asarray(np.add.reduce(flat[:whole].reshape(-1, _RUN) @ _ones[x.dtype]) + np.add.reduce(flat[whole:]), x.dtype)


def _sum_of_halves(x: np.ndarray) -> np.ndarray:
    """Sum of a C-ordered array of 16-bit floats in float32: by machine code, what that leaves a cache's worth at a time."""
    flat = x.reshape(-1)
    most, done = total_of_halves(flat)
    sums = [most, *[_sum_all(as_float32(flat[start : start + _PIECE])) for start in range(done, flat.size, _PIECE)]]
    return np.asarray(np.add.reduce(np.array(sums)), np.float32)


_PIECE = 32768  # 16-bit floats widened at a time


def _sum_rows(x: np.ndarray) -> np.ndarray:
    """Sum over axis 0 of a C-ordered (n, columns) of more than 2 * _ROWS rows: blocks of rows by ones @ block (BLAS is up to 20 times faster than add.reduce
    here), the blocks' sums by halves. Few columns are taken together with their neighbours of the next rows."""
    ones, (n, columns) = _ones[x.dtype], x.shape
    together = max(64 // max(columns, 1), 1)
    blocks = n // (_ROWS * together)
    whole = blocks * _ROWS * together
    parts = products.matmul(ones[:_ROWS], x[:whole].reshape(blocks, _ROWS, together * columns)).reshape(blocks * together, columns)
    if whole < n:
        parts = np.concatenate([parts, _few_rows(x[whole:])])
    return _halved(parts)


def _few_rows(x: np.ndarray) -> np.ndarray:
    """Rows as fewer rows of the same sum."""
    ones, whole = _ones[x.dtype], x.shape[0] // _ROWS * _ROWS
    parts = products.matmul(ones[:_ROWS], x[:whole].reshape(-1, _ROWS, x.shape[1]))
    return np.concatenate([parts, (ones[: x.shape[0] - whole] @ x[whole:])[None]])


def _halved(x: np.ndarray) -> np.ndarray:
    """Sum over axis 0, the upper half onto the lower until one row is left."""
    while len(x) > 1:
        half = len(x) // 2
        top = x[:half] + x[half : 2 * half]
        if len(x) % 2:
            top[0] += x[-1]
        x = top
    return x[0]


def _sum_runs(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray | None:
    """Sum over axes of which the last are runs of memory: those runs first, without a copy; None where there are none, or short ones."""
    first = x.ndim
    while first - 1 in dims and (first == x.ndim or x.strides[first - 1] == x.strides[first] * x.shape[first]):
        first -= 1
    n = count(x.shape, tuple(range(first, x.ndim)))
    if first == x.ndim or n < 2 * _RUN or x.strides[-1] != x.itemsize:
        return None
    if x.flags.c_contiguous:
        sums = row_sums(x.reshape(-1, n)).reshape(x.shape[:first])
    else:
        sums = np.add.reduce(x, axis=tuple(range(first, x.ndim)))
    others = tuple(d for d in dims if d < first)
    return total(sums, others) if others else sums


def _sum_strided(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """Sum float32 or float64 over any axes; the result has no reduced axes."""
    kept = tuple(a for a in range(x.ndim) if a not in dims)
    shape = tuple(x.shape[a] for a in kept)
    dims = tuple(sorted(dims, key=lambda a: -abs(x.strides[a])))  # the order of memory, so that runs are long
    if x.strides[dims[-1]] == x.itemsize or not kept:
        return row_sums(np.ascontiguousarray(x.transpose(kept + dims)).reshape(-1, count(x.shape, dims))).reshape(shape)
    return _sum_rows(np.ascontiguousarray(x.transpose(dims + kept)).reshape(count(x.shape, dims), -1)).reshape(shape)


def total(x: np.ndarray, dims: tuple[int, ...], keepdim: bool = False, dtype: np.dtype | None = None) -> np.ndarray:
    """Sum in the accumulator's type (`dtype`, if given), error at most 8 eps * sum|x|. May be a numpy scalar where all is summed."""
    kept = x.dtype if dtype is None else dtype
    if kept not in _ones:
        return np.add.reduce(x, axis=dims, dtype=kept, keepdims=keepdim)
    if x.dtype != kept:
        if kept.itemsize == 4 and is_half(x.dtype) and len(dims) == x.ndim and x.flags.c_contiguous and x.size >= _PIECE:
            return _sum_of_halves(x).reshape(reduced(x.shape, dims, keepdim))
        x = converted(x, kept) if x.dtype.kind in "fV" else x.astype(kept)
    contiguous = x.flags.c_contiguous
    if contiguous and (len(dims) == x.ndim or dims == (x.ndim - 1,)):
        if x.ndim > 1 and dims == (x.ndim - 1,) and 0 < x.shape[-1] <= _RUN:  # add.reduce is slow on short rows
            return x.reshape(-1, x.shape[-1]).dot(_ones[kept][: x.shape[-1]]).reshape(reduced(x.shape, dims, keepdim))
        if x.size < 4096 or (x.ndim > 1 and x.shape[-1] < 2 * _RUN):
            return np.add.reduce(x, axis=dims, keepdims=keepdim)
        out = _sum_all(x) if len(dims) == x.ndim else row_sums(x.reshape(-1, x.shape[-1]))
        return out.reshape(reduced(x.shape, dims, keepdim))
    n = count(x.shape, dims)
    if n <= 2 * _ROWS or x.size == 0:
        if contiguous and dims == (0,) and x.ndim == 2 and x.size and not keepdim:
            return _ones[kept][:n] @ x
        return np.add.reduce(x, axis=dims, keepdims=keepdim)
    if kept.itemsize == 4 and x.size <= _FEW:  # one call, in which no long sum loses digits
        return np.add.reduce(x, axis=dims, dtype=np.float64, keepdims=keepdim).astype(kept)
    out = _sum_runs(x, dims)
    if out is None:
        out = _sum_strided(x, dims)
    return out.reshape(reduced(x.shape, dims, True)) if keepdim else out


def summed(x: np.ndarray, dims: tuple[int, ...], keepdim: bool = False) -> np.ndarray:
    """Sum of floating numbers in their own type, 16-bit floats through float32; an array."""
    # a product with ones costs a third of add.reduce's set-up
    if dims and (small := few(x, dims, keepdim)) is not None:
        return small
    return np.asarray(total(x, dims, keepdim, dtypes.accumulator(x.dtype)), x.dtype)


def centred(x: np.ndarray, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """x - mean over dims, and the mean (kept dims), of float32 or float64. The mean is taken twice, the second time of what the first left: one sum alone
    may be some roundings off, and a constant row would keep those as its deviations."""
    n = x.dtype.type(count(x.shape, dims))
    if x.dtype == np.float32 and x.size <= _FEW:
        wide = np.add.reduce(x, axis=dims, dtype=np.float64, keepdims=True) / n  # so exact that it is taken once
        return np.subtract(x, wide, dtype=x.dtype, casting="same_kind"), np.asarray(wide, x.dtype)
    mean = np.asarray(total(x, dims, True) / n)
    y = np.asarray(x - mean)  # of a 0-d x numpy makes a scalar
    rest = np.asarray(total(y, dims, True) / n)
    rest[~np.isfinite(rest)] = 0  # of an infinite or missing mean nothing is left
    y -= rest
    return y, mean + rest


def is_one_reduce(x: np.ndarray, dims: tuple[int, ...]) -> bool:
    """Whether `total` of float32 or float64 is numpy's reduce and nothing else, whatever the values."""
    if x.dtype not in _ones or not x.size or not 0 < len(dims) < x.ndim or count(x.shape, dims) > 2 * _ROWS:
        return False
    return not (x.flags.c_contiguous and (dims == (x.ndim - 1,) or dims == (0,)))


def few(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The sum of a small float32 or float64 array in C order; None for anything else.
    A product with ones adds as few numbers one after the other as add.reduce does, and sooner."""
    size = x.size
    if not 0 < size <= _RUN or not x.flags.c_contiguous or (ones := _first_ones.get(x.dtype.char)) is None:
        return None
    if len(dims) == x.ndim:
        out = np.empty((), x.dtype)  # an array: to make one of the scalar that dot returns costs as much again
        x.ravel().dot(ones[size], out)
        return out.reshape((1,) * x.ndim) if keepdim else out
    if x.ndim != 2:
        return np.add.reduce(x, axis=dims, keepdims=keepdim) if count(x.shape, dims) <= 2 * _ROWS else None
    rows, columns = x.shape
    if dims == (1,):
        out = x.dot(ones[columns])
        return out.reshape(rows, 1) if keepdim else out
    out = ones[rows].dot(x)
    return out.reshape(1, columns) if keepdim else out
