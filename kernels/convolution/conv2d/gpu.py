"""Convolution kernels: implicit matrix products that gather the windows of the image as they go, never storing them."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tritensor import strides
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.kernels.convolution.conv2d.cpu import Geometry
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import dense
from tritensor.kernels.parts.gemm import dot_accumulator, sum_parts
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, config_of, gemm_tiles
from tritensor.kernels.parts.view_arithmetic import is_channels_last
from tritensor.matmul_precision import dot_precision


@triton.jit
def _tap(k, channels, kh, kw, CHANNELS_LAST: tl.constexpr):
    """Channel, kernel row and kernel column of place k in the summed dimension."""
    if CHANNELS_LAST:
        c = k % channels
        i = k // channels // kw
        j = k // channels % kw
    else:
        c = k // (kh * kw)
        i = k // kw % kh
        j = k % kw
    return c, i, j


# y[n, o, r, q] = sum_{c,i,j} w[o, (c,i,j)] x[n, c, sh r - ph + dh i, sw q - pw + dw j] + bias[o]; w as a dense (groups, out, taps).
# TRANSPOSED: x is sampled at (r + ph - dh i) / sh, (q + pw - dw j) / sw where those are whole: the gradient of the above.
@triton.jit(do_not_specialize=["groups", "height", "width", "out_width", "sh", "sw", "ph", "pw", "dh", "dw", "x_c", "y_c", "bias_c"])
def _correlate_kernel(
    x, w, y, bias, m, taps, k_part, pixels, groups, size_y, channels, kh, kw, height, width, out_width, out_plane,
    sh, sw, ph, pw, dh, dw, x_n, x_c, x_h, x_w, y_n, y_c, y_p, bias_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TRANSPOSED: tl.constexpr, CHANNELS_LAST: tl.constexpr,
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
    plane = pixel % out_plane
    image = (pixel // out_plane).to(tl.int64)
    top = plane // out_width
    left = plane % out_width
    if TRANSPOSED:
        top += ph
        left += pw
    else:
        top = top * sh - ph
        left = left * sw - pw
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
        c, i, j = _tap(k, channels, kh, kw, CHANNELS_LAST)
        if TRANSPOSED:
            h = top[None, :] - (i * dh)[:, None]
            v = left[None, :] - (j * dw)[:, None]
            good = (h % sh == 0) & (v % sw == 0) & (h >= 0) & (v >= 0)
            h = h // sh
            v = v // sw
        else:
            h = top[None, :] + (i * dh)[:, None]
            v = left[None, :] + (j * dw)[:, None]
            good = (h >= 0) & (v >= 0)
        good = good & (h < height) & (v < width) & (k < stop)[:, None] & inside[None, :]
        if LONG_OFFSETS:
            shift = c.to(tl.int64)[:, None] * channel_step + h.to(tl.int64) * x_h + v.to(tl.int64) * column_step
        else:
            shift = c[:, None] * channel_step + h * x_h + v * column_step
        x_tile = tl.load(x_at[None, :] + shift, mask=good, other=0)  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(w_tile, x_tile, acc, input_precision=PRECISION, out_dtype=ACC)
    channel = group * m + rows
    if BIAS:
        acc += tl.load(bias + channel * bias_c, mask=rows < m, other=0).to(ACC)[:, None]
    out_step = 1 if Y_C1 else y_c
    y_at = y + part.to(tl.int64) * size_y + channel.to(tl.int64)[:, None] * out_step + (image * y_n + plane.to(tl.int64) * y_p)[None, :]
    tl.store(y_at, acc.to(y.dtype.element_ty), mask=(rows < m)[:, None] & inside[None, :])


# dw[o, (c,i,j)] = sum over n, r, q of g[n, o, r, q] x[n, c, sh r - ph + dh i, sw q - pw + dw j]
@triton.jit(do_not_specialize=["groups", "height", "width", "out_width", "sh", "sw", "ph", "pw", "dh", "dw", "x_c", "g_h", "g_w"])
def _weight_kernel(
    x, g, out, m, taps, k_part, pixels, groups, size_out, channels, kh, kw, height, width, out_width, out_plane,
    sh, sw, ph, pw, dh, dw, x_n, x_c, x_h, x_w, g_n, g_c, g_h, g_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr,
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
    c, i, j = _tap(tap, channels, kh, kw, CHANNELS_LAST)
    top = i * dh - ph
    left = j * dw - pw
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
        image = (pixel // out_plane).to(tl.int64)
        plane = pixel % out_plane
        r = plane // out_width
        q = plane % out_width
        if G_PLANE:  # the rows of g follow one another
            g_pixel = image * g_n + plane
        else:
            g_pixel = image * g_n + r.to(tl.int64) * g_h + q.to(tl.int64) * g_w
        g_tile = tl.load(g_at[:, None] + g_pixel[None, :], mask=inside[None, :], other=0)  # (BLOCK_M, BLOCK_K)
        h = (r * sh)[:, None] + top[None, :]
        v = (q * sw)[:, None] + left[None, :]
        good = (h >= 0) & (h < height) & (v >= 0) & (v < width) & inside[:, None] & (tap < taps)[None, :]
        if LONG_OFFSETS:
            shift = (image * x_n)[:, None] + h.to(tl.int64) * x_h + v.to(tl.int64) * column_step
        else:
            shift = (image * x_n)[:, None] + h * x_h + v * column_step
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


def image_like(x: CudaArray, weight: CudaArray, channels: int, height: int, width: int) -> CudaArray:
    """An empty (N, channels, height, width) whose channels lie innermost if x's or weight's do."""
    shape = (x.shape[0], channels, height, width)
    return allocate(shape, x.dtype, x, strides.images(shape, ((x.shape, x.strides), (weight.shape, weight.strides))))


def correlate(x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool) -> CudaArray:
    """The convolution of x with weight (O, C / G, kh, kw), or, transposed, the gradient that a g (given as x) sends to its input."""
    last = is_channels_last(x)
    per_group, out_group = s.channels // s.groups, s.out // s.groups
    split = weight.as_strided(
        (s.groups, out_group, per_group, s.kh, s.kw), (weight.strides[0] * out_group, *weight.strides), 0
    )  # (G, O / G, C / G, kh, kw)
    if transposed:
        m, channels, height, width, plane = per_group, out_group, s.rows, s.cols, (s.height, s.width)
        matrix = dense(split.transpose((0, 2, 3, 4, 1) if last else (0, 2, 1, 3, 4)))
        y = image_like(x, weight, s.channels, *plane)
    else:
        m, channels, height, width, plane = out_group, per_group, s.height, s.width, (s.rows, s.cols)
        matrix = dense(split.transpose((0, 1, 3, 4, 2)) if last else split)
        y = image_like(x, weight, s.out, *plane)
    taps, pixels = channels * s.kh * s.kw, s.batch * plane[0] * plane[1]
    if y.size == 0:
        return y
    stored, acc = dot_accumulator(x.dtype)
    key = (m, pixels, taps, s.groups, x.dtype, last and channels % (16 // x.itemsize) == 0, True)
    tiles = config_of("conv2d", key, gemm_tiles(*key))
    k_part, parts = _pieces(taps, tiles)
    into: Any = y if parts == 1 else allocate((parts, y.size), stored, x)
    launch(
        _correlate_kernel, (cdiv(m, tiles.block_m) * cdiv(pixels, tiles.block_n) * s.groups * parts,),
        x, matrix, into, y if bias is None else bias, m, taps, k_part, pixels, s.groups, y.size, channels, s.kh, s.kw, height, width,
        plane[1], plane[0] * plane[1], s.sh, s.sw, s.ph, s.pw, s.dh, s.dw, *x.strides, y.strides[0], y.strides[1], y.strides[3],
        0 if bias is None else bias.strides[0],
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, TRANSPOSED=transposed, CHANNELS_LAST=last, LONG_OFFSETS=_long_offsets(x),
        X_C1=x.strides[1] == 1, X_W1=x.strides[3] == 1, Y_C1=y.strides[1] == 1, BIAS=bias is not None and parts == 1,
        PRECISION=dot_precision(), ACC=acc, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    if parts > 1:
        sum_parts(into, y, bias, 1 if y.strides[1] == 1 else plane[0] * plane[1])
    return y


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry) -> CudaArray:
    """dw (O, C / G, kh, kw); the sum over pixels is split over programs and the parts added in order."""
    last = is_channels_last(x) or is_channels_last(g)
    m, channels = s.out // s.groups, s.channels // s.groups
    taps, pixels = channels * s.kh * s.kw, s.batch * s.rows * s.cols
    out = allocate((s.out, s.kh, s.kw, channels) if last else (s.out, channels, s.kh, s.kw), x.dtype, x)
    if out.size:
        stored, acc = dot_accumulator(x.dtype)
        key = (m, taps, pixels, s.groups, x.dtype, last and x.strides[1] == 1 and channels % (16 // x.itemsize) == 0, True)
        tiles = config_of("conv2d_weight", key, gemm_tiles(*key))
        k_part, parts = _pieces(pixels, tiles)
        into: Any = out if parts == 1 else allocate((parts, out.size), stored, x)
        launch(
            _weight_kernel, (cdiv(m, tiles.block_m) * cdiv(taps, tiles.block_n) * s.groups * parts,),
            x, g, into, m, taps, k_part, pixels, s.groups, out.size, channels, s.kh, s.kw, s.height, s.width, max(s.cols, 1),
            max(s.rows * s.cols, 1), s.sh, s.sw, s.ph, s.pw, s.dh, s.dw, *x.strides, *g.strides,
            BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, CHANNELS_LAST=last, LONG_OFFSETS=_long_offsets(x), X_C1=x.strides[1] == 1,
            X_W1=x.strides[3] == 1, G_C1=g.strides[1] == 1, G_PLANE=g.strides[3] == 1 and g.strides[2] == s.cols,
            PRECISION=dot_precision(), ACC=acc, num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
        if parts > 1:
            sum_parts(into, out)
    return out.transpose((0, 3, 1, 2)) if last else out
