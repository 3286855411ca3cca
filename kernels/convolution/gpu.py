"""Convolution kernels: implicit matrix products that gather the windows of the image as they go, never storing them."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from tritensor import strides
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.kernels.convolution.geometry import Geometry, Sizes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.configs.spaces import tiles_problem, tiles_space
from tritensor.kernels.parts.copying import dense
from tritensor.kernels.parts.gemm import dot_accumulator, sum_parts
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, config_of, gemm_tiles
from tritensor.kernels.parts.view_arithmetic import is_channels_last
from tritensor.matmul_precision import dot_precision
from tritensor.tuning.tunables import tunable

tunable("conv2d", Tiles, tiles_space, tiles_problem)
tunable("conv2d_weight", Tiles, tiles_space, tiles_problem)


@triton.jit
def _tap(k, channels, kd, kh, kw, CHANNELS_LAST: tl.constexpr, DEEP: tl.constexpr):
    """Channel, kernel plane, row and column of place k in the summed dimension."""
    cell = k // channels if CHANNELS_LAST else k
    j = cell % kw
    i = cell // kw
    e = tl.zeros_like(j)
    if DEEP:
        e = i // kh
        i = i % kh
        if not CHANNELS_LAST:
            e = e % kd
    elif not CHANNELS_LAST:
        i = i % kh
    if CHANNELS_LAST:
        c = k % channels
    else:
        c = k // (kd * kh * kw)
    return c, e, i, j


@triton.jit
def _window(place, out_size, stride, padding, TRANSPOSED: tl.constexpr, DEEP: tl.constexpr):
    """Plane, row and column of x at which the window of an output place begins; TRANSPOSED: what its taps are taken off."""
    top = place // out_size[2]
    left = place % out_size[2]
    front = tl.zeros_like(top)
    if DEEP:
        front = top // out_size[1]
        top = top % out_size[1]
    if TRANSPOSED:
        front += padding[0]
        top += padding[1]
        left += padding[2]
    else:
        front = front * stride[0] - padding[0]
        top = top * stride[1] - padding[1]
        left = left * stride[2] - padding[2]
    return front, top, left


# y[n, o, f, r, q] = sum_{c,e,i,j} w[o, (c,e,i,j)] x[n, c, sd f - pd + dd e, sh r - ph + dh i, sw q - pw + dw j] + bias[o]; w as a dense
# (groups, out, taps). TRANSPOSED: x is sampled at (f + pd - dd e) / sd and so on where those are whole: the gradient of the above.
# Images are volumes of one plane, and then DEEP is False.
@triton.jit(do_not_specialize=["groups", "size", "out_size", "stride", "padding", "dilation", "x_c", "x_d", "y_c", "bias_c"])
def _correlate_kernel(
    x, w, y, bias, m, taps, k_part, pixels, groups, size_y, channels, kernel, size, out_size, out_volume,
    stride, padding, dilation, x_n, x_c, x_d, x_h, x_w, y_n, y_c, y_p, bias_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TRANSPOSED: tl.constexpr, CHANNELS_LAST: tl.constexpr, DEEP: tl.constexpr,
    LONG_OFFSETS: tl.constexpr, X_C1: tl.constexpr, X_W1: tl.constexpr, Y_C1: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(pixels, BLOCK_N)
    tile = tl.program_id(0) % (tiles_m * tiles_n)
    outer = tl.program_id(0) // (tiles_m * tiles_n)
    group = outer % groups
    part = outer // groups
    rows = tile % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)  # tiles of one set of pixels run together: the image stays in the cache
    pixel = tile // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = pixel < pixels
    place = pixel % out_volume
    image = (pixel // out_volume).to(tl.int64)
    front, top, left = _window(place, out_size, stride, padding, TRANSPOSED, DEEP)
    x_at = x + image * x_n + group.to(tl.int64) * channels * x_c  # (BLOCK_N,)
    w_at = w + (group.to(tl.int64) * m + rows % m)[:, None] * taps  # (BLOCK_M, 1)
    channel_step = 1 if X_C1 else x_c
    column_step = 1 if X_W1 else x_w
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    start = part * k_part
    stop = min(start + k_part, taps)
    for at in range(start, stop, BLOCK_K):
        k = at + tl.arange(0, BLOCK_K)
        w_tile = tl.load(w_at + k[None, :], mask=(k < stop)[None, :], other=0)
        c, e, i, j = _tap(k, channels, kernel[0], kernel[1], kernel[2], CHANNELS_LAST, DEEP)
        if TRANSPOSED:
            h = top[None, :] - (i * dilation[1])[:, None]
            v = left[None, :] - (j * dilation[2])[:, None]
            good = (h % stride[1] == 0) & (v % stride[2] == 0) & (h >= 0) & (v >= 0)
            h = h // stride[1]
            v = v // stride[2]
        else:
            h = top[None, :] + (i * dilation[1])[:, None]
            v = left[None, :] + (j * dilation[2])[:, None]
            good = (h >= 0) & (v >= 0)
        good = good & (h < size[1]) & (v < size[2]) & (k < stop)[:, None] & inside[None, :]
        if LONG_OFFSETS:
            shift = c.to(tl.int64)[:, None] * channel_step + h.to(tl.int64) * x_h + v.to(tl.int64) * column_step
        else:
            shift = c[:, None] * channel_step + h * x_h + v * column_step
        if DEEP:
            if TRANSPOSED:
                f = front[None, :] - (e * dilation[0])[:, None]
                good = good & (f % stride[0] == 0) & (f >= 0)
                f = f // stride[0]
            else:
                f = front[None, :] + (e * dilation[0])[:, None]
                good = good & (f >= 0)
            good = good & (f < size[0])
            shift += (f.to(tl.int64) if LONG_OFFSETS else f) * x_d
        x_tile = tl.load(x_at[None, :] + shift, mask=good, other=0)  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(w_tile, x_tile, acc, input_precision=PRECISION, out_dtype=ACC)
    channel = group * m + rows
    if BIAS:
        acc += tl.load(bias + channel * bias_c, mask=rows < m, other=0).to(ACC)[:, None]
    out_step = 1 if Y_C1 else y_c
    y_at = y + part.to(tl.int64) * size_y + channel.to(tl.int64)[:, None] * out_step + (image * y_n + place.to(tl.int64) * y_p)[None, :]
    tl.store(y_at, acc.to(y.dtype.element_ty), mask=(rows < m)[:, None] & inside[None, :])


# dw[o, (c,e,i,j)] = sum over n, f, r, q of g[n, o, f, r, q] x[n, c, sd f - pd + dd e, sh r - ph + dh i, sw q - pw + dw j]
@triton.jit(do_not_specialize=["groups", "size", "out_size", "stride", "padding", "dilation", "x_c", "x_d", "g_d", "g_h", "g_w"])
def _weight_kernel(
    x, g, out, m, taps, k_part, pixels, groups, size_out, channels, kernel, size, out_size, out_volume,
    stride, padding, dilation, x_n, x_c, x_d, x_h, x_w, g_n, g_c, g_d, g_h, g_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CHANNELS_LAST: tl.constexpr, DEEP: tl.constexpr, LONG_OFFSETS: tl.constexpr,
    X_C1: tl.constexpr, X_W1: tl.constexpr, G_C1: tl.constexpr, G_PLANE: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(taps, BLOCK_N)
    tile = tl.program_id(0) % (tiles_m * tiles_n)
    outer = tl.program_id(0) // (tiles_m * tiles_n)
    group = (outer % groups).to(tl.int64)
    part = outer // groups
    rows = tile % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    tap = tile // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
    c, e, i, j = _tap(tap, channels, kernel[0], kernel[1], kernel[2], CHANNELS_LAST, DEEP)
    front = e * dilation[0] - padding[0]
    top = i * dilation[1] - padding[1]
    left = j * dilation[2] - padding[2]
    channel_step = 1 if X_C1 else x_c
    column_step = 1 if X_W1 else x_w
    g_step = 1 if G_C1 else g_c
    x_at = x + group * channels * x_c + c.to(tl.int64) * channel_step  # (BLOCK_N,)
    g_at = g + (group * m + rows % m) * g_step  # (BLOCK_M,)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    start = part * k_part
    stop = min(start + k_part, pixels)
    for at in range(start, stop, BLOCK_K):
        pixel = at + tl.arange(0, BLOCK_K)
        inside = pixel < stop
        image = (pixel // out_volume).to(tl.int64)
        place = pixel % out_volume
        r = place // out_size[2]
        q = place % out_size[2]
        f = tl.zeros_like(r)
        if DEEP:
            f = r // out_size[1]
            r = r % out_size[1]
        if G_PLANE:  # the rows of g follow one another
            g_pixel = image * g_n + place
        else:
            g_pixel = image * g_n + r.to(tl.int64) * g_h + q.to(tl.int64) * g_w
            if DEEP:
                g_pixel += f.to(tl.int64) * g_d
        g_tile = tl.load(g_at[:, None] + g_pixel[None, :], mask=inside[None, :], other=0)  # (BLOCK_M, BLOCK_K)
        h = (r * stride[1])[:, None] + top[None, :]
        v = (q * stride[2])[:, None] + left[None, :]
        good = (h >= 0) & (h < size[1]) & (v >= 0) & (v < size[2]) & inside[:, None] & (tap < taps)[None, :]
        if LONG_OFFSETS:
            shift = (image * x_n)[:, None] + h.to(tl.int64) * x_h + v.to(tl.int64) * column_step
        else:
            shift = (image * x_n)[:, None] + h * x_h + v * column_step
        if DEEP:
            d = (f * stride[0])[:, None] + front[None, :]
            good = good & (d >= 0) & (d < size[0])
            shift += (d.to(tl.int64) if LONG_OFFSETS else d) * x_d
        x_tile = tl.load(x_at[None, :] + shift, mask=good, other=0)  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(g_tile, x_tile, acc, input_precision=PRECISION, out_dtype=ACC)
    at_out = out + part.to(tl.int64) * size_out + (group * m + rows)[:, None] * taps + tap[None, :]
    tl.store(at_out, acc.to(out.dtype.element_ty), mask=(rows < m)[:, None] & (tap < taps)[None, :])


def _long_offsets(x: CudaArray) -> bool:
    """Whether offsets inside one image can pass 32 bits."""
    return sum(abs(s) * (n - 1) for s, n in zip(x.strides[1:], x.shape[1:], strict=True)) >= 1 << 31


def _pieces(k: int, tiles: Tiles) -> tuple[int, int]:
    """Length of one part of the summed dimension, and how many parts there are."""
    part = cdiv(cdiv(max(k, 1), tiles.block_k), tiles.split) * tiles.block_k
    return part, cdiv(max(k, 1), part)


def image_like(x: CudaArray, weight: CudaArray, channels: int, size: Sizes) -> CudaArray:
    """An empty (N, channels, *size) whose channels lie innermost if x's or weight's do."""
    shape = (x.shape[0], channels, *size)
    return allocate(shape, x.dtype, x, strides.images(shape, ((x.shape, x.strides), (weight.shape, weight.strides))))


def _volume(x: CudaArray) -> Sizes:
    """The five strides of images or rows, taken as volumes of one plane."""
    n, c, *rest = x.strides
    return (n, c, *(0,) * (3 - len(rest)), *rest)


def _channels_last(*arrays: CudaArray) -> bool:
    return any(is_channels_last(x) for x in arrays)


def correlate(x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool) -> CudaArray:
    """The convolution of x with weight (O, C / G, *kernel), or, transposed, the gradient that a g (given as x) sends to its input."""
    last = _channels_last(x)
    per_group, out_group, axes = s.channels // s.groups, s.out // s.groups, tuple(range(3, 3 + len(s.kernel)))
    split = weight.as_strided(
        (s.groups, out_group, per_group, *s.kernel), (weight.strides[0] * out_group, *weight.strides), 0
    )  # (G, O / G, C / G, *kernel)
    if transposed:
        m, channels, size, outs = per_group, out_group, s.outs, s.size
        matrix = dense(split.transpose((0, 2, *axes, 1) if last else (0, 2, 1, *axes)))
        y = image_like(x, weight, s.channels, outs)
    else:
        m, channels, size, outs = out_group, per_group, s.size, s.outs
        matrix = dense(split.transpose((0, 1, *axes, 2)) if last else split)
        y = image_like(x, weight, s.out, outs)
    taps, pixels, lead = channels * s.taps, s.batch * math.prod(outs), (1,) * (3 - len(outs))
    if y.size == 0:
        return y
    stored, acc = dot_accumulator(x.dtype)
    key = (m, pixels, taps, s.groups, x.dtype, last and channels % (16 // x.itemsize) == 0, True)
    tiles = config_of("conv2d", key, gemm_tiles(*key))
    k_part, parts = _pieces(taps, tiles)
    into: Any = y if parts == 1 else allocate((parts, y.size), stored, x)
    volume, strides_x = s.three(), _volume(x)
    launch(
        _correlate_kernel, (cdiv(m, tiles.block_m) * cdiv(pixels, tiles.block_n) * s.groups * parts,),
        x, matrix, into, y if bias is None else bias, m, taps, k_part, pixels, s.groups, y.size, channels, volume.kernel, lead + size, lead + outs,
        math.prod(outs), volume.stride, volume.padding, volume.dilation, *strides_x, y.strides[0], y.strides[1], y.strides[-1],
        0 if bias is None else bias.strides[0],
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, TRANSPOSED=transposed, CHANNELS_LAST=last, DEEP=len(outs) == 3,
        LONG_OFFSETS=_long_offsets(x), X_C1=strides_x[1] == 1, X_W1=strides_x[4] == 1, Y_C1=y.strides[1] == 1, BIAS=bias is not None and parts == 1,
        PRECISION=dot_precision(), ACC=acc, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    if parts > 1:
        sum_parts(into, y, bias, 1 if y.strides[1] == 1 else math.prod(outs))
    return y


def _rows_follow(g: CudaArray, outs: Sizes) -> bool:
    """Whether the places of g's images lie one after the other, the axes in order."""
    return all(step == math.prod(outs[d + 1 :]) for d, step in enumerate(g.strides[2:]))


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry) -> CudaArray:
    """dw (O, C / G, *kernel); the sum over pixels is split over programs and the parts added in order."""
    last = _channels_last(x, g)
    m, channels, axes = s.out // s.groups, s.channels // s.groups, len(s.kernel)
    taps, pixels = channels * s.taps, s.batch * math.prod(s.outs)
    out = allocate((s.out, *s.kernel, channels) if last else (s.out, channels, *s.kernel), x.dtype, x)
    if out.size:
        stored, acc = dot_accumulator(x.dtype)
        key = (m, taps, pixels, s.groups, x.dtype, last and x.strides[1] == 1 and channels % (16 // x.itemsize) == 0, True)
        tiles = config_of("conv2d_weight", key, gemm_tiles(*key))
        k_part, parts = _pieces(pixels, tiles)
        into: Any = out if parts == 1 else allocate((parts, out.size), stored, x)
        volume, strides_x = s.three(), _volume(x)
        launch(
            _weight_kernel, (cdiv(m, tiles.block_m) * cdiv(taps, tiles.block_n) * s.groups * parts,),
            x, g, into, m, taps, k_part, pixels, s.groups, out.size, channels, volume.kernel, volume.size, tuple(max(n, 1) for n in volume.outs),
            max(math.prod(s.outs), 1), volume.stride, volume.padding, volume.dilation, *strides_x, *_volume(g),
            BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, CHANNELS_LAST=last, DEEP=axes == 3, LONG_OFFSETS=_long_offsets(x),
            X_C1=x.strides[1] == 1, X_W1=strides_x[4] == 1, G_C1=g.strides[1] == 1, G_PLANE=_rows_follow(g, s.outs),
            PRECISION=dot_precision(), ACC=acc, num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
        if parts > 1:
            sum_parts(into, out)
    return out.transpose((0, axes + 1, *range(1, axes + 1))) if last else out
