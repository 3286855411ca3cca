"""Linear recurrences along a dim on the device, y_i = w_i y_(i-1) + b_i, by which running products, extremes and log-sums are differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.rows.row_tiles import align, as_rows, load, place, store, tiles_for, unit
from tritensor.kernels.parts.rows.scan_parts import in_parts, keep, last_of, total_before, totals_of
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Spec, normal_dim, refuse_kind

TILE = 1024  # elements that one program scans at a time


# y -> w y + b, then y -> w' y + b'
@triton.jit
def _affine(w, b, w_, b_):
    return w * w_, b * w_ + b_


# The same over a part of a row or more: products of thousands of weights may overflow, and 0 times such a product is to stay 0.
@triton.jit
def _chained(w, b, w_, b_):
    return tl.where((w == 0) | (w_ == 0), 0, w * w_), tl.where(b == 0, 0, b * w_) + b_


@triton.jit
def _chain_scan(states):
    return tl.associative_scan(states, 1, _chained)


@triton.jit
def _chain_join(before, states):
    return _chained(before[0], before[1], states[0], states[1])


# s_i = weight_i s_(i-1) + b_i (REVERSE: from s_(i+1)), and y_i = finish(s_i, i, values). Of rows in several parts: TOTALS, what each part does to
# the s before it, alone (parts counted in the order of the scan); STARTS, from those
@triton.jit(do_not_specialize=["columns", "length"])
def _recurrence_kernel(
    w, b, others, ys, totals, rows, columns, length, w_strides, b_strides, other_strides, y_strides,
    WEIGHT: tl.constexpr, FINISH: tl.constexpr, SHIFTS: tl.constexpr, KIND: tl.constexpr, REVERSE: tl.constexpr, W_UNIT: tl.constexpr,
    B_UNIT: tl.constexpr, OTHER_UNITS: tl.constexpr, Y_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
    TOTALS: tl.constexpr, STARTS: tl.constexpr,
):  # fmt: skip
    batch, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    # rows in one part need no totals of others
    if TOTALS or STARTS:
        part, parts = tl.program_id(1), tl.num_programs(1)
        low = part * (length // BN * BN)  # whole steps: with that known, accesses are wide
        tiles = tl.cdiv(tl.minimum(columns - low, length), BN)
        own, turn = (batch * rows + row) * parts, parts - 1 - part if REVERSE else part
    else:
        low, tiles = 0, tl.cdiv(columns, BN)
    product = tl.full((BM,), 1, KIND)
    before = tl.zeros((BM,), KIND)
    if STARTS:
        before = total_before(totals, own, turn, inside, _chain_scan, _chain_join, (1, 0), (KIND, KIND), BM, BN)[1]
    back: tl.constexpr = 1 if REVERSE else -1
    for t in range(tiles):
        start = low + ((tiles - 1 - t) * BN if REVERSE else t * BN)
        col = start + tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        neighbour = inside[:, None] & ((col + back >= 0) & (col + back < columns))[None, :]  # none before the first
        here = load(w, batch, row, col, w_strides, lanes, 0, W_UNIT)  # (BM, BN)
        there = load(w, batch, row, col + back, w_strides, neighbour, 0, W_UNIT)
        weight = tl.where(neighbour, WEIGHT(here, there).to(KIND), 0)
        value = load(b, batch, row, col, b_strides, lanes, 0, B_UNIT).to(KIND)
        products, sums = tl.associative_scan((weight, value), 1, _affine, reverse=REVERSE)
        # products of many weights may overflow, and 0 times infinity is no 0
        sums = sums + tl.where(before[:, None] == 0, 0, products * before[:, None])
        last = col == (start if REVERSE else start + BN - 1)
        if TOTALS:
            product = _chained(product, product, last_of((products,), last)[0], product)[0]
        else:
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
        before = last_of((sums,), last)[0]
    if TOTALS:
        keep(totals, (product, before), own + turn, inside)


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
    programs = on.batch * cdiv(on.rows, on.BM) if on.columns else 0
    parts, length = in_parts(programs, on.columns, on.BN, np.dtype(kind))
    totals = totals_of(parts, on, (kind, kind), b)
    for sums in (True, False) if parts > 1 else (False,):
        launch(
            _recurrence_kernel, (programs, parts), seen[0].array, seen[1].array, tuple(s.array for s in seen[2:]), ys, totals, on.rows, on.columns,
            length, seen[0].strides, seen[1].strides, tuple(s.strides for s in seen[2:]), tuple(s.strides for s in targets), WEIGHT=weight,
            FINISH=finish, SHIFTS=shifts or (0,) * len(others), KIND=getattr(tl, dtypes.of(kind).name), REVERSE=reverse,
            W_UNIT=unit(seen[0].strides), B_UNIT=unit(seen[1].strides), OTHER_UNITS=tuple(unit(s.strides) for s in seen[2:]),
            Y_UNIT=unit(targets[0].strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns), TOTALS=sums, STARTS=not sums and parts > 1,
        )  # fmt: skip


def scan_kept(dtype: np.dtype) -> np.dtype:
    """The type that a scan is kept in: float64 for float32, because a million terms one after the other lose four digits."""
    return np.dtype(np.float64) if dtype == np.float32 else dtypes.accumulator(dtype)


def scan_shape(name: str, kinds: tuple[str, ...], x: Any, dim: int, dtype: np.dtype) -> Spec:
    """The Spec of a scan of x along dim, in `dtype`. Raises DTypeError for other kinds, IndexError for a dim that x has not."""
    refuse_kind(name, x.dtype, kinds)
    normal_dim(name, dim, len(x.shape))
    return Spec(x.shape, dtype)


def new_like(x: CudaArray, dtype: np.dtype | None = None) -> CudaArray:
    """Uninitialised C-ordered memory of x's shape."""
    return allocate(x.shape, x.dtype if dtype is None else dtype, x)
