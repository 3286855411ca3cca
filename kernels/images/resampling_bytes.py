"""Images of bytes at another size, as PyTorch computes them on the CPU: the last axis first, weights as whole numbers of 2^-p, each axis rounded to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.images.axis_maps import CUBIC, CUBIC_AA, LINEAR, LINEAR_AA, Axis, Taps, forward_span, tap, taps_of, total
from tritensor.kernels.images.resampling_cpu import RUN, RUN_ROWS, Blocks, along_bands, bands_of, channels_last
from tritensor.kernels.parts.allocation import image_for
from tritensor.kernels.parts.grid_indices import long_offsets, place, positions
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.view_arithmetic import is_channels_last, volume
from tritensor.ops.array import CudaArray

WEIGHTED = (LINEAR, CUBIC, LINEAR_AA, CUBIC_AA)
_MOST = 22  # bits of a weight's fraction
_BLOCK = 128


def in_bytes(dtype: np.dtype, mode: int) -> bool:
    """Whether a map of this type is computed here."""
    return bool(dtype == np.uint8) and mode in WEIGHTED


@lru_cache(maxsize=64)
def _fixed(axis: Axis, mode: int, align_corners: bool) -> tuple[Taps, int]:
    """An axis's tables with weights as whole numbers, and p: they are multiples of 2^-p, the largest of which fits 16 bits. Taps that the edge sends
    to one cell count as one."""
    cells, weights, used = (np.array(t) for t in taps_of(axis, mode, align_corners, True, False))
    # PyTorch adds up the weights of one cell before it rounds them: rounded apart they may differ by a unit
    if mode in (LINEAR, CUBIC):
        for k in range(1, cells.shape[1]):
            for j in range(k):
                same = used[:, j] & used[:, k] & (cells[:, j] == cells[:, k])
                weights[same, j] += weights[same, k]
                used[same, k] = False
    weights[~used] = 0
    largest = float(weights.max(initial=0))
    p = next((p for p in range(_MOST) if int(0.5 + largest * (1 << (p + 1))) >= 1 << 15), _MOST)
    whole = np.trunc(weights * (1 << p) + np.where(weights < 0, -0.5, 0.5))
    return Taps(cells, whole, used), p


@lru_cache(maxsize=64)
def _bands(axis: Axis, mode: int, align_corners: bool, run: int) -> Blocks:
    """An axis's matrices, in the smaller type in which every sum of weights and bytes, and the half added to it, is exact."""
    t, p = _fixed(axis, mode, align_corners)
    most = 255 * float(np.abs(t.weights).sum(1).max(initial=0)) + (1 << p >> 1)
    return bands_of(t._replace(weights=(t.weights * 2.0**-p).astype(np.float32 if most <= 1 << 24 else np.float64)), run)


def resample_axes(x: np.ndarray, axes: Sequence[Axis], mode: int, align_corners: bool) -> np.ndarray:
    """x (N, C, one to three axes) of bytes under a weighted map."""
    last = channels_last(x)
    y = np.ascontiguousarray(np.moveaxis(x, 1, -1) if last else x)
    lead = 1 if last else 2
    for d in reversed(range(len(axes))):
        a = axes[d]
        # PyTorch leaves an axis alone whose size does not change, also with antialiasing
        if a.size == a.out or y.size == 0:
            y = y if a.size == a.out else np.empty((*y.shape[: lead + d], a.out, *y.shape[lead + d + 1 :]), np.uint8)
            continue
        outer, inner = int(np.prod(y.shape[: lead + d])), int(np.prod(y.shape[lead + d + 1 :]))
        bands = _bands(a, mode, align_corners, RUN if inner == 1 else RUN_ROWS)
        summed = along_bands(y.reshape(outer, a.size, inner).astype(bands[0][4].dtype), a.out, bands)
        summed += 0.5
        if mode in (CUBIC, CUBIC_AA):  # the others stay between 0 and 256
            np.clip(summed, 0, 255, out=summed)
        y = summed.astype(np.uint8).reshape(*y.shape[: lead + d], a.out, *y.shape[lead + d + 1 :])
    # every size stayed: an op gives memory of its own
    if np.may_share_memory(x, y):
        y = y.copy()
    return np.moveaxis(y, -1, 1) if last else y


@triton.jit
def _weight(o, k, size, out, scale, sums, MODE: tl.constexpr, ALIGN: tl.constexpr, TAPS: tl.constexpr):
    """The cell and weight of the k-th tap; of those that the edge sends to one cell the first has the weights of all, the others 0."""
    i, w, there = tap(o, k, size, out, scale, 0, sums, MODE, ALIGN, tl.float64)
    if TAPS > 0:
        merged = tl.zeros(w.shape, tl.float64)
        for j in tl.static_range(TAPS):
            other, part, _ = tap(o, j, size, out, scale, 0, sums, MODE, ALIGN, tl.float64)
            merged += tl.where(other == i, part, 0.0)
            there = there & ((other != i) | (j >= k))
        w = merged
    return i, w, there


# y[.., o, ..] = (sum over k of round(2^p w[o, k]) x[.., i[o, k], ..] + 2^(p - 1)) >> p, cut to 0 .. 255
@triton.jit(do_not_specialize=["elements", "channels", "result", "size", "out", "scale", "spans", "strides", "bits", "unit"])
def _bytes_kernel(
    x, y, elements, channels, result, size, out, scale, spans, strides, bits, unit,
    AXIS: tl.constexpr, MODE: tl.constexpr, ALIGN: tl.constexpr, TAPS: tl.constexpr, CHANNELS_LAST: tl.constexpr,
    LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < elements
    n, c, d, h, v = place(at, channels, result, True, CHANNELS_LAST)
    from_ = x + n * strides[0] + c * strides[1]
    if AXIS == 0:
        o, from_ = d, from_ + h * strides[3] + v * strides[4]
    elif AXIS == 1:
        o, from_ = h, from_ + d * strides[2] + v * strides[4]
    else:
        o, from_ = v, from_ + d * strides[2] + h * strides[3]
    sums = total(o, size, scale, spans, MODE, tl.float64)
    acc = tl.zeros((BLOCK,), tl.int32)
    for k in range(TAPS if TAPS > 0 else spans):
        i, w, there = _weight(o, k, size, out, scale, sums, MODE, ALIGN, TAPS)
        whole = (w * unit + tl.where(w < 0, -0.5, 0.5)).to(tl.int32)
        value = tl.load(from_ + i.to(at.dtype) * strides[2 + AXIS], mask=inside & there, other=0).to(tl.int32)
        acc += tl.where(inside & there, value * whole, 0)
    acc = (acc + unit.to(tl.int32) // 2) >> bits
    tl.store(y + at, tl.minimum(tl.maximum(acc, 0), 255).to(tl.uint8), mask=inside)


def map_axes(x: CudaArray, axes: Sequence[Axis], mode: int, align_corners: bool) -> CudaArray:
    """`resampled` on a GPU: a launch for each axis that changes. The shape of x with all its sizes kept is copied."""
    last = is_channels_last(x)
    y = x
    lead = 3 - len(axes)
    changing = [d for d in reversed(range(len(axes))) if axes[d].size != axes[d].out]
    for d in changing or [len(axes) - 1]:
        a = axes[d] if changing else Axis(x.shape[-1], x.shape[-1], 1.0)
        source = y
        sizes = tuple(a.out if e == d else n for e, n in enumerate(source.shape[2:]))
        memory, y = image_for((*x.shape[:2], *sizes), x.dtype, source, last)
        if y.size == 0:
            continue
        seen = volume(source)
        _, p = _fixed(a, mode, align_corners)
        launch(
            _bytes_kernel, (cdiv(y.size, _BLOCK),), seen, memory, y.size, x.shape[1], (*(1,) * lead, *sizes), a.size, a.out, np.float64(a.scale),
            forward_span(a, mode), seen.strides, p, np.float64(1 << p), AXIS=lead + d, MODE=mode, ALIGN=align_corners,
            TAPS={LINEAR: 2, CUBIC: 4}.get(mode, 0), CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(source, y), BLOCK=_BLOCK,
        )  # fmt: skip
    return y
