"""Convolution as an implicit matrix product over blocks of channels that lie innermost: a step of its loop is one tap and 16-byte accesses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.convolution.geometry import Geometry, Sizes
from tritensor.kernels.convolution.gpu.pixel_indices import alignment, is_inside, long_offsets
from tritensor.kernels.convolution.gpu.rules import block_tiles
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.configs.spaces import tiles_problem, tiles_space
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.gemm import dot_accumulator, sum_parts
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, config_of
from tritensor.kernels.parts.products.epilogue import Epilogue
from tritensor.kernels.parts.view_arithmetic import volume_strides
from tritensor.ops.array import CudaArray
from tritensor.ops.matmul_precision import dot_precision
from tritensor.ops.tuning.tunables import tunable

# Taps along each of three axes that have a bit each in 32 bits: those that a pixel reads within the image. Of 16-bit types: products of the others issue
# so many instructions themselves that the registers are worth more.
BITS = 10

tunable("conv2d_blocks", Tiles, tiles_space, tiles_problem)


class Axes(NamedTuple):
    """How outputs read cells, for each of three axes: output u of `outs` reads cell u * step + lead + k * hop at tap k of the kernel. Of phases, the
    outputs that the kernel takes are a, a + stride, ..., and their taps every `apart`-th: see _phase."""

    outs: Sizes
    kernel: Sizes
    step: Sizes
    lead: Sizes
    hop: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    apart: Sizes


@triton.jit
def _phase(phase, d: tl.constexpr, axes):
    """Along axis d, of the cells a, a + stride, ... for the phase a: how many there are, the first of the taps that reach them, every `apart`-th, how many
    these are, and the cell of g that the first of them reads at the first."""
    a = phase // (axes.stride[2] * axes.stride[1] if d == 0 else axes.stride[2] if d == 1 else 1) % axes.stride[d]
    first = axes.kernel[d]
    for i in range(axes.apart[d]):
        first = tl.where((a + axes.padding[d] - axes.dilation[d] * i) % axes.stride[d] == 0, tl.minimum(first, i), first)
    lead = (a + axes.padding[d] - axes.dilation[d] * first) // axes.stride[d]
    return (
        a,
        (axes.outs[d] - a + axes.stride[d] - 1) // axes.stride[d],
        first,
        (axes.kernel[d] - first + axes.apart[d] - 1) // axes.apart[d],
        lead,
    )


@triton.jit
def _along(phase, d: tl.constexpr, axes, PHASES: tl.constexpr):
    """First output, outputs, first tap, taps, and the first cell that is read, along axis d."""
    if PHASES:
        a, many, first, count, lead = _phase(phase, d, axes)
    else:
        a, many, first, count, lead = 0, axes.outs[d], 0, axes.kernel[d], axes.lead[d]
    return a, many, first, count, lead


@triton.jit
def _tap(first_d, first_h, first_w, e, i, j, axes):
    """Which of all taps is a phase's tap (e, i, j)."""
    return ((first_d + e * axes.apart[0]) * axes.kernel[1] + first_h + i * axes.apart[1]) * axes.kernel[2] + first_w + j * axes.apart[2]


@triton.jit
def _spread(a_d, a_h, a_w, f, r, q, axes, DEEP: tl.constexpr):
    """The places in an image of a phase's outputs (f, r, q)."""
    place = a_h + r * axes.stride[1]
    if DEEP:
        place += (a_d + f * axes.stride[0]) * axes.outs[1]
    return place * axes.outs[2] + a_w + q * axes.stride[2]


@triton.jit
def _row_of(image, place, y_n, y_w, OUT: tl.constexpr, RUN: tl.constexpr, Y_C1: tl.constexpr):
    """Where the first channel of pixels lies in y."""
    if Y_C1:
        row = image * (y_n // OUT * OUT) + place.to(tl.int64) * (y_w // OUT * OUT)
    else:
        row = image * (y_n // RUN * RUN) + place
    if RUN > 1:  # as many pixels from a multiple of it on lie in one image, side by side
        row = tl.max_contiguous(tl.multiple_of(row, RUN), RUN)
    return row


@triton.jit
def _start(step, blocks, count_w, count_h, BLOCK_K: tl.constexpr):
    """The first channel, tap, column, row and plane of a step of the loop; a phase may have no taps."""
    t = step // blocks
    count_w, count_h = tl.maximum(count_w, 1), tl.maximum(count_h, 1)
    return step % blocks * BLOCK_K, t, t % count_w, t // count_w % count_h, t // count_w // count_h


@triton.jit
def _next(c, t, j, i, e, channels, count_w, count_h, BLOCK_K: tl.constexpr, DEEP: tl.constexpr):
    """The step after this one: the next block of channels, else the next tap: of the row, of the next row, of the next plane."""
    c += BLOCK_K
    over = c >= channels
    c = tl.where(over, 0, c)
    t += over.to(tl.int32)
    j += over.to(tl.int32)
    over = j >= count_w
    j = tl.where(over, 0, j)
    i += over.to(tl.int32)
    if DEEP:
        over = i >= count_h
        i, e = tl.where(over, 0, i), e + over.to(tl.int32)
    return c, t, j, i, e


@triton.jit
def _reached(first, size, count, AT: tl.constexpr, BACK: tl.constexpr):
    """Of outputs whose first tap reads the cells `first` along an axis, the next ones the cells behind it (BACK: before it): a bit, from AT on, for
    each of `count` taps that reads one of the image's. Without a loop, whose results would lie across threads in another way than the tile."""
    low, high = (first - size + 1, first + 1) if BACK else (-first, size - first)
    low, high = tl.minimum(tl.maximum(low, 0), count), tl.minimum(tl.maximum(high, 0), count)
    return ((1 << high.to(tl.int32)) - (1 << low.to(tl.int32))) << AT


@triton.jit
def _tap_bits(d, h, v, size, count_d, count_h, count_w, inside, BITS: tl.constexpr, TRANSPOSED: tl.constexpr, DEEP: tl.constexpr):
    """The bits of _reached of all axes, BITS for each; none of what is no output."""
    bits = _reached(v, size[2], count_w, 0, TRANSPOSED) | _reached(h, size[1], count_h, BITS, TRANSPOSED)
    if DEEP:
        bits |= _reached(d, size[0], count_d, 2 * BITS, TRANSPOSED)
    return tl.where(inside, bits, 0)


@triton.jit
def _seen(inside, bits, j, i, e, v, h, d, size, BITS: tl.constexpr, PADDED: tl.constexpr, DEEP: tl.constexpr):
    """Which outputs read a cell of the image at a tap (e, i, j), there the cells (d, h, v): by their bits where they have some."""
    if BITS > 0:
        asked = (1 << j) | (1 << (i + BITS))
        if DEEP:
            asked |= 1 << (e + 2 * BITS)
        good = (bits & asked) == asked
    elif PADDED:
        good = inside & is_inside(h, size[1]) & is_inside(v, size[2])
        if DEEP:
            good = good & is_inside(d, size[0])
    else:
        good = inside
    return good


@triton.jit
def _times(n, step, LONG: tl.constexpr):
    """n steps, in 64 bits where they may be many."""
    return n.to(tl.int64) * step if LONG else n * step


@triton.jit
def _tile(at, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """A tile of an operand, of which rows, columns, both or none are masked."""
    if ROWS and COLS:
        tile = tl.load(at, mask=rows & cols, other=0)
    elif ROWS:
        tile = tl.load(at, mask=rows, other=0)
    elif COLS:
        tile = tl.load(at, mask=cols, other=0)
    else:
        tile = tl.load(at)
    return tile


@triton.jit
def _outputs(tile, pixels, places, many_h, many_w, BLOCK: tl.constexpr, PHASES: tl.constexpr, DEEP: tl.constexpr, LONG: tl.constexpr):
    """Which outputs a tile of pixels has, and of each the image, its place in it, plane, row and column."""
    if LONG:
        tile = tile.to(tl.int64)
    pixel = tile * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    if PHASES:  # a phase may have none
        at, places, many_h, many_w = pixel, tl.maximum(places, 1), tl.maximum(many_h, 1), tl.maximum(many_w, 1)
    else:  # those behind the last wrap to valid ones, so that without padding no load is masked
        at = pixel % pixels
    place = at % places
    r = place // many_w
    q = place - r * many_w
    f = tl.zeros_like(r)
    if DEEP:
        f = r // many_h
        r = r - f * many_h
    return inside, (at // places).to(tl.int64), place, f, r, q


@triton.jit
def _steps(steps, ALIGN: tl.constexpr):
    """The steps of an image, its planes, rows and columns, all known to divide by ALIGN."""
    return steps[0] // ALIGN * ALIGN, steps[1] // ALIGN * ALIGN, steps[2] // ALIGN * ALIGN, steps[3] // ALIGN * ALIGN


# y[n, p, o] = sum over taps t and channels c of w[o, t, c] x[n, p + t, c] + bias[o], its ACTIVATION; a step is BLOCK_K channels of one tap, and
# the taps go along rows.
# TRANSPOSED: w[c, t, o] in place of w[o, t, c]: the gradient to the input. PHASES: that of strided windows: outputs a, a + stride, ... make one dense
# problem for each a, in which no tap falls between cells.
@triton.jit(do_not_specialize=["k_part", "groups", "phases", "batch", "size", "axes", "most", "bias_c"])
def _correlate_blocks_kernel(
    x, w, y, bias, m, channels, k_part, groups, phases, batch, pixels, places, most, size_y, size, axes, x_steps, y_n, y_c, y_w, bias_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TRANSPOSED: tl.constexpr, PHASES: tl.constexpr, PADDED: tl.constexpr,
    BITS: tl.constexpr, DEEP: tl.constexpr, EVEN: tl.constexpr, ALIGN: tl.constexpr, OUT: tl.constexpr, RUN: tl.constexpr, LONG: tl.constexpr,
    Y_C1: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    channels, m = channels // ALIGN * ALIGN, m // OUT * OUT
    x_n, x_d, x_h, x_w = _steps(x_steps, ALIGN)
    tiles_n = tl.cdiv(m, BLOCK_N)
    tile = tl.program_id(0) % (most * tiles_n)  # tiles of one set of pixels run together: the image stays in the cache
    outer = tl.program_id(0) // (most * tiles_n)
    phase, group, part = outer % phases, (outer // phases % groups).to(tl.int64), outer // phases // groups
    a_d, many_d, first_d, count_d, lead_d = _along(phase, 0, axes, PHASES)
    a_h, many_h, first_h, count_h, lead_h = _along(phase, 1, axes, PHASES)
    a_w, many_w, first_w, count_w, lead_w = _along(phase, 2, axes, PHASES)
    if PHASES:
        places = many_d * many_h * many_w
        pixels = places * batch
    else:
        places, pixels = places // RUN * RUN, pixels // RUN * RUN
    inside, image, place, f, r, q = _outputs(tile // tiles_n, pixels, places, many_h, many_w, BLOCK_M, PHASES, DEEP, LONG)
    d, h, v = f * axes.step[0] + lead_d, r * axes.step[1] + lead_h, q * axes.step[2] + lead_w
    x_at = x + group * channels + image * x_n + d.to(tl.int64) * x_d + h.to(tl.int64) * x_h + v.to(tl.int64) * x_w  # (BLOCK_M,)
    k = tl.arange(0, BLOCK_K)
    cols = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = m if TRANSPOSED else channels
    w_step = _times(axes.kernel[0] * axes.kernel[1] * axes.kernel[2], inner, LONG)
    w_row = w_step.to(tl.int64)
    own = (group * m + cols % m) * w_row  # (BLOCK_N,)
    w_at = w + group * channels * w_row + (cols % m)[None, :] + k[:, None] * w_row if TRANSPOSED else w + own[None, :] + k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    blocks = tl.cdiv(channels, BLOCK_K)
    start = part * k_part
    stop = min(start + k_part, blocks * count_d * count_h * count_w)
    bits = _tap_bits(d, h, v, size, count_d, count_h, count_w, inside, BITS, TRANSPOSED, DEEP) if BITS > 0 else None
    c, t, j, i, e = _start(start, blocks, count_w, count_h, BLOCK_K)
    for _ in range(start, stop):
        dd, hh, vv = e * axes.hop[0], i * axes.hop[1], j * axes.hop[2]
        good = _seen(inside, bits, j, i, e, v + vv, h + hh, d + dd, size, BITS, PADDED, DEEP)
        cell = _times(hh, x_h, LONG) + _times(vv, x_w, LONG) + c
        if DEEP:
            cell += _times(dd, x_d, LONG)
        x_tile = _tile(x_at[:, None] + (cell + k)[None, :], good[:, None], (c + k < channels)[None, :], PADDED, not EVEN)
        tap = t
        if PHASES:
            tap = _tap(first_d, first_h, first_w, e, i, j, axes)
        w_cell = _times(tap, inner, LONG) + (_times(c, w_step, LONG) if TRANSPOSED else c)
        w_tile = _tile(w_at + w_cell, good, (c + k < channels)[:, None], False, not EVEN)
        acc = tl.dot(x_tile, w_tile, acc, input_precision=PRECISION, out_dtype=ACC)
        c, t, j, i, e = _next(c, t, j, i, e, channels, count_w, count_h, BLOCK_K, DEEP)
    channel = group * m + cols
    if BIAS:
        acc += tl.load(bias + channel * bias_c, mask=cols < m, other=0).to(ACC)[None, :]
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    if PHASES:
        place = _spread(a_d, a_h, a_w, f, r, q, axes, DEEP)
    row = _row_of(image, place, y_n, y_w, OUT, RUN, Y_C1)
    y_at = y + part.to(tl.int64) * size_y + channel[None, :] * (1 if Y_C1 else y_c // RUN * RUN) + row[:, None]
    tl.store(y_at, acc.to(y.dtype.element_ty), mask=inside[:, None] & (cols < m)[None, :])


def _axes(s: Geometry, transposed: bool) -> tuple[Axes, int]:
    """How outputs read cells, and into how many dense problems strides cut the gradient to the input."""
    v = s.three()
    ones = (1, 1, 1)
    if not transposed:
        return Axes(v.outs, v.kernel, v.stride, tuple([-p for p in v.padding]), v.dilation, ones, v.padding, v.dilation, ones), 1
    common = [math.gcd(a, b) for a, b in zip(v.stride, v.dilation, strict=True)]
    hop = tuple([-b // c for b, c in zip(v.dilation, common, strict=True)])
    apart = tuple([a // c for a, c in zip(v.stride, common, strict=True)])
    return Axes(v.size, v.kernel, ones, v.padding, hop, v.stride, v.padding, v.dilation, apart), math.prod(v.stride)


def _side_by_side(axes: Axes) -> bool:
    """Whether along each axis taps read neighbouring cells, and are few enough for a bit each."""
    return all(n <= BITS and (abs(hop) == 1 or n == 1) for n, hop in zip(axes.kernel, axes.hop, strict=True))


def filters(weight: CudaArray) -> CudaArray:
    """A weight (O, C / G, *kernel) whose memory has the order (O, *kernel, C / G): itself, or a transposing copy, which is small beside any image."""
    return to_c_order(weight.transpose((0, *range(2, len(weight.shape)), 1)))


def correlate(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool, y: CudaArray, activation: Any = None
) -> CudaArray:
    """y, written: gathered.correlate for an x whose channels lie innermost, and a y whose channels do or which lies in C order."""
    axes, phases = _axes(s, transposed)
    m, channels = (s.channels // s.groups, s.out // s.groups) if transposed else (s.out // s.groups, s.channels // s.groups)
    ins, places = (s.three().outs if transposed else s.three().size), math.prod(axes.outs)
    own = s.batch * (math.prod(map(cdiv, axes.outs, axes.stride)) if phases > 1 else places)  # pixels of the largest problem
    taps = math.prod(map(cdiv, axes.kernel, axes.apart)) if phases > 1 else s.taps
    steps_x, last, matrix = volume_strides(x), y.strides[1] == 1, filters(weight)
    align, out = alignment(x.itemsize, channels, steps_x[0], *steps_x[2:]), alignment(x.itemsize, m, s.channels if transposed else s.out)
    key = (own, m, channels * taps, s.groups * phases, x.dtype, align > 1, channels)
    tiles = config_of("conv2d_blocks", key, block_tiles(*key))
    steps = cdiv(channels, tiles.block_k) * taps
    k_part = cdiv(steps, min(tiles.split, steps))
    parts, most = cdiv(steps, k_part), cdiv(own, tiles.block_m)
    stored, acc = dot_accumulator(x.dtype)
    # only then may a tap read beside the image: else no load is masked
    padded = phases > 1 or (transposed and s.taps > 1) or max(s.padding) > 0
    into: Any = y if parts == 1 else allocate((parts, y.size), stored, x)
    launch(
        _correlate_blocks_kernel, (most * cdiv(m, tiles.block_n) * phases * s.groups * parts,),
        x, matrix, into, y if bias is None else bias, m, channels, k_part, s.groups, phases, s.batch, s.batch * places, places, most, y.size, ins, axes,
        (steps_x[0], *steps_x[2:]), y.strides[0], y.strides[1], y.strides[-1], 0 if bias is None else bias.strides[0],
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, TRANSPOSED=transposed, PHASES=phases > 1,
        PADDED=padded, BITS=BITS if padded and x.itemsize == 2 and _side_by_side(axes) else 0, DEEP=len(s.size) == 3, EVEN=channels % tiles.block_k == 0,
        ALIGN=align, OUT=out, RUN=1 if last or phases > 1 else alignment(into.itemsize, places, y.strides[0], y.strides[1]),
        LONG=s.batch * places >= 1 << 31 or long_offsets(x) or matrix.size >= 1 << 31, Y_C1=last, BIAS=bias is not None and parts == 1,
        PRECISION=dot_precision(), ACC=acc, ACTIVATION=activation if parts == 1 else None, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    if parts > 1:
        sum_parts(into, y, bias, 1 if last else places, finish=Epilogue(activation))
    return y
