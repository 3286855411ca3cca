"""grid_sample on a GPU: an output element a thread; the gradient to the image by sorted cells, so that it adds in one order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.grid_indices import long_offsets, positions
from tritensor.kernels.parts.indices.radix_sort import sort_keys
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.view_arithmetic import volume
from tritensor.ops.array import CudaArray

BLOCK = 128
MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
TAPS = (2, 1, 4)


@triton.jit
def _reflect(at, n, ALIGN: tl.constexpr, F: tl.constexpr):
    """A position mirrored into an axis of n cells, and the sign of the mirroring."""
    low = 0.0 if ALIGN else -0.5
    span = (n - 1).to(F) if ALIGN else n.to(F)
    away = tl.abs(at - low)
    flips = tl.floor(away / tl.maximum(span, 0.5))
    rest = away - flips * span
    odd = flips - 2 * tl.floor(flips / 2) != 0
    sign = tl.where(at < low, -1.0, 1.0)
    sign = tl.where(span > 0, tl.where(odd, -sign, sign), 0.0)
    return tl.where(span > 0, tl.where(odd, span - rest, rest) + low, 0.0), sign


@triton.jit
def _show(at, n, PADDING: tl.constexpr, ALIGN: tl.constexpr, F: tl.constexpr):
    """A position as the padding shows it, and its derivative."""
    slope = tl.full(at.shape, 1, F)
    if PADDING == 2:
        at, slope = _reflect(at, n, ALIGN, F)
    # beyond the border the position stands still: nothing moves with the grid's number
    if PADDING > 0:
        slope = tl.where((at > 0) & (at < (n - 1).to(F)), slope, 0.0)
        at = tl.minimum(tl.maximum(at, 0.0), (n - 1).to(F))
    return at, slope


@triton.jit
def _keys(d):
    near = (1.25 * d - 2.25) * d * d + 1
    far = ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0
    return tl.where(d <= 1, near, far)


@triton.jit
def _keys_slope(d):
    return tl.where(d <= 1, (3.75 * d - 4.5) * d, (-2.25 * d + 7.5) * d - 6.0)


@triton.jit
def _tap(u, k, n, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr, F: tl.constexpr):
    """The k-th cell of grid number u on an axis of n cells, its weight, the weight's derivative by u, and whether it is in the image."""
    cells = n.to(F)
    if ALIGN:
        at = (u + 1) / 2 * (cells - 1)
        half = (cells - 1) / 2
    else:
        at = ((u + 1) * cells - 1) / 2
        half = cells / 2
    if MODE == 2:
        low = tl.floor(at)
        away = at - low - (k - 1)
        d = tl.abs(away)
        w = _keys(d)
        slope = _keys_slope(d) * tl.where(away < 0, -1.0, 1.0) * half
        cell, _ = _show(low + (k - 1), n, PADDING, ALIGN, F)
    else:
        at, slope = _show(at, n, PADDING, ALIGN, F)
        low = tl.floor(at)
        t = at - low
        if MODE == 1:  # to the nearest, halves to the even one
            odd = low - 2 * tl.floor(low / 2)
            cell = tl.where((t > 0.5) | ((t == 0.5) & (odd != 0)), low + 1, low)
            w = tl.full(at.shape, 1, F)
            slope = tl.zeros(at.shape, F)
        else:
            cell = low + k
            w = t if k == 1 else 1 - t
            slope = (slope if k == 1 else -slope) * half
    there = (cell >= 0) & (cell < cells)
    return tl.where(there, cell, 0.0).to(tl.int32), w, slope, there


# y[n, c, p] = sum over taps of w_d(grid[n, p]) w_h(..) w_v(..) x[n, c, d, h, v]
@triton.jit(do_not_specialize=["elements", "channels", "count", "size", "strides"])
def _sample_kernel(
    x, grid, y, elements, channels, count, size, strides,
    AXES: tl.constexpr, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr, K: tl.constexpr, F: tl.constexpr,
    LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < elements
    p = at % count
    c = at // count % channels
    n = at // count // channels
    numbers = grid + (n * count + p) * AXES
    across = tl.load(numbers, mask=inside, other=0).to(F)
    down = tl.load(numbers + 1, mask=inside, other=0).to(F)
    from_ = x + n * strides[0] + c * strides[1]
    acc = tl.zeros((BLOCK,), F)
    for a in tl.static_range(K if AXES > 2 else 1):
        # an image has no third number: it would be read behind the grid's end
        if AXES > 2:
            i, w_i, _, in_i = _tap(tl.load(numbers + 2, mask=inside, other=0).to(F), a, size[0], MODE, PADDING, ALIGN, F)
            i = i.to(at.dtype)
        else:
            i, w_i, in_i = 0, 1.0, inside
        for b in tl.static_range(K):
            j, w_j, _, in_j = _tap(down, b, size[1], MODE, PADDING, ALIGN, F)
            for e in tl.static_range(K):
                k, w_k, _, in_k = _tap(across, e, size[2], MODE, PADDING, ALIGN, F)
                cell = i * strides[2] + j.to(at.dtype) * strides[3] + k.to(at.dtype) * strides[4]
                value = tl.load(from_ + cell, mask=inside & in_i & in_j & in_k, other=0)
                acc += value.to(F) * (w_i * w_j * w_k)
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=inside)


# dgrid[n, p, a] = sum over c and taps of g[n, c, p] x[n, c, tap] times the derivative of the tap's weight by number a
@triton.jit(do_not_specialize=["elements", "channels", "count", "size", "strides"])
def _grid_gradient_kernel(
    g, x, grid, dgrid, elements, channels, count, size, strides,
    AXES: tl.constexpr, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr, K: tl.constexpr, F: tl.constexpr,
    LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < elements
    p = at % count
    n = at // count
    across = tl.load(grid + at * AXES, mask=inside, other=0).to(F)
    down = tl.load(grid + at * AXES + 1, mask=inside, other=0).to(F)
    acc_i, acc_j, acc_k = tl.zeros((BLOCK,), F), tl.zeros((BLOCK,), F), tl.zeros((BLOCK,), F)
    for a in tl.static_range(K if AXES > 2 else 1):
        if AXES > 2:
            i, w_i, s_i, in_i = _tap(tl.load(grid + at * AXES + 2, mask=inside, other=0).to(F), a, size[0], MODE, PADDING, ALIGN, F)
            i = i.to(at.dtype)
        else:
            i, w_i, s_i, in_i = 0, 1.0, 0.0, inside
        for b in tl.static_range(K):
            j, w_j, s_j, in_j = _tap(down, b, size[1], MODE, PADDING, ALIGN, F)
            for e in tl.static_range(K):
                k, w_k, s_k, in_k = _tap(across, e, size[2], MODE, PADDING, ALIGN, F)
                there = inside & in_i & in_j & in_k
                cell = i * strides[2] + j.to(at.dtype) * strides[3] + k.to(at.dtype) * strides[4]
                along = tl.zeros((BLOCK,), F)
                for c in range(channels):
                    arriving = tl.load(g + (n * channels + c) * count + p, mask=inside, other=0).to(F)
                    value = tl.load(x + n * strides[0] + c * strides[1] + cell, mask=there, other=0)
                    along += arriving * value.to(F)
                acc_i += along * (s_i * w_j * w_k)
                acc_j += along * (w_i * s_j * w_k)
                acc_k += along * (w_i * w_j * s_k)
    kind = dgrid.dtype.element_ty
    tl.store(dgrid + at * AXES, acc_k.to(kind), mask=inside)
    tl.store(dgrid + at * AXES + 1, acc_j.to(kind), mask=inside)
    if AXES > 2:
        tl.store(dgrid + at * AXES + 2, acc_i.to(kind), mask=inside)


# keys[t, n, p] = the cell of tap t among those of all images (their number where it is outside), and its weight
@triton.jit(do_not_specialize=["elements", "count", "cells", "images", "size"])
def _taps_kernel(
    grid, keys, weights, elements, count, cells, images, size,
    AXES: tl.constexpr, MODE: tl.constexpr, PADDING: tl.constexpr, ALIGN: tl.constexpr, K: tl.constexpr, F: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < elements
    across = tl.load(grid + at * AXES, mask=inside, other=0).to(F)
    down = tl.load(grid + at * AXES + 1, mask=inside, other=0).to(F)
    for a in tl.static_range(K if AXES > 2 else 1):
        if AXES > 2:
            i, w_i, _, in_i = _tap(tl.load(grid + at * AXES + 2, mask=inside, other=0).to(F), a, size[0], MODE, PADDING, ALIGN, F)
        else:
            i, w_i, in_i = 0, 1.0, inside
        for b in tl.static_range(K):
            j, w_j, _, in_j = _tap(down, b, size[1], MODE, PADDING, ALIGN, F)
            for e in tl.static_range(K):
                k, w_k, _, in_k = _tap(across, e, size[2], MODE, PADDING, ALIGN, F)
                there = in_i & in_j & in_k
                key = at // count * cells + (i * size[1] + j).to(tl.int64) * size[2] + k
                to = ((a * K + b) * K + e) * elements + at
                tl.store(keys + to, tl.where(there, key, images * cells), mask=inside)
                tl.store(weights + to, tl.where(there, w_i * w_j * w_k, 0.0).to(F), mask=inside)


# dx[n, c, cell] = sum of weight * g[n, c, p] over the sorted taps that name the cell, one program walking each run of equal keys
@triton.jit(do_not_specialize=["taps", "elements", "count", "channels", "cells", "images"])
def _runs_kernel(
    dx, g, keys, order, weights, taps, elements, count, channels, cells, images, F: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    program, row_blocks = tl.program_id(0), tl.cdiv(taps, BM)
    q = (program % row_blocks).to(tl.int64) * BM + tl.arange(0, BM)  # (BM,)
    c = (program // row_blocks).to(tl.int64) * BN + tl.arange(0, BN)  # (BN,)
    last = images * cells
    key = tl.load(keys + q, mask=q < taps, other=last)
    before = tl.load(keys + q - 1, mask=(q > 0) & (q < taps), other=-1)
    first = (key < last) & (key != before)  # this lane's program owns the run that starts here
    acc = tl.zeros((BM, BN), F)
    live = first
    k = 0
    while tl.max(live.to(tl.int32), 0) > 0:
        tap = tl.load(order + q + k, mask=live, other=0).to(tl.int64)
        share = tl.load(weights + tap, mask=live, other=0)
        p = tap % elements
        from_ = (p // count * channels)[:, None] * count + c[None, :] * count + (p % count)[:, None]
        some = live & (share != 0)  # a cell that is named by a weight of 0 takes no NaN
        acc += tl.load(g + from_, mask=some[:, None] & (c < channels)[None, :], other=0).to(F) * share[:, None]
        k += 1
        after = tl.load(keys + q + k, mask=live & (q + k < taps), other=-1)
        live = live & (after == key)
    to = dx + (key // cells * channels)[:, None] * cells + c[None, :] * cells + (key % cells)[:, None]
    tl.store(to, acc.to(dx.dtype.element_ty), mask=first[:, None] & (c < channels)[None, :])


def _constants(x: CudaArray, axes: int, mode: str, padding: str, align: bool) -> dict[str, Any]:
    return {
        "AXES": axes, "MODE": MODES[mode], "PADDING": PADDINGS[padding], "ALIGN": align, "K": TAPS[MODES[mode]],
        "F": tl.float64 if x.dtype == np.float64 else tl.float32, "BLOCK": BLOCK,
    }  # fmt: skip


def _size(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (3 - len(sizes)) + tuple(sizes)


def sample(x: CudaArray, grid: CudaArray, mode: str, padding: str, align: bool) -> CudaArray:
    """x (N, C, *sizes) at grid (N, *out, axes): (N, C, *out)."""
    axes, out = grid.shape[-1], grid.shape[1:-1]
    y = allocate((*x.shape[:2], *out), x.dtype, x)
    v = volume(x)
    if y.size:
        launch(
            _sample_kernel, (cdiv(y.size, BLOCK),), v, to_c_order(grid), y, y.size, x.shape[1], math.prod(out), _size(x.shape[2:]),
            v.strides, LONG_OFFSETS=long_offsets(x, y), **_constants(x, axes, mode, padding, align),
        )  # fmt: skip
    return y


def to_grid(g: CudaArray, x: CudaArray, grid: CudaArray, mode: str, padding: str, align: bool) -> CudaArray:
    """The gradient to the grid."""
    axes, out = grid.shape[-1], grid.shape[1:-1]
    dgrid = allocate(grid.shape, grid.dtype, grid)
    elements = grid.size // axes
    v = volume(x)
    if elements:
        launch(
            _grid_gradient_kernel, (cdiv(elements, BLOCK),), to_c_order(g), v, to_c_order(grid), dgrid, elements, x.shape[1], math.prod(out),
            _size(x.shape[2:]), v.strides, LONG_OFFSETS=long_offsets(x, g, grid), **_constants(x, axes, mode, padding, align),
        )  # fmt: skip
    return dgrid


def to_image(g: CudaArray, grid: CudaArray, sizes: tuple[int, ...], mode: str, padding: str, align: bool) -> CudaArray:
    """The gradient to the image: taps sorted by cell, and each cell's added in the order of their positions."""
    axes, count = grid.shape[-1], math.prod(grid.shape[1:-1])
    images, channels = g.shape[:2]
    cells, elements = math.prod(sizes), images * count
    dx = filled((images, channels, *sizes), g.dtype, g.device, 0)
    # no position: zeros, and nothing to sort
    if dx.size == 0 or elements == 0:
        return dx
    constants = _constants(g, axes, mode, padding, align)
    double = g.dtype == np.float64
    taps = elements * TAPS[MODES[mode]] ** axes
    keys = allocate((taps,), np.dtype(np.int64), g)
    weights = allocate((taps,), np.dtype(np.float64 if double else np.float32), g)
    launch(
        _taps_kernel, (cdiv(elements, BLOCK),), to_c_order(grid), keys, weights, elements, count, cells, images, _size(sizes), **constants
    )
    # sorted, all that a cell gets is one run: added by one program in one order, without atomics
    sorted_keys, order = sort_keys(keys, (images * cells).bit_length())
    columns = min(triton.next_power_of_2(channels), 16)
    rows = 256 // columns
    launch(
        _runs_kernel, (cdiv(taps, rows) * cdiv(channels, columns),), dx, to_c_order(g), sorted_keys, order, weights, taps, elements, count, channels,
        cells, images, F=constants["F"], BM=rows, BN=columns,
    )  # fmt: skip
    return dx
