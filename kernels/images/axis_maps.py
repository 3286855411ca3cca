"""Maps of one axis of an image to another length: the cells that an output takes and their weights, in numpy and in kernels.

A map is linear and acts on each axis by itself, y[o] = sum_k w[o, k] x[i[o, k]]. Its adjoint gathers too: for a cell, the outputs that
may have taken it form a range, known from the map's slope, and each says by what weight. Positions are computed in float32 (float64 for
float64), as PyTorch computes them: for the nearest cell the rounding decides.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

NEAREST, EXACT, LINEAR, CUBIC, AREA, LINEAR_AA, CUBIC_AA, REFLECT, REPLICATE, CIRCULAR = range(10)
# in that order
MODES = ("nearest", "nearest-exact", "linear", "cubic", "area", "linear-aa", "cubic-aa", "reflect", "replicate", "circular")
UNIT = (NEAREST, EXACT, REFLECT, REPLICATE, CIRCULAR)  # one tap of weight 1: nothing is computed
_NEAREST, _EXACT, _LINEAR, _CUBIC, _AREA = (tl.constexpr(m) for m in range(5))
_REFLECT, _REPLICATE = tl.constexpr(REFLECT), tl.constexpr(REPLICATE)
_LINEAR_AA, _CUBIC_AA, _CIRCULAR = tl.constexpr(LINEAR_AA), tl.constexpr(CUBIC_AA), tl.constexpr(CIRCULAR)


class Axis(NamedTuple):
    """One axis: cells, outputs, cells per output (as the type computes it), and how many outputs lie before cell 0 (padding)."""

    size: int
    out: int
    scale: float
    shift: int = 0


def axis_of(size: int, out: int, mode: int, align_corners: bool, factor: float | None, dtype: np.dtype) -> Axis:
    """The axis of a resampling: `factor` is the scale that the user gave and means, None where sizes say it."""
    real = np.float64 if dtype == np.float64 or (dtype == np.uint8 and mode not in (NEAREST, EXACT)) else np.float32
    # corners that are aligned map the first cell to the first output and the last to the last
    if align_corners and mode not in (NEAREST, EXACT, AREA):
        scale = real(size - 1) / real(out - 1) if out > 1 else real(0)
    elif factor is not None and not (mode == NEAREST and out in (size, 2 * size)):  # where PyTorch takes the sizes' word, too
        scale = real(1.0 / factor)
    else:
        scale = real(size) / real(out)
    return Axis(size, out, float(real(1) if mode == LINEAR and size == out else scale))


def _support(mode: int, scale: float) -> float:
    """How far an antialiased output reaches, in cells."""
    return (1.0 if mode == LINEAR_AA else 2.0) * max(scale, 1.0)


def forward_span(axis: Axis, mode: int) -> int:
    """The most taps of an output."""
    if mode in UNIT:
        return 1
    if mode == AREA:
        starts = np.arange(axis.out) * axis.size // axis.out
        return int((-(-(np.arange(axis.out) + 1) * axis.size // axis.out) - starts).max(initial=1))
    # an antialiased output averages over all cells that it stands for: its reach grows with the scale
    if mode in (LINEAR_AA, CUBIC_AA):
        return min(math.ceil(_support(mode, axis.scale)) * 2 + 1, axis.size)
    return 2 if mode == LINEAR else 4


def adjoint_span(axis: Axis, mode: int) -> int:
    """The most outputs that may have taken a cell: what `source` counts through."""
    if mode == REFLECT:
        return 3
    # a cell shows once in each whole turn
    if mode == CIRCULAR:
        return -(-axis.out // axis.size)
    if mode == REPLICATE:
        after = axis.out - axis.size - axis.shift
        return axis.out if axis.size == 1 else max(axis.shift, after, 0) + 1
    if mode == AREA:
        return -(-axis.out // axis.size) + 1
    # one output, or one cell, under align_corners: every output may have taken the cell
    if axis.scale == 0:
        return axis.out
    # An open interval of length L holds at most ceil(L) outputs; where the nearest cell is taken rounding may put one more at either end.
    return math.ceil(2 * reach(axis, mode) / axis.scale) + (3 if mode in (NEAREST, EXACT) else 1)


def reach(axis: Axis, mode: int) -> float:
    """How far from its position an output takes cells."""
    if mode in (LINEAR_AA, CUBIC_AA):
        return _support(mode, axis.scale)
    return {LINEAR: 1.0, CUBIC: 2.0}.get(mode, 0.5)


# ---------------------------------------------------------------- in kernels


@triton.jit
def _cubic(t, A: tl.constexpr):
    """Keys's kernel ("Cubic convolution interpolation for digital image processing", 1981) at a distance 0 <= t < 2."""
    near = ((A + 2) * t - (A + 3)) * t * t + 1
    far = ((A * t - 5 * A) * t + 8 * A) * t - 4 * A
    return tl.where(t <= 1, near, tl.where(t < 2, far, 0.0))


@triton.jit
def _antialiased(t, MODE: tl.constexpr):
    """The filter of an antialiased map at a distance t."""
    t = tl.abs(t)
    return tl.where(t < 1, 1 - t, 0.0) if MODE == _LINEAR_AA else _cubic(t, -0.5)


@triton.jit
def _position(o, scale, ALIGN: tl.constexpr, CLAMPED: tl.constexpr, F: tl.constexpr):
    """Where output o lies among the cells."""
    if ALIGN:
        at = o.to(F) * scale
    else:
        at = (o.to(F) + 0.5) * scale - 0.5
        if CLAMPED:
            at = tl.maximum(at, 0.0)
    return at


@triton.jit
def _window(o, size, scale, MODE: tl.constexpr, F: tl.constexpr):
    """The first cell of an antialiased output, the one after its last, its centre, and by what a distance is multiplied."""
    wide = tl.maximum(scale, 1.0)
    support = wide if MODE == _LINEAR_AA else 2 * wide
    centre = scale * (o.to(F) + 0.5)
    first = tl.maximum((centre - support + 0.5).to(tl.int32), 0)
    last = tl.minimum((centre + support + 0.5).to(tl.int32), size)
    return first, last, centre, 1 / wide


@triton.jit
def total(o, size, scale, taps, MODE: tl.constexpr, F: tl.constexpr):
    """The sum of an antialiased output's weights, by which each is divided; 1 for other maps."""
    found = tl.full(o.shape, 1, F)
    if (MODE == _LINEAR_AA) | (MODE == _CUBIC_AA):
        found = tl.zeros(o.shape, F)
        first, last, centre, narrow = _window(o, size, scale, MODE, F)
        for k in range(taps):
            i = first + k
            found += tl.where(i < last, _antialiased((i.to(F) - centre + 0.5) * narrow, MODE), 0.0)
    return found


@triton.jit
def _padded(o, size, shift, MODE: tl.constexpr):
    """The cell that padding shows at output o."""
    i = o - shift
    if MODE == _REFLECT:
        i = tl.where(i < 0, -i, i)
        i = tl.where(i >= size, 2 * (size - 1) - i, i)
    elif MODE == _REPLICATE:
        i = tl.minimum(tl.maximum(i, 0), size - 1)
    else:
        i = i % size
        i = tl.where(i < 0, i + size, i)
    return i


@triton.jit
def _nearest(o, size, scale, MODE: tl.constexpr, F: tl.constexpr):
    at = o.to(F) * scale if MODE == _NEAREST else (o.to(F) + 0.5) * scale
    return tl.minimum(at.to(tl.int32), size - 1)


@triton.jit
def tap(o, k, size, out, scale, shift, sum_of_weights, MODE: tl.constexpr, ALIGN: tl.constexpr, F: tl.constexpr):
    """The k-th cell that output o takes, its weight, and whether there is one."""
    there = o >= 0
    w = 1.0
    if MODE >= _REFLECT:
        i = _padded(o, size, shift, MODE)
    elif (MODE == _NEAREST) | (MODE == _EXACT):
        i = _nearest(o, size, scale, MODE, F)
    elif MODE == _AREA:
        first = o.to(tl.int64) * size // out
        last = ((o.to(tl.int64) + 1) * size + out - 1) // out
        i = (first + k).to(tl.int32)
        w = 1 / (last - first).to(F)
        there = i < last
    elif MODE == _LINEAR:
        at = _position(o, scale, ALIGN, True, F)
        first = tl.minimum(at.to(tl.int32), size - 1)
        part = tl.minimum(at - first.to(F), 1.0)
        i = tl.minimum(first + k, size - 1)
        w = tl.where(k == 0, 1 - part, part)
    elif MODE == _CUBIC:
        at = _position(o, scale, ALIGN, False, F)
        first = tl.floor(at)
        part = at - first
        i = tl.minimum(tl.maximum(first.to(tl.int32) - 1 + k, 0), size - 1)
        w = _cubic(tl.abs(part + 1 - k), -0.75)
    else:
        first, last, centre, narrow = _window(o, size, scale, MODE, F)
        i = first + k
        w = _antialiased((i.to(F) - centre + 0.5) * narrow, MODE) / sum_of_weights
        there = i < last
    return i, w, there


@triton.jit
def source(i, k, size, out, scale, inverse, shift, low, taps, MODE: tl.constexpr, ALIGN: tl.constexpr, F: tl.constexpr):
    """The k-th output that may have taken cell i, by what weight, and whether there is one. `low`: reach and offset of the map, see `low_of`."""
    w = 1.0
    if MODE == _REFLECT:
        o = tl.where(k == 0, i + shift, tl.where(k == 1, shift - i, shift + 2 * (size - 1) - i))
        there = (k == 0) | ((k == 1) & (i > 0)) | ((k == 2) & (i < size - 1))
    elif MODE == _CIRCULAR:
        o = (i + shift) % size + k * size
        there = i >= 0
    elif MODE == _REPLICATE:
        o = tl.where(i == 0, 0, tl.maximum(i + shift, 0)) + k
        there = o <= tl.where(i == size - 1, out - 1, i + shift)
    elif MODE == _AREA:
        o = (i.to(tl.int64) * out // size).to(tl.int32) + k
        first = o.to(tl.int64) * size // out
        last = ((o.to(tl.int64) + 1) * size + out - 1) // out
        w = 1 / (last - first).to(F)
        there = (first <= i) & (i < last)
    else:
        o = tl.floor((i.to(F) - low) * inverse).to(tl.int32) + k
        if (MODE == _NEAREST) | (MODE == _EXACT):
            o -= 1
        w = _weight(o, i, size, out, scale, shift, taps, MODE, ALIGN, F)
        there = w != 0
    return o, w, there & (o >= 0) & (o < out)


@triton.jit
def _weight(o, i, size, out, scale, shift, taps, MODE: tl.constexpr, ALIGN: tl.constexpr, F: tl.constexpr):
    """By what weight output o takes cell i."""
    if (MODE == _NEAREST) | (MODE == _EXACT):
        w = tl.where((o >= 0) & (_nearest(o, size, scale, MODE, F) == i), 1.0, 0.0)
    elif (MODE == _LINEAR) | (MODE == _CUBIC):
        w = tl.zeros(i.shape, F)
        for k in tl.static_range(2 if MODE == _LINEAR else 4):
            j, part, _ = tap(o, k, size, out, scale, shift, 1.0, MODE, ALIGN, F)
            w += tl.where(i == j, part, 0.0)
    else:
        first, last, centre, narrow = _window(o, size, scale, MODE, F)
        w = _antialiased((i.to(F) - centre + 0.5) * narrow, MODE) / total(o, size, scale, taps, MODE, F)
        w = tl.where((i >= first) & (i < last), w, 0.0)
    return w


def low_of(axis: Axis, mode: int, align_corners: bool) -> float:
    """What `source` subtracts from a cell before it divides by the scale: the first output that may reach it lies there or after."""
    if mode == NEAREST:
        return 0.0
    return reach(axis, mode) if align_corners and mode in (LINEAR, CUBIC) else reach(axis, mode) - 0.5 + axis.scale / 2


# ---------------------------------------------------------------- in numpy


class Taps(NamedTuple):
    """A map as tables: the cells (m, K) that each of m results takes, and the weights; 0 where there is none."""

    cells: np.ndarray
    weights: np.ndarray
    used: np.ndarray  # whether a tap is there


def _keys(t: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _shown(i: np.ndarray, size: int, mode: int) -> np.ndarray:
    """The cells that padding shows at places i, counted from cell 0."""
    if mode == REPLICATE:
        return i.clip(0, size - 1)
    if mode == CIRCULAR:
        return i % size
    i = np.abs(i)
    return np.where(i >= size, 2 * (size - 1) - i, i)


def _window_taps(axis: Axis, mode: int, real: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    o, k = np.arange(axis.out)[:, None], np.arange(forward_span(axis, mode))
    if mode == AREA:
        first, last = o * axis.size // axis.out, -(-(o + 1) * axis.size // axis.out)
        cells = first + k
        return cells, np.broadcast_to(real(1) / (last - first).astype(real), cells.shape), cells < last
    scale, support = real(axis.scale), real(_support(mode, axis.scale))
    centre = scale * (o.astype(real) + real(0.5))
    first = np.maximum((centre - support + real(0.5)).astype(np.int64), 0)
    last = np.minimum((centre + support + real(0.5)).astype(np.int64), axis.size)
    cells = first + k
    t = np.abs((cells.astype(real) - centre + real(0.5)) * (real(1) / max(scale, real(1))))
    weights = np.where(t < 1, 1 - t, 0) if mode == LINEAR_AA else _keys(t, -0.5)
    # the table is as wide as the widest window: shorter ones end before it
    weights = np.where(cells < last, weights, 0)
    return cells, weights / weights.sum(1, keepdims=True), cells < last


def _forward_taps(axis: Axis, mode: int, align_corners: bool, real: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    o = np.arange(axis.out)
    size, scale, at = axis.size, real(axis.scale), o.astype(real)
    if mode >= REFLECT:
        cells = _shown(o - axis.shift, size, mode)[:, None]
        return cells, np.ones(cells.shape, real), np.ones(cells.shape, np.bool_)
    if mode in (NEAREST, EXACT):
        cells = np.minimum(((at if mode == NEAREST else at + real(0.5)) * scale).astype(np.int64), size - 1)[:, None]
        return cells, np.ones(cells.shape, real), np.ones(cells.shape, np.bool_)
    if mode in (AREA, LINEAR_AA, CUBIC_AA):
        return _window_taps(axis, mode, real)
    at = at * scale if align_corners else (at + real(0.5)) * scale - real(0.5)
    if mode == LINEAR:
        # before the first cell's centre there is no other: the position stands still, as in PyTorch
        at = np.maximum(at, 0)
        first = np.minimum(at.astype(np.int64), size - 1)
        part = np.minimum(at - first.astype(real), real(1))
        cells, weights = np.stack([first, np.minimum(first + 1, size - 1)], 1), np.stack([1 - part, part], 1)
    else:
        low = np.floor(at)
        cells = (low.astype(np.int64)[:, None] + np.arange(-1, 3)).clip(0, size - 1)
        weights = _keys(np.abs((at - low)[:, None] + real(1) - np.arange(4).astype(real)), -0.75)
    return cells, weights, np.ones(cells.shape, np.bool_)


@lru_cache(maxsize=64)
def taps_of(axis: Axis, mode: int, align_corners: bool, double: bool, adjoint: bool) -> Taps:
    """The tables of a resampled axis, or of its adjoint."""
    real = np.float64 if double else np.float32
    cells, weights, used = _forward_taps(axis, mode, align_corners, real)
    weights = weights.astype(real, copy=False)
    if not adjoint:
        return Taps(np.where(used, cells, 0), np.where(used, weights, 0), used)
    results = np.broadcast_to(np.arange(axis.out)[:, None], cells.shape)[used]
    to, by = cells[used], weights[used]
    # sorted by cell, taps of one cell are a run: their places in the table follow from the runs' beginnings
    order = np.argsort(to, kind="stable")
    to, results, by = to[order], results[order], by[order]
    counts = np.bincount(to, minlength=axis.size)
    place = np.arange(to.size) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (axis.size, max(int(counts.max(initial=0)), 1))
    found = Taps(np.zeros(shape, np.int64), np.zeros(shape, real), np.arange(shape[1]) < counts[:, None])
    found.cells[to, place], found.weights[to, place] = results, by
    return found
