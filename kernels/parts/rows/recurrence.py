"""Linear recurrences along a dim on the device, y_i = w_i y_(i-1) + b_i: what the gradients of running products, extremes and log-sums are."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.rows.row_tiles import align, as_rows, load, place, store, tiles_for, unit

TILE = 1024  # elements that one program scans at a time


# y -> w y + b, then y -> w' y + b'
@triton.jit
def _affine(w, b, w_, b_):
    return w * w_, b * w_ + b_


# s_i = weight_i s_(i-1) + b_i (REVERSE: from s_(i+1)), and y_i = finish(s_i, i, values)
@triton.jit(do_not_specialize=["columns"])
def _recurrence_kernel(
    w, b, others, ys, rows, columns, w_strides, b_strides, other_strides, y_strides,
    WEIGHT: tl.constexpr, FINISH: tl.constexpr, SHIFTS: tl.constexpr, KIND: tl.constexpr, REVERSE: tl.constexpr, W_UNIT: tl.constexpr,
    B_UNIT: tl.constexpr, OTHER_UNITS: tl.constexpr, Y_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    batch, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    tiles = tl.cdiv(columns, BN)
    before = tl.zeros((BM,), KIND)
    back: tl.constexpr = 1 if REVERSE else -1
    for t in range(tiles):
        start = (tiles - 1 - t) * BN if REVERSE else t * BN
        col = start + tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        neighbour = inside[:, None] & ((col + back >= 0) & (col + back < columns))[None, :]  # none before the first
        here = load(w, batch, row, col, w_strides, lanes, 0, W_UNIT)  # (BM, BN)
        there = load(w, batch, row, col + back, w_strides, neighbour, 0, W_UNIT)
        weight = tl.where(neighbour, WEIGHT(here, there).to(KIND), 0)
        value = load(b, batch, row, col, b_strides, lanes, 0, B_UNIT).to(KIND)
        products, sums = tl.associative_scan((weight, value), 1, _affine, reverse=REVERSE)
        sums = sums + tl.where(before[:, None] == 0, 0, products * before[:, None])
        values = ()
        for k in tl.static_range(len(others)):
            if SHIFTS[k] == 0:
                other = load(others[k], batch, row, col, other_strides[k], lanes, 0, OTHER_UNITS[k])
            else:
                at = col + SHIFTS[k]
                known = inside[:, None] & ((at >= 0) & (at < columns))[None, :]
                other = load(others[k], batch, row, at, other_strides[k], known, 0, OTHER_UNITS[k])
            values = values + (other,)
        found = FINISH(sums, col[None, :], *values)
        for k in tl.static_range(len(ys)):
            store(ys[k], found[k], batch, row, col, y_strides[k], lanes, Y_UNIT)
        before = tl.sum(tl.where((col == (start if REVERSE else start + BN - 1))[None, :], sums, 0), axis=1)


@triton.jit
def there_weighs(here, there):
    """The weight stands at the neighbour: that of the adjoint of a recurrence."""
    return there


def recur(
    name: str, w: CudaArray, b: CudaArray, others: tuple[CudaArray, ...], ys: tuple[CudaArray, ...], dim: int, *,
    weight: Any, finish: Any, reverse: bool, shifts: tuple[int, ...] = (), kind: np.dtype,
) -> None:  # fmt: skip
    """s = weight(w here, w at the neighbour) s(neighbour) + b along dim; ys = finish(s, place, others), new C-ordered arrays.

    Args:
        name: under which the tile is chosen.
        others: further arrays that `finish` sees, each read `shifts` places further along dim (0 beyond the ends).
        kind: the type that s is kept in.
    """
    on = tiles_for(name, b.shape, dim, kind, limit=TILE, tile=TILE)
    seen = [as_rows(a, dim) for a in (w, b, *others)]
    targets = [as_rows(a, dim) for a in ys]
    launch(
        _recurrence_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), seen[0].array, seen[1].array,
        tuple(s.array for s in seen[2:]), ys, on.rows, on.columns, seen[0].strides, seen[1].strides, tuple(s.strides for s in seen[2:]),
        tuple(s.strides for s in targets), WEIGHT=weight, FINISH=finish, SHIFTS=shifts or (0,) * len(others), KIND=getattr(tl, dtypes.of(kind).name),
        REVERSE=reverse, W_UNIT=unit(seen[0].strides), B_UNIT=unit(seen[1].strides), OTHER_UNITS=tuple(unit(s.strides) for s in seen[2:]),
        Y_UNIT=unit(targets[0].strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns),
    )  # fmt: skip


def scan_kept(dtype: np.dtype) -> np.dtype:
    """The type that a scan is kept in: float64 for float32, because a million terms one after the other lose four digits."""
    return np.dtype(np.float64) if dtype == np.float32 else dtypes.accumulator(dtype)


def new_like(x: CudaArray, dtype: np.dtype | None = None) -> CudaArray:
    """Uninitialised C-ordered memory of x's shape."""
    return allocate(x.shape, x.dtype if dtype is None else dtype, x)
