"""Depthwise convolution, each channel by kernels of its own: a sum of taps at every pixel, bound by memory; nothing here is a matrix product."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.gpu.partial_sums import Gradients, Sums
from tritensor.kernels.convolution.gpu.pixel_indices import channels_innermost, divisors, is_inside, long_offsets, place_of
from tritensor.kernels.parts.axes import Blocks
from tritensor.kernels.parts.configs.spaces import blocks_problem, blocks_space
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.gemm import dot_accumulator
from tritensor.kernels.parts.launch_rules import cdiv, config_of, next_power_of_2
from tritensor.kernels.parts.view_arithmetic import volume_strides
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.tunables import tunable

MOST = 4  # kernels of a channel: of more, a product of matrices reads an image less often
TOGETHER = 3  # columns of a kernel whose gradients a program sums: it reads g once for all of them
_RESIDENT = 1024  # programs of a weight gradient: several for each multiprocessor, so that enough loads are under way

tunable("conv2d_depthwise", Blocks, blocks_space, blocks_problem)  # rows of pixels, columns of channels; parts of the sum over pixels
_FREE = ["pixels", "volume", "rows_of", "columns_of", "size", "stride", "padding", "dilation", "x_d"]


@triton.jit
def _cell(at, tap, dilation, stride, size, TRANSPOSED: tl.constexpr, STRIDED: tl.constexpr):
    """The cell that a tap reads along one axis, and whether there is one. `at`: that of tap 0; TRANSPOSED: what the tap is taken off, in steps of 1 /
    stride of a cell."""
    if TRANSPOSED and STRIDED:
        far = at - tap * dilation
        cell = far // stride
        good = (far >= 0) & (cell * stride == far) & (cell < size)
    else:
        if TRANSPOSED:
            cell = at - tap * dilation
        else:
            cell = at + tap * dilation
        good = is_inside(cell, size)
    return cell, good


@triton.jit
def _window(place, padding, stride, TRANSPOSED: tl.constexpr):
    """Where tap 0 of a window reads, as _cell takes it."""
    if TRANSPOSED:
        at = place + padding
    else:
        at = place * stride - padding
    return at


@triton.jit
def _offset(h, step, LONG: tl.constexpr):
    return (h.to(tl.int64) if LONG else h) * step


@triton.jit
def _tile(tiles_c, tiles_p, CHANNELS_FIRST: tl.constexpr):
    """The tile of pixels and that of channels of this program: what lies side by side runs side by side."""
    pid = tl.program_id(0)
    if CHANNELS_FIRST:
        pixels, channels = pid % tiles_p, pid // tiles_p
    else:
        pixels, channels = pid // tiles_c, pid % tiles_c
    return pixels, channels


# y[n, o, p] = sum over taps t of w[o, t] x[n, o / several, p + t] + bias[o], its ACTIVATION; TRANSPOSED: the gradient of that to x, of a g given as x
@triton.jit(do_not_specialize=[*_FREE, "bias_c"])
def _depthwise_kernel(
    x, w, y, bias, channels, pixels, volume, rows_of, columns_of, size, stride, padding, dilation, x_n, x_c, x_d, x_h, x_w, w_t, y_n, y_c, y_p, bias_c,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr, KERNEL: tl.constexpr, SEVERAL: tl.constexpr, TRANSPOSED: tl.constexpr, STRIDED: tl.constexpr,
    DEEP: tl.constexpr, LONG: tl.constexpr, X_C1: tl.constexpr, X_W1: tl.constexpr, Y_C1: tl.constexpr, Y_P1: tl.constexpr, W_O1: tl.constexpr,
    BIAS: tl.constexpr, ACC: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    tile_p, tile_c = _tile(tl.cdiv(channels, BLOCK_C), tl.cdiv(pixels, BLOCK_P), X_W1)
    if LONG:
        tile_p = tile_p.to(tl.int64)
    pixel = tile_p * BLOCK_P + tl.arange(0, BLOCK_P)
    channel = tile_c * BLOCK_C + tl.arange(0, BLOCK_C)
    inside, some = pixel < pixels, channel < channels
    image, place, f, r, q = place_of(pixel, volume, rows_of, columns_of, DEEP, LONG)
    front, top, left = (
        _window(f, padding[0], stride[0], TRANSPOSED),
        _window(r, padding[1], stride[1], TRANSPOSED),
        _window(q, padding[2], stride[2], TRANSPOSED),
    )
    x_at = x + image.to(tl.int64) * x_n  # (BLOCK_P,)
    taps: tl.constexpr = KERNEL[0] * KERNEL[1] * KERNEL[2]
    acc = tl.zeros((BLOCK_P, BLOCK_C), dtype=ACC)
    for j in range(SEVERAL if TRANSPOSED else 1):
        if TRANSPOSED:
            own, read = channel * SEVERAL + j, channel * SEVERAL + j  # kernels, and channels of g
        else:
            own, read = channel, channel // SEVERAL
        w_at = w + (own if W_O1 else own * taps)
        c_at = _offset(read, 1 if X_C1 else x_c, LONG)
        for e in range(KERNEL[0]):
            d, good_d = _cell(front, e, dilation[0], stride[0], size[0], TRANSPOSED, STRIDED)
            for i in range(KERNEL[1]):
                h, good_h = _cell(top, i, dilation[1], stride[1], size[1], TRANSPOSED, STRIDED)
                good, row = inside & good_h, _offset(h, x_h, LONG)
                if DEEP:
                    good, row = good & good_d, row + _offset(d, x_d, LONG)
                for k in range(KERNEL[2]):
                    v, good_v = _cell(left, k, dilation[2], stride[2], size[2], TRANSPOSED, STRIDED)
                    at = x_at + (row + _offset(v, 1 if X_W1 else x_w, LONG))
                    cells = tl.load(at[:, None] + c_at[None, :], mask=(good & good_v)[:, None] & some[None, :], other=0)
                    weight = tl.load(w_at + ((e * KERNEL[1] + i) * KERNEL[2] + k) * w_t, mask=some, other=0)
                    acc += cells.to(ACC) * weight.to(ACC)[None, :]
    if BIAS:
        acc += tl.load(bias + channel * bias_c, mask=some, other=0).to(ACC)[None, :]
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    y_at = y + image.to(tl.int64) * y_n + place.to(tl.int64) * (1 if Y_P1 else y_p)
    c_to = channel if Y_C1 else channel.to(tl.int64) * y_c
    tl.store(y_at[:, None] + c_to[None, :], acc.to(y.dtype.element_ty), mask=inside[:, None] & some[None, :])


@triton.jit
def _products(given, x_at, row, left, k, dilation, size, step, c_at, good, some):
    """g times the cells that tap k of a row of the kernel reads."""
    v = left + k * dilation
    good = good & is_inside(v, size)
    cells = tl.load((x_at + row + v * step)[:, None] + c_at[None, :], mask=good[:, None] & some[None, :], other=0)
    return given * cells.to(given.dtype)


# dw[o, t] = sum over n and p of g[n, o, p] x[n, o / several, p + t]; a program has up to three taps of one row. BIAS: and the sums of g behind them.
@triton.jit(do_not_specialize=[*_FREE, "k_part", "g_d"])
def _depthwise_weight_kernel(
    x, g, out, channels, k_part, pixels, size_out, volume, rows_of, columns_of, size, stride, padding, dilation, x_n, x_c, x_d, x_h, x_w,
    g_n, g_c, g_d, g_h, g_w,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr, KERNEL: tl.constexpr, SEVERAL: tl.constexpr, DEEP: tl.constexpr, LONG: tl.constexpr,
    X_C1: tl.constexpr, X_W1: tl.constexpr, G_C1: tl.constexpr, G_W1: tl.constexpr, BIAS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    chunks: tl.constexpr = (KERNEL[2] + 2) // 3
    taps: tl.constexpr = KERNEL[0] * KERNEL[1] * KERNEL[2]
    tiles_c = tl.cdiv(channels, BLOCK_C)
    tiles = tiles_c * (KERNEL[0] * KERNEL[1] * chunks)
    tile, part = tl.program_id(0) % tiles, tl.program_id(0) // tiles  # all rows of a kernel run together: x and g stay in the cache
    channel = tile % tiles_c * BLOCK_C + tl.arange(0, BLOCK_C)
    some = channel < channels
    chunk = tile // tiles_c
    k, i, e = chunk % chunks * 3, chunk // chunks % KERNEL[1], chunk // chunks // KERNEL[1]
    c_at, c_given = _offset(channel // SEVERAL, 1 if X_C1 else x_c, LONG), _offset(channel, 1 if G_C1 else g_c, LONG)
    x_step, g_step = 1 if X_W1 else x_w, 1 if G_W1 else g_w
    first = tl.zeros((BLOCK_P, BLOCK_C), dtype=ACC)
    second, third, plain = first, first, first
    start = part.to(tl.int64) * k_part if LONG else part * k_part
    stop = tl.minimum(start + k_part, pixels)
    for at in range(start, stop, BLOCK_P):
        pixel = at + tl.arange(0, BLOCK_P)
        inside = pixel < stop
        image, _, f, r, q = place_of(pixel, volume, rows_of, columns_of, DEEP, LONG)
        lies = image.to(tl.int64) * g_n + (_offset(r, g_h, LONG) + _offset(q, g_step, LONG))
        h = r * stride[1] - padding[1] + i * dilation[1]
        good, row = inside & is_inside(h, size[1]), _offset(h, x_h, LONG)
        if DEEP:
            lies += _offset(f, g_d, LONG)
            d = f * stride[0] - padding[0] + e * dilation[0]
            good, row = good & is_inside(d, size[0]), row + _offset(d, x_d, LONG)
        given = tl.load(g + lies[:, None] + c_given[None, :], mask=inside[:, None] & some[None, :], other=0).to(ACC)
        x_at, left = x + image.to(tl.int64) * x_n, q * stride[2] - padding[2]
        first += _products(given, x_at, row, left, k, dilation[2], size[2], x_step, c_at, good, some)
        if KERNEL[2] > 1:
            second += _products(given, x_at, row, left, k + 1, dilation[2], size[2], x_step, c_at, good, some)
        if KERNEL[2] > 2:
            third += _products(given, x_at, row, left, k + 2, dilation[2], size[2], x_step, c_at, good, some)
        if BIAS:
            plain += given
    base = out + part.to(tl.int64) * size_out
    to = base + channel * taps + ((e * KERNEL[1] + i) * KERNEL[2] + k)
    kind: tl.constexpr = out.dtype.element_ty
    tl.store(to, tl.sum(first, 0).to(kind), mask=some)
    if KERNEL[2] > 1:
        tl.store(to + 1, tl.sum(second, 0).to(kind), mask=some & (k + 1 < KERNEL[2]))
    if KERNEL[2] > 2:
        tl.store(to + 2, tl.sum(third, 0).to(kind), mask=some & (k + 2 < KERNEL[2]))
    if BIAS:  # the biases' gradients stand behind the weights'
        tl.store(base + channels * taps + channel, tl.sum(plain, 0).to(kind), mask=some & (chunk == 0))


def fits(s: Geometry) -> bool:
    """Whether every channel has kernels of its own, and few of them."""
    return s.groups == s.channels > 1 and s.out // s.groups <= MOST


def _rule(channels: int, itemsize: int, last: bool) -> Blocks:
    """Two accesses of 16 bytes to a thread where channels lie innermost, else four pixels: eight do not fit its registers."""
    # neighbouring threads read neighbouring columns where rows are innermost: a program has one channel
    if not last:
        return Blocks(512 if itemsize <= 4 else 256, 1, 0)
    columns = min(next_power_of_2(channels), 64)
    return Blocks(max((2048 if itemsize == 2 else 1024 if itemsize == 4 else 512) // columns, 1), columns, 0)


def correlate(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool, y: CudaArray, activation: Any = None
) -> CudaArray:
    """y, written: the convolution of x with weight (O, 1, *kernel), or, transposed, the gradient that a g (given as x) sends to its input."""
    v, last = s.three(), channels_innermost(x)
    size, outs, channels = (v.outs, v.size, s.channels) if transposed else (v.size, v.outs, s.out)
    pixels, strides_x = s.batch * math.prod(outs), volume_strides(x)
    axes = range(2, len(weight.shape))
    matrix = to_c_order(weight.transpose((*axes, 0, 1) if last else (0, 1, *axes)))
    key = (pixels, channels, s.taps, x.itemsize, last)
    on = config_of("conv2d_depthwise", key, _rule(channels, x.itemsize, last))
    launch(
        _depthwise_kernel, (cdiv(pixels, on.rows) * cdiv(channels, on.columns),),
        x, matrix, y, y if bias is None else bias, channels, pixels, *divisors(outs), size, v.stride, v.padding, v.dilation, *strides_x,
        s.out if last else 1, y.strides[0], y.strides[1], y.strides[-1], 0 if bias is None else bias.strides[0],
        BLOCK_P=on.rows, BLOCK_C=on.columns, KERNEL=v.kernel, SEVERAL=s.out // s.groups, TRANSPOSED=transposed, STRIDED=max(s.stride) > 1,
        DEEP=len(s.size) == 3, LONG=long_offsets(x) or pixels >= 1 << 31, X_C1=strides_x[1] == 1, X_W1=strides_x[4] == 1, Y_C1=y.strides[1] == 1,
        Y_P1=y.strides[-1] == 1, W_O1=last, BIAS=bias is not None, ACC=dot_accumulator(x.dtype)[1], ACTIVATION=activation, num_warps=4,
    )  # fmt: skip
    return y


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry, bias: bool) -> Gradients:
    """dw (O, 1, *kernel), and db (O,) where it is asked for; the sum over pixels is split over programs and the parts added in order."""
    v, last = s.three(), channels_innermost(g)
    pixels, strides_x, strides_g = s.batch * math.prod(s.outs), volume_strides(x), volume_strides(g)
    key = (pixels, s.out, s.taps, x.itemsize, last)
    on = config_of("conv2d_depthwise", key, _rule(s.out, x.itemsize, last))
    tiles = cdiv(s.out, on.columns) * v.kernel[0] * v.kernel[1] * cdiv(v.kernel[2], TOGETHER)
    k_part = cdiv(cdiv(pixels, on.rows), on.splits or max(_RESIDENT // tiles, 1)) * on.rows
    parts = cdiv(pixels, max(k_part, 1))
    sums = Sums(x, s.out, (s.out, 1, *s.kernel), parts, bias)
    launch(
        _depthwise_weight_kernel, (tiles * parts,),
        x, g, sums.into, s.out, k_part, pixels, sums.size, *divisors(v.outs), v.size, v.stride, v.padding, v.dilation, *strides_x, *strides_g,
        BLOCK_P=on.rows, BLOCK_C=on.columns, KERNEL=v.kernel, SEVERAL=s.out // s.groups, DEEP=len(s.size) == 3,
        LONG=long_offsets(x) or long_offsets(g) or pixels >= 1 << 31, X_C1=strides_x[1] == 1, X_W1=strides_x[4] == 1, G_C1=strides_g[1] == 1,
        G_W1=strides_g[4] == 1, BIAS=bias, ACC=sums.acc, num_warps=4,
    )  # fmt: skip
    return sums.add_parts()
