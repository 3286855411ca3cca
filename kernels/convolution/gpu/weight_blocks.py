"""The gradient to a convolution's weight over blocks of channels that lie innermost: a product of matrices summed over pixels, tap by tap."""

from __future__ import annotations

import math

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.gpu.partial_sums import Sums, split_sum
from tritensor.kernels.convolution.gpu.pixel_indices import alignment, divisors, is_in_order, is_inside, long_offsets, place_of
from tritensor.kernels.convolution.gpu.rules import taps_together, weight_tiles
from tritensor.kernels.parts.configs.spaces import tiles_problem, tiles_space
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, config_of
from tritensor.kernels.parts.view_arithmetic import volume_strides
from tritensor.ops.array import CudaArray
from tritensor.ops.matmul_precision import dot_precision
from tritensor.ops.tuning.tunables import tunable

tunable("conv2d_weight_blocks", Tiles, tiles_space, tiles_problem)


@triton.jit
def _run_offsets(step, BLOCK_K: tl.constexpr, FLAT: tl.constexpr):
    """Where the pixels of a step of the loop lie, seen from its first, where that is kept in registers (FLAT is 2); else _pixels_at says it at each step."""
    return tl.arange(0, BLOCK_K).to(tl.int64) * step if FLAT == 2 else tl.zeros((BLOCK_K,), tl.int64)


@triton.jit
def _pixels_at(start, pixel, image, f, r, q, step_n, step_d, step_h, step_w, FLAT: tl.constexpr, DEEP: tl.constexpr):
    """How far from there the pixels of the step that begins at `start` lie, (1,) or (BLOCK_K,). FLAT: they follow one another."""
    if FLAT == 2:
        at = (tl.zeros((1,), tl.int64) + start) * step_w
    elif FLAT == 1:
        at = pixel.to(tl.int64) * step_w
    else:
        at = image.to(tl.int64) * step_n + r.to(tl.int64) * step_h + q.to(tl.int64) * step_w
        if DEEP:
            at += f.to(tl.int64) * step_d
    return at


@triton.jit
def _cells(x_at, at, dilation, good, v, size, some, PADDED: tl.constexpr, EVEN: tl.constexpr):
    """The cells (BLOCK_K, BLOCK_N) that a tap `at` columns behind the first of its program's reads, at x_at."""
    if PADDED:
        good = good & is_inside(v + at * dilation, size)
    return tl.load(x_at, mask=good[:, None] if EVEN else good[:, None] & some[None, :], other=0)


# dw[o, t, c] = sum over n and p of g[n, p, o] x[n, p + t, c], channels innermost; a program has TAPS taps of one row, for which it reads g once.
@triton.jit(do_not_specialize=["k_part", "groups", "volume", "rows_of", "columns_of", "size", "stride", "padding", "dilation"])
def _weight_blocks_kernel(
    x, g, out, m, channels, k_part, pixels, groups, size_out, volume, rows_of, columns_of, size, stride, padding, dilation,
    x_n, x_d, x_h, x_w, g_n, g_d, g_h, g_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, KERNEL: tl.constexpr, TAPS: tl.constexpr, PADDED: tl.constexpr,
    EVEN: tl.constexpr, DEEP: tl.constexpr, FLAT_X: tl.constexpr, FLAT_G: tl.constexpr, LONG: tl.constexpr, ALIGN: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    channels, m = channels // ALIGN * ALIGN, m // ALIGN * ALIGN
    chunks: tl.constexpr = (KERNEL[2] + TAPS - 1) // TAPS
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(channels, BLOCK_N)
    tiles = tiles_m * tiles_n * (KERNEL[0] * KERNEL[1] * chunks) * groups
    # all tiles of one set of pixels run together: x and g stay in the cache
    tile, part = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    row, column = tile % tiles_m, tile // tiles_m % tiles_n
    tap = tile // (tiles_m * tiles_n)
    k, i, e = tap % chunks * TAPS, tap // chunks % KERNEL[1], tap // (chunks * KERNEL[1]) % KERNEL[0]
    group = (tap // (chunks * KERNEL[1] * KERNEL[0])).to(tl.int64)
    rows, columns = row * BLOCK_M + tl.arange(0, BLOCK_M), column * BLOCK_N + tl.arange(0, BLOCK_N)
    given, some = rows < m, columns < channels
    front, top, left = e * dilation[0] - padding[0], i * dilation[1] - padding[1], k * dilation[2] - padding[2]
    x_h, x_w, x_n, g_w, g_n = x_h // ALIGN * ALIGN, x_w // ALIGN * ALIGN, x_n // ALIGN * ALIGN, g_w // ALIGN * ALIGN, g_n // ALIGN * ALIGN
    x_d, g_d, g_h = x_d // ALIGN * ALIGN, g_d // ALIGN * ALIGN, g_h // ALIGN * ALIGN
    x_at = x + group * channels + front.to(tl.int64) * x_d + top.to(tl.int64) * x_h + left.to(tl.int64) * x_w + columns  # (BLOCK_N,)
    x_at = x_at[None, :] + _run_offsets(x_w, BLOCK_K, FLAT_X)[:, None]
    g_at = (g + group * m + rows)[:, None] + _run_offsets(g_w, BLOCK_K, FLAT_G)[None, :]
    shift = dilation[2] * x_w
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    second, third = acc, acc
    start = part.to(tl.int64) * k_part if LONG else part * k_part
    stop = tl.minimum(start + k_part, pixels)
    for at in range(start, stop, BLOCK_K):
        pixel = at + tl.arange(0, BLOCK_K)
        inside = pixel < stop
        good, v = inside, pixel
        image, _, f, r, q = place_of(pixel, volume, rows_of, columns_of, DEEP, LONG)
        g_here = g_at + _pixels_at(at, pixel, image, f, r, q, g_n, g_d, g_h, g_w, FLAT_G, DEEP)[None, :]
        x_here = x_at + _pixels_at(at, pixel, image, f * stride[0], r * stride[1], q * stride[2], x_n, x_d, x_h, x_w, FLAT_X, DEEP)[:, None]
        if PADDED:
            v = q * stride[2] + left
            good = good & is_inside(r * stride[1] + top, size[1])
            if DEEP:
                good = good & is_inside(f * stride[0] + front, size[0])
        g_tile = tl.load(g_here, mask=inside[None, :] if EVEN else given[:, None] & inside[None, :], other=0)
        cells = _cells(x_here, 0, dilation[2], good, v, size[2], some, PADDED, EVEN)
        acc = tl.dot(g_tile, cells, acc, input_precision=PRECISION, out_dtype=ACC)
        # taps of one row read cells side by side: g is loaded once for up to three of them
        if TAPS > 1:
            beside = _cells(x_here + shift, 1, dilation[2], good & (k + 1 < KERNEL[2]), v, size[2], some, PADDED, EVEN)
            second = tl.dot(g_tile, beside, second, input_precision=PRECISION, out_dtype=ACC)
        if TAPS > 2:
            behind = _cells(x_here + 2 * shift, 2, dilation[2], good & (k + 2 < KERNEL[2]), v, size[2], some, PADDED, EVEN)
            third = tl.dot(g_tile, behind, third, input_precision=PRECISION, out_dtype=ACC)
    kind: tl.constexpr = out.dtype.element_ty
    taps: tl.constexpr = KERNEL[0] * KERNEL[1] * KERNEL[2]
    first = (e * KERNEL[1] + i) * KERNEL[2] + k
    to = out + part.to(tl.int64) * size_out + (group * m + rows)[:, None] * (taps * channels) + first * channels + columns[None, :]
    whole = given[:, None] & some[None, :]
    tl.store(to, acc.to(kind), mask=whole)
    if TAPS > 1:
        tl.store(to + channels, second.to(kind), mask=whole & (k + 1 < KERNEL[2]))
    if TAPS > 2:
        tl.store(to + 2 * channels, third.to(kind), mask=whole & (k + 2 < KERNEL[2]))


def _is_flat(x: CudaArray) -> bool:
    """Whether the cells of all images follow one another."""
    return is_in_order((x.strides[0], *x.strides[2:]), (x.shape[0], *x.shape[2:]), x.strides[-1])


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry) -> CudaArray:
    """dw (O, C / G, *kernel) of an x and a g whose channels lie innermost; the sum over pixels is split over programs and the parts added in order."""
    v, axes = s.three(), len(s.kernel)
    m, channels, pixels = s.out // s.groups, s.channels // s.groups, s.batch * math.prod(s.outs)
    (x_n, _, *steps_x), (g_n, _, *steps_g) = volume_strides(x), volume_strides(g)
    align = alignment(x.itemsize, m, channels, x_n, *steps_x, g_n, *steps_g)
    key = (m, channels * s.taps, pixels, s.groups, x.dtype, align > 1, channels, s.kernel[-1])
    tiles = config_of("conv2d_weight_blocks", key, weight_tiles(*key))
    taps = taps_together(tiles, s.kernel[-1], x.itemsize)
    k_part, parts = split_sum(pixels, tiles)
    sums = Sums(x, s.out, (s.out, *s.kernel, channels), parts, False)
    rows = v.kernel[0] * v.kernel[1] * cdiv(v.kernel[2], taps)
    alike = s.outs == s.size and max(s.stride) == 1
    flat = 2 if x.itemsize == 2 else 1  # other types have no registers to spare, and issue so much that an address is little
    launch(
        _weight_blocks_kernel, (cdiv(m, tiles.block_m) * cdiv(channels, tiles.block_n) * rows * s.groups * parts,),
        x, g, sums.into, m, channels, k_part, pixels, s.groups, sums.size, *divisors(v.outs), v.size, v.stride, v.padding, v.dilation,
        x_n, *steps_x, g_n, *steps_g,
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, KERNEL=v.kernel, TAPS=taps, PADDED=max(s.padding) > 0,
        EVEN=m % tiles.block_m == 0 and channels % tiles.block_n == 0, DEEP=axes == 3, FLAT_X=flat * (alike and _is_flat(x)), FLAT_G=flat * _is_flat(g),
        LONG=long_offsets(x) or pixels >= 1 << 31, ALIGN=align,
        PRECISION=dot_precision(), ACC=sums.acc, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return sums.add_parts()[0].transpose((0, axes + 1, *range(1, axes + 1)))
