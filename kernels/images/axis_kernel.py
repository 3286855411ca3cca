"""The kernel of all maps that act on each axis by itself: resampling and padding, forwards and backwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.images.axis_maps import UNIT, Axis, adjoint_span, forward_span, low_of, source, tap, total
from tritensor.kernels.parts.allocation import image_for
from tritensor.kernels.parts.float8 import BYTE, is_float8
from tritensor.kernels.parts.grid_indices import long_offsets, place_of, tile, tile_of
from tritensor.kernels.parts.view_arithmetic import is_channels_last, volume
from tritensor.ops.array import CudaArray


@triton.jit
def _reached(
    at, k, sums, size, out, scale, inverse, shift, low, taps,
    LIVE: tl.constexpr, MODE: tl.constexpr, ALIGN: tl.constexpr, ADJOINT: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    """Where the k-th tap of a result's place on one axis lies, its weight, and whether there is one."""
    if not LIVE:
        i, w, there = at, 1.0, at >= 0
    elif ADJOINT:
        i, w, there = source(at, k, size, out, scale, inverse, shift, low, taps, MODE, ALIGN, F)
    else:
        i, w, there = tap(at, k, size, out, scale, shift, sums, MODE, ALIGN, F)
    return i.to(at.dtype), w, there  # in 64 bits where the arrays need that: the offset of a row may pass 32


# y[n, c, d, h, v] = sum over i, j, k of w[d, i] w[h, j] w[v, k] x[n, c, i, j, k], each axis by its own taps
@triton.jit(
    do_not_specialize=["rows", "width", "channels", "result", "size", "out", "scale", "inverse", "shift", "low", "spans", "taps", "strides"]
)
def _axes_kernel(
    x, y, rows, width, channels, result, size, out, scale, inverse, shift, low, spans, taps, strides,
    MODE: tl.constexpr, ALIGN: tl.constexpr, ADJOINT: tl.constexpr, COUNT: tl.constexpr, PLAIN: tl.constexpr, TAPS: tl.constexpr,
    F: tl.constexpr, ACC: tl.constexpr, CHANNELS_LAST: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row, col, inside, at = tile_of(rows, width // EVEN * EVEN, LONG_OFFSETS, ROWS, COLS)
    n, c, d, h, v = place_of(row, col, channels, result, True, CHANNELS_LAST)
    acc = tl.zeros((ROWS, COLS), ACC)
    total_d = total(d, size[0], scale[0], taps[0], MODE, F) if COUNT > 2 and not ADJOINT else 1.0
    total_h = total(h, size[1], scale[1], taps[1], MODE, F) if COUNT > 1 and not ADJOINT else 1.0
    total_v = total(v, size[2], scale[2], taps[2], MODE, F) if not ADJOINT else 1.0
    start = n * strides[0] + c * strides[1]
    for a in range((TAPS if TAPS > 0 else spans[0]) if COUNT > 2 else 1):
        i, w_i, in_i = _reached(
            d, a, total_d, size[0], out[0], scale[0], inverse[0], shift[0], low[0], taps[0], COUNT > 2, MODE, ALIGN, ADJOINT, F
        )
        for b in range((TAPS if TAPS > 0 else spans[1]) if COUNT > 1 else 1):
            j, w_j, in_j = _reached(
                h, b, total_h, size[1], out[1], scale[1], inverse[1], shift[1], low[1], taps[1], COUNT > 1, MODE, ALIGN, ADJOINT, F
            )
            for e in range(TAPS if TAPS > 0 else spans[2]):
                k, w_k, in_k = _reached(
                    v, e, total_v, size[2], out[2], scale[2], inverse[2], shift[2], low[2], taps[2], True, MODE, ALIGN, ADJOINT, F
                )
                there = inside & in_i & in_j & in_k
                value = tl.load(x + (start + i * strides[2] + j * strides[3] + k * strides[4]), mask=there, other=0).to(ACC)
                # one tap of weight 1 is taken as it is: 0 times an infinity beside it would be NaN
                if PLAIN:
                    acc += value
                else:
                    acc += tl.where(there, value * (w_i * w_j * w_k).to(ACC), 0)
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=inside)


def accumulator(dtype: np.dtype, plain: bool) -> tl.dtype:
    """The type that taps are added in: float32 for 16-bit floats, any other as it is."""
    if dtype.kind in "iu" and plain:
        return getattr(tl, dtype.name)
    return tl.float64 if dtype.itemsize == 8 else tl.float32


def map_axes(x: CudaArray, axes: Sequence[Axis], mode: int, align_corners: bool = False, adjoint: bool = False) -> CudaArray:
    """x (N, C, one to three axes) under a map, or under its adjoint; channels stay last where they lie so."""
    sizes = tuple(a.size if adjoint else a.out for a in axes)
    last = is_channels_last(x)
    memory, y = image_for((*x.shape[:2], *sizes), x.dtype, x, last)
    if y.size == 0:
        return y
    full = (*(Axis(1, 1, 1.0),) * (3 - len(axes)), *axes)
    real = np.float64 if x.dtype == np.float64 else float
    forward = tuple(forward_span(a, mode) for a in full)
    spans = tuple(adjoint_span(a, mode) for a in full) if adjoint else forward
    # few taps, alike on all axes, are unrolled, so that their loads overlap
    fixed = max(spans[-len(axes) :]) <= 4 and len(set(spans[-len(axes) :])) == 1
    # they are only moved, as bytes: not every GPU computes with float8
    as_bytes = x.dtype.kind == "b" or is_float8(x.dtype)  # float8 is only moved: the adjoint refuses it
    source_ = volume(x.view(BYTE) if as_bytes else x)
    target = memory.view(BYTE) if as_bytes else memory
    t = tile(tuple(y.shape), last)
    launch(
        _axes_kernel, (t.programs,), source_, target, t.rows, t.width, x.shape[1], tuple(a.size if adjoint else a.out for a in full),
        tuple(a.size for a in full), tuple(a.out for a in full), tuple(real(a.scale) for a in full),
        tuple(real(1 / a.scale if a.scale else 0) for a in full), tuple(a.shift for a in full),
        tuple(real(low_of(a, mode, align_corners)) for a in full), spans, forward, source_.strides,
        MODE=mode, ALIGN=align_corners, ADJOINT=adjoint, COUNT=len(axes), PLAIN=mode in UNIT, TAPS=spans[-1] if fixed else 0,
        F=tl.float64 if x.dtype == np.float64 else tl.float32, ACC=accumulator(source_.dtype, mode in UNIT),
        CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(x, y), **t.constants,
    )  # fmt: skip
    return y
