"""Convolution as an implicit matrix product that gathers cell by cell: any layout, any number of channels."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.gpu.partial_sums import Gradients, Sums, split_sum
from tritensor.kernels.convolution.gpu.pixel_indices import divisors, is_in_order, long_offsets, place_of
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.configs.spaces import tiles_problem, tiles_space
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.gemm import dot_accumulator, sum_parts
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, config_of, gemm_tiles
from tritensor.kernels.parts.products.epilogue import Epilogue
from tritensor.kernels.parts.view_arithmetic import is_channels_last, volume_strides
from tritensor.ops.array import CudaArray
from tritensor.ops.matmul_precision import dot_precision
from tritensor.ops.tuning.tunables import tunable

tunable("conv2d", Tiles, tiles_space, tiles_problem)
tunable("conv2d_weight", Tiles, tiles_space, tiles_problem)


@triton.jit
def _tap(k, channels, KERNEL: tl.constexpr, CHANNELS_LAST: tl.constexpr, DEEP: tl.constexpr):
    """Channel, kernel plane, row and column of place k in the summed dimension; the kernel's sizes are constants, division by which is multiplication."""
    kd: tl.constexpr = KERNEL[0]
    kh: tl.constexpr = KERNEL[1]
    kw: tl.constexpr = KERNEL[2]
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
    x, w, y, bias, m, taps, k_part, pixels, groups, size_y, channels, size, out_size, out_volume,
    stride, padding, dilation, x_n, x_c, x_d, x_h, x_w, y_n, y_c, y_p, bias_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, KERNEL: tl.constexpr, TRANSPOSED: tl.constexpr, CHANNELS_LAST: tl.constexpr,
    DEEP: tl.constexpr, LONG_OFFSETS: tl.constexpr, X_C1: tl.constexpr, X_W1: tl.constexpr, Y_C1: tl.constexpr, BIAS: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr, ACTIVATION: tl.constexpr,
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
        c, e, i, j = _tap(k, channels, KERNEL, CHANNELS_LAST, DEEP)
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
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    out_step = 1 if Y_C1 else y_c
    y_at = y + part.to(tl.int64) * size_y + channel.to(tl.int64)[:, None] * out_step + (image * y_n + place.to(tl.int64) * y_p)[None, :]
    tl.store(y_at, acc.to(y.dtype.element_ty), mask=(rows < m)[:, None] & inside[None, :])


@triton.jit
def _pixel_offsets(
    image, place, f, r, q, stride, x_n, x_d, x_h, x_w, g_n, g_d, g_h, g_w,
    DEEP: tl.constexpr, G_PLANE: tl.constexpr, RUNS: tl.constexpr,
):  # fmt: skip
    """Where some pixels lie in g, and their windows in x. RUNS: sixteen pixels from a multiple of 16 on lie in one image, as a block's do."""
    if G_PLANE and RUNS:  # the rows of g follow one another
        g_pixel = tl.max_contiguous(tl.multiple_of(image * g_n + place, 16), 16)
    elif G_PLANE:
        g_pixel = image * g_n + place
    else:
        g_pixel = image * g_n + r.to(tl.int64) * g_h + q.to(tl.int64) * g_w
        if DEEP:
            g_pixel += f.to(tl.int64) * g_d
    x_pixel = image * x_n + (r * stride[1]).to(tl.int64) * x_h + (q * stride[2]).to(tl.int64) * x_w
    if DEEP:
        x_pixel += (f * stride[0]).to(tl.int64) * x_d
    return g_pixel, x_pixel


# dw[o, (c,e,i,j)] = sum over n, f, r, q of g[n, o, f, r, q] x[n, c, sd f - pd + dd e, sh r - ph + dh i, sw q - pw + dw j]; BIAS: and a column
# behind the taps in which x is 1, so that the sum over g, the bias's gradient, costs no pass of its own
@triton.jit(do_not_specialize=["groups", "volume", "rows_of", "columns_of", "size", "stride", "padding", "dilation", "x_d", "g_d"])
def _weight_kernel(
    x, g, out, m, taps, k_part, pixels, groups, size_out, channels, size, volume, rows_of, columns_of,
    stride, padding, dilation, x_n, x_c, x_d, x_h, x_w, g_n, g_c, g_d, g_h, g_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, KERNEL: tl.constexpr, CHANNELS_LAST: tl.constexpr, DEEP: tl.constexpr,
    LONG_OFFSETS: tl.constexpr, PADDED: tl.constexpr, BIAS: tl.constexpr, X_C1: tl.constexpr, X_W1: tl.constexpr, G_C1: tl.constexpr,
    G_PLANE: tl.constexpr, RUNS: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    columns = taps + 1 if BIAS else taps
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(columns, BLOCK_N)
    tile = tl.program_id(0) % (tiles_m * tiles_n)
    outer = tl.program_id(0) // (tiles_m * tiles_n)
    group = (outer % groups).to(tl.int64)
    part = outer // groups
    rows = tile % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    tap = tile // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
    c, e, i, j = _tap(tap, channels, KERNEL, CHANNELS_LAST, DEEP)
    front = e * dilation[0] - padding[0]
    top = i * dilation[1] - padding[1]
    left = j * dilation[2] - padding[2]
    column_step = 1 if X_W1 else x_w
    g_step = 1 if G_C1 else g_c
    # where a tap's cells lie from those of the first channel's that the window begins with
    x_at = x + group * channels * x_c + c.to(tl.int64) * (1 if X_C1 else x_c) + top.to(tl.int64) * x_h + left.to(tl.int64) * column_step
    if DEEP:
        x_at += front.to(tl.int64) * x_d
    g_at = g + (group * m + rows % m) * g_step  # (BLOCK_M,)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    start = part * k_part
    stop = min(start + k_part, pixels)
    for at in range(start, stop, BLOCK_K):
        pixel = at + tl.arange(0, BLOCK_K)
        inside = pixel < stop
        image, place, f, r, q = place_of(pixel, volume, rows_of, columns_of, DEEP, LONG_OFFSETS)
        g_pixel, x_pixel = _pixel_offsets(
            image.to(tl.int64), place, f, r, q, stride, x_n, x_d, x_h, column_step, g_n, g_d, g_h, g_w, DEEP, G_PLANE, RUNS
        )
        g_tile = tl.load(g_at[:, None] + g_pixel[None, :], mask=inside[None, :], other=0)  # (BLOCK_M, BLOCK_K)
        good = inside[:, None] & (tap < taps)[None, :]
        if PADDED:
            h = (r * stride[1])[:, None] + top[None, :]
            v = (q * stride[2])[:, None] + left[None, :]
            good = good & (h >= 0) & (h < size[1]) & (v >= 0) & (v < size[2])
            if DEEP:
                d = (f * stride[0])[:, None] + front[None, :]
                good = good & (d >= 0) & (d < size[0])
        x_tile = tl.load(x_at[None, :] + x_pixel[:, None], mask=good, other=0)  # (BLOCK_K, BLOCK_N)
        if BIAS:
            x_tile = tl.where((tap == taps)[None, :], tl.full((), 1, x_tile.dtype), x_tile)
        acc = tl.dot(g_tile, x_tile, acc, input_precision=PRECISION, out_dtype=ACC)
    at_out = out + part.to(tl.int64) * size_out + (group * m + rows)[:, None] * taps + tap[None, :]
    if BIAS:  # the biases' gradients stand behind the weights'
        at_out = tl.where(
            (tap < taps)[None, :], at_out, out + (part + 1).to(tl.int64) * size_out - groups * m + (group * m + rows)[:, None]
        )
    tl.store(at_out, acc.to(out.dtype.element_ty), mask=(rows < m)[:, None] & (tap < columns)[None, :])


def correlate(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool, y: CudaArray, activation: Any = None
) -> CudaArray:
    """y, written: the convolution of x with weight (O, C / G, *kernel), or, transposed, the gradient that a g (given as x) sends to its input."""
    last = is_channels_last(x)
    per_group, out_group, axes = s.channels // s.groups, s.out // s.groups, tuple(range(3, 3 + len(s.kernel)))
    split = weight.as_strided(
        (s.groups, out_group, per_group, *s.kernel), (weight.strides[0] * out_group, *weight.strides), 0
    )  # (G, O / G, C / G, *kernel)
    if transposed:
        m, channels, size, outs = per_group, out_group, s.outs, s.size
        matrix = to_c_order(split.transpose((0, 2, *axes, 1) if last else (0, 2, 1, *axes)))
    else:
        m, channels, size, outs = out_group, per_group, s.size, s.outs
        matrix = to_c_order(split.transpose((0, 1, *axes, 2)) if last else split)
    taps, pixels, lead = channels * s.taps, s.batch * math.prod(outs), (1,) * (3 - len(outs))
    stored, acc = dot_accumulator(x.dtype)
    key = (m, pixels, taps, s.groups, x.dtype, last and channels % (16 // x.itemsize) == 0, True)
    tiles = config_of("conv2d", key, gemm_tiles(*key))
    k_part, parts = split_sum(taps, tiles)
    into: Any = y if parts == 1 else allocate((parts, y.size), stored, x)
    volume, strides_x = s.three(), volume_strides(x)
    launch(
        _correlate_kernel, (cdiv(m, tiles.block_m) * cdiv(pixels, tiles.block_n) * s.groups * parts,),
        x, matrix, into, y if bias is None else bias, m, taps, k_part, pixels, s.groups, y.size, channels, lead + size, lead + outs,
        math.prod(outs), volume.stride, volume.padding, volume.dilation, *strides_x, y.strides[0], y.strides[1], y.strides[-1],
        0 if bias is None else bias.strides[0],
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, KERNEL=volume.kernel, TRANSPOSED=transposed, CHANNELS_LAST=last,
        DEEP=len(outs) == 3, LONG_OFFSETS=long_offsets(x), X_C1=strides_x[1] == 1, X_W1=strides_x[4] == 1, Y_C1=y.strides[1] == 1,
        BIAS=bias is not None and parts == 1, PRECISION=dot_precision(), ACC=acc, ACTIVATION=activation if parts == 1 else None,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    if parts > 1:
        sum_parts(into, y, bias, 1 if y.strides[1] == 1 else math.prod(outs), finish=Epilogue(activation))
    return y


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry, bias: bool) -> Gradients:
    """dw (O, C / G, *kernel), and db (O,) where it is asked for; the sum over pixels is split over programs and the parts added in order."""
    last = is_channels_last(x) or is_channels_last(g)
    m, channels, axes = s.out // s.groups, s.channels // s.groups, len(s.kernel)
    taps, pixels = channels * s.taps, s.batch * math.prod(s.outs)
    columns = taps + bias
    key = (m, columns, pixels, s.groups, x.dtype, last and x.strides[1] == 1 and channels % (16 // x.itemsize) == 0, True)
    tiles = config_of("conv2d_weight", key, gemm_tiles(*key))
    k_part, parts = split_sum(pixels, tiles)
    sums = Sums(x, s.out, (s.out, *s.kernel, channels) if last else (s.out, channels, *s.kernel), parts, bias)
    volume, strides_x = s.three(), volume_strides(x)
    places = math.prod(s.outs)
    launch(
        _weight_kernel, (cdiv(m, tiles.block_m) * cdiv(columns, tiles.block_n) * s.groups * parts,),
        x, g, sums.into, m, taps, k_part, pixels, s.groups, sums.size, channels, volume.size, *divisors(volume.outs),
        volume.stride, volume.padding, volume.dilation, *strides_x, *volume_strides(g),
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, KERNEL=volume.kernel, CHANNELS_LAST=last, DEEP=axes == 3,
        LONG_OFFSETS=long_offsets(x) or pixels >= 1 << 31, PADDED=max(s.padding) > 0, BIAS=bias, X_C1=x.strides[1] == 1, X_W1=strides_x[4] == 1,
        G_C1=g.strides[1] == 1, G_PLANE=is_in_order(g.strides[2:], s.outs, 1), RUNS=places % 16 == 0 and g.strides[0] % 16 == 0,
        PRECISION=dot_precision(), ACC=sums.acc, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    dw, db = sums.add_parts()
    return dw.transpose((0, axes + 1, *range(1, axes + 1))) if last else dw, db
