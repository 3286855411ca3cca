"""cummax, cummin: the largest and smallest so far along a dim, and where it stood last. NaN wins, the later of equals as well."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts.cpu import scanning
from tritensor.kernels.parts.pointwise_samples import spaced
from tritensor.kernels.parts.reduction import ORDERED
from tritensor.kernels.parts.rows.recurrence import TILE, new_like, recur, scan_shape
from tritensor.kernels.parts.rows.row_tiles import row_tunable, tiles_for
from tritensor.kernels.parts.rows.scan_parts import Scan, scan_rows
from tritensor.kernels.reductions.extrema import compared_in, loser, positions
from tritensor.kernels.reductions.linear_scan import shifted
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, normal_dim, op, ops

row_tunable("cummax")

_I64 = np.dtype(np.int64)


# the later (b, j) replaces (a, i) if b >= a or b is NaN
@triton.jit
def _later_largest(a, i, b, j):
    replaces = (b >= a) | (b != b)
    return tl.where(replaces, b, a), tl.where(replaces, j, i)


@triton.jit
def _later_smallest(a, i, b, j):
    replaces = (b <= a) | (b != b)
    return tl.where(replaces, b, a), tl.where(replaces, j, i)


# values_i = max (min) of x_j over j <= i, indices_i = the last such j
@triton.jit
def _with_index(value, col):
    return value, tl.broadcast_to(col[None, :], value.shape).to(tl.int64)


@triton.jit
def _running_largest(states):
    return tl.associative_scan(states, 1, _later_largest)


@triton.jit
def _running_smallest(states):
    return tl.associative_scan(states, 1, _later_smallest)


@triton.jit
def _join_largest(before, states):
    return _later_largest(before[0], before[1], states[0], states[1])


@triton.jit
def _join_smallest(before, states):
    return _later_smallest(before[0], before[1], states[0], states[1])


@triton.jit
def _both(states):
    return states


def _running_extreme(ufunc: np.ufunc, x: np.ndarray, *, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The index is that of the last element so far that equals the extreme, or is NaN as it is."""
    rows = np.moveaxis(np.atleast_1d(x), dim, -1)
    values = ufunc.accumulate(rows, axis=-1)
    records = np.where((rows == values) | (rows != rows), np.arange(rows.shape[-1]), 0)
    indices = np.maximum.accumulate(records, axis=-1)
    return tuple(np.moveaxis(a, -1, dim).reshape(x.shape) for a in (values, indices))  # type: ignore[return-value]


def _running_extreme_cpu(name: str, ufunc: np.ufunc, x: np.ndarray, *, dim: int) -> tuple[np.ndarray, np.ndarray]:
    axis = normal_dim(name, dim, x.ndim)
    if x.ndim == 0 or x.size == 0:
        return x.copy(), np.zeros(x.shape, _I64)
    wide = x.astype(np.float32) if x.dtype.kind == "V" else x
    before, n, after = scanning.split(x.shape, axis)
    if x.size <= scanning.FEW:
        values = ufunc.accumulate(wide, axis=axis)
        records = np.where((wide == values) | (wide != wide), np.arange(n).reshape(n, *(1,) * (x.ndim - 1 - axis)), 0)
        return values.astype(x.dtype, copy=False), np.maximum.accumulate(records, axis=axis)
    if after >= scanning.WIDE:  # whole vectors of rows, without a copy that turns them
        parts = [scanning.running_extremes_by_rows(ufunc, part) for part in wide.reshape(before, n, after)]
        values, indices = (np.stack(found).reshape(x.shape) for found in zip(*parts, strict=True))
    else:
        moved = np.ascontiguousarray(np.moveaxis(wide, axis, -1))
        found = scanning.running_extremes(ufunc, moved.reshape(-1, n))
        values, indices = (np.ascontiguousarray(np.moveaxis(a.reshape(moved.shape), -1, axis)) for a in found)
    return values.astype(x.dtype, copy=False), indices


def _forward(name: str, scan: Any, join: Any, sign: int, x: CudaArray, *, dim: int) -> tuple[CudaArray, CudaArray]:
    axis, (kind,) = normal_dim(name, dim, len(x.shape)), compared_in(x.dtype)
    values, indices = new_like(x), new_like(x, _I64)
    on = tiles_for("cummax", x.shape, axis, x.dtype, limit=TILE, tile=TILE, size=8)
    scan_rows(x, (values, indices), axis, on, Scan(_with_index, scan, join, _both, (loser(kind, sign), 0), (kind, _I64), 0))
    return values, indices


def _shape(name: str, x: Any, *, dim: int) -> tuple[Spec, Spec]:
    return scan_shape(name, ORDERED, x, dim, x.dtype), Spec(x.shape, _I64)


# Gradient: the sum of g over the positions whose index names an element. They follow one another and begin at it, so s_i = g_i + [same index] s_(i+1)
# at the first of them is that sum.
def _rule(g: Any, indices: Any, dim: int) -> Any:
    if g[0] is None:
        return None
    shape, kind = indices.shape, g[0]._array.dtype
    axis = normal_dim("cummax", dim, len(shape))
    if 0 in shape:
        return g[0]
    same = ops.cast(ops.eq(indices, shifted(indices, axis, 1, -1)), dtype=kind)
    sums = ops.linear_scan(same, g[0], dim=axis, reverse=True)
    return ops.mul(sums, ops.cast(ops.eq(indices, positions(shape, axis, indices.device)), dtype=kind))


@triton.jit
def _same(here, there):
    return here == there


@triton.jit
def _at_its_index(s, position, index):
    return (tl.where(index == position, s, 0),)


def _backward(g: Any, indices: CudaArray, dim: int) -> Any:
    if g[0] is None:
        return None
    axis, dx = normal_dim("cummax", dim, len(indices.shape)), new_like(g[0])
    kind = dtypes.accumulator(dx.dtype)
    recur("cummax", indices, g[0], (indices,), (dx,), axis, weight=_same, finish=_at_its_index, reverse=True, kind=kind)
    return dx


def _cpu_backward(g: Any, indices: np.ndarray, dim: int) -> Any:
    if g[0] is None:
        return None
    if indices.size == 0 or indices.ndim == 0:
        return g[0].copy()
    axis, kept = normal_dim("cummax", dim, indices.ndim), dtypes.accumulator(g[0].dtype)
    moved = np.ascontiguousarray(indices.swapaxes(axis, -1))
    # the positions that name an element are neighbours and begin at it, so that each run is one slice to add up
    starts = np.flatnonzero(moved == np.arange(moved.shape[-1]))
    dx = np.zeros(moved.shape, kept)
    dx.reshape(-1)[starts] = np.add.reduceat(np.ascontiguousarray(g[0].swapaxes(axis, -1), dtype=kept).reshape(-1), starts)
    return np.ascontiguousarray(dx.swapaxes(axis, -1)).astype(g[0].dtype, copy=False)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, ties, NaN, infinities, rows longer than a tile, blocks on the CPU, no elements."""
    nan = spaced(rng, 3, 9)
    nan[1, 3] = nan[1, 5] = nan[2, 0] = np.nan
    return [
        Sample(spaced(rng, 5, 7), dim=1),
        Sample(spaced(rng, 6, 5), dim=0),
        Sample(spaced(rng, 3, 4, 2), dim=1),
        Sample(np.round(rng.normal(size=(4, 9))), dim=1, smooth=False),
        Sample(nan, dim=1, smooth=False),
        Sample(np.full((2, 3), np.inf) * np.array([[1.0], [-1.0]]), dim=1, smooth=False),
        Sample(np.round(2 * rng.normal(size=(1, 1100))), dim=1, smooth=False),
        Sample(spaced(rng, 3, 0), dim=1),
    ]


for _name, _what, _ufunc, _scan, _join, _sign in (
    ("cummax", "Largest", np.maximum, _running_largest, _join_largest, -1), ("cummin", "Smallest", np.minimum, _running_smallest, _join_smallest, 1),
):  # fmt: skip
    op(
        _name, partial(_running_extreme, _ufunc), cpu=partial(_running_extreme_cpu, _name, _ufunc), forward=partial(_forward, _name, _scan, _join, _sign),
        shape=partial(_shape, _name), rule=_rule, backward=_backward, cpu_backward=_cpu_backward, outputs=("values", "indices"), samples=_samples,
        dtypes=("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "bool"),
        doc=f"{_what} so far along dim, and its last index; the gradient goes to that element.",
    )  # fmt: skip
