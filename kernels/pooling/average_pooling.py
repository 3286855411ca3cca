"""Average pooling over two and three axes, and its gradient, in which each cell gathers from the windows that hold it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import image_for
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.grid_indices import long_offsets, memory_at, place_of, tile, tile_of
from tritensor.kernels.parts.indices.sliding_windows import Sizes, Windows, add_windows, read_windows
from tritensor.kernels.parts.view_arithmetic import is_channels_last, volume_strides
from tritensor.kernels.pooling import cpu, samples, windows
from tritensor.kernels.pooling.max_pooling import work
from tritensor.kernels.pooling.windows import check_windows, pooling_windows
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Spec, op, ops, refuse_kind
from tritensor.ops.table.signature import by_names


@triton.jit
def _extent(window, size, k, stride, padding, INCLUDE_PAD: tl.constexpr):
    """How many cells a window has along one axis."""
    low = window * stride - padding
    high = tl.minimum(low + k, size + padding)
    # PyTorch counts padding as zeros unless it is told not to; what hangs over the padding never counts
    if not INCLUDE_PAD:
        low = tl.maximum(low, 0)
        high = tl.minimum(high, size)
    return high - low


@triton.jit
def _count(f, r, q, size, kernel, stride, padding, divisor, DEEP: tl.constexpr, INCLUDE_PAD: tl.constexpr):
    """What the sum over window (f, r, q) is divided by: `divisor`, or where that is 0 the number of its cells."""
    cells = _extent(r, size[1], kernel[1], stride[1], padding[1], INCLUDE_PAD)
    cells *= _extent(q, size[2], kernel[2], stride[2], padding[2], INCLUDE_PAD)
    if DEEP:
        cells *= _extent(f, size[0], kernel[0], stride[0], padding[0], INCLUDE_PAD)
    return tl.where(divisor != 0, divisor, cells)


# y[n, c, o] = sum over taps t of x[n, c, stride o - padding + t] / count(o), o and t over one to three axes
@triton.jit(do_not_specialize=[*windows.FREE, "divisor", "strides"])
def _avg_pool_kernel(
    x, y, rows, width, channels, size, outs, stride, padding, divisor, strides,
    INCLUDE_PAD: tl.constexpr, ACC: tl.constexpr, KERNEL: tl.constexpr, UNROLLED: tl.constexpr, DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr,
    UNIT: tl.constexpr, ALIGN: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    width = width // EVEN * EVEN
    row, col, inside, at = tile_of(rows, width, LONG_OFFSETS, ROWS, COLS)
    n, c, f, r, q = place_of(row, col, channels, outs, DEEP, CHANNELS_LAST)
    front, top, left, from_ = windows.first_cell(x, n, c, f, r, q, stride, padding, strides, DEEP, CHANNELS_LAST, UNIT, ALIGN)
    total = tl.zeros((ROWS, COLS), ACC)
    for e in range(KERNEL[0] if DEEP else 1):
        in_planes = inside
        if DEEP:
            in_planes = inside & (front + e >= 0) & (front + e < size[0])
        for i in tl.range(0, KERNEL[1], loop_unroll_factor=UNROLLED[0]):
            h = top + i
            in_rows = in_planes & (h >= 0) & (h < size[1])
            for j in tl.range(0, KERNEL[2], loop_unroll_factor=UNROLLED[1]):
                v = left + j
                step = e * strides[2] + i * strides[3] + j * strides[4]
                total += tl.load(from_ + step // ALIGN * ALIGN, mask=in_rows & (v >= 0) & (v < size[2]), other=0).to(ACC)
    y_value = maths.div(total, _count(f, r, q, size, KERNEL, stride, padding, divisor, DEEP, INCLUDE_PAD))
    tl.store(y + at, y_value.to(y.dtype.element_ty), mask=inside)


# dx[n, c, h] = sum of g[n, c, o] / count(o) over the windows o that hold cell h
@triton.jit(do_not_specialize=["rows", "width", "channels", "size", "outs", "padding", "divisor"])
def _avg_spread_kernel(
    g, dx, rows, width, channels, size, outs, padding, divisor,
    INCLUDE_PAD: tl.constexpr, ACC: tl.constexpr, KERNEL: tl.constexpr, STRIDE: tl.constexpr, WINDOWS: tl.constexpr, UNROLLED: tl.constexpr,
    DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    width = width // EVEN * EVEN
    row, col, inside, at = tile_of(rows, width, LONG_OFFSETS, ROWS, COLS)
    n, c, d, h, v = place_of(row, col, channels, size, DEEP, CHANNELS_LAST)
    r0, q0 = (h + padding[1]) // STRIDE[1], (v + padding[2]) // STRIDE[2]  # the last windows that hold the cell
    total = tl.zeros((ROWS, COLS), ACC)
    for e in range(WINDOWS[0] if DEEP else 1):
        f = d
        in_planes = inside
        if DEEP:
            f = (d + padding[0]) // STRIDE[0] - e
            in_planes = inside & (f >= 0) & (f < outs[0]) & (d + padding[0] - f * STRIDE[0] < KERNEL[0])
        for i in tl.range(0, WINDOWS[1], loop_unroll_factor=UNROLLED[0]):
            r = r0 - i
            in_rows = in_planes & (r >= 0) & (r < outs[1]) & (h + padding[1] - r * STRIDE[1] < KERNEL[1])
            for j in tl.range(0, WINDOWS[2], loop_unroll_factor=UNROLLED[1]):
                q = q0 - j
                good = in_rows & (q >= 0) & (q < outs[2]) & (v + padding[2] - q * STRIDE[2] < KERNEL[2])
                from_ = memory_at(
                    n, c, f, r, q, width if CHANNELS_LAST else channels, outs, CHANNELS_LAST
                )  # width: what divides it is known
                share = tl.load(g + from_, mask=good, other=0).to(ACC)
                count = _count(f, r, q, size, KERNEL, STRIDE, padding, divisor, DEEP, INCLUDE_PAD)
                total += maths.div(share, tl.where(good, count, 1))
    tl.store(dx + at, total.to(dx.dtype.element_ty), mask=inside)


# ---------------------------------------------------------------- average pooling


def _windows(shape: Sizes, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool = False, **_: Any) -> Windows:
    return pooling_windows(shape, kernel_size, stride, padding, None, ceil_mode)


def _shape(axes: int) -> Callable[..., Spec]:
    def shape(x: Any, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, **_: Any) -> Spec:
        s = check_windows(f"avg_pool{axes}d", axes, x, kernel_size, stride, padding, (1,) * axes, ceil_mode)
        return Spec((*x.shape[:2], *s.outs), x.dtype)

    return shape


def _divisors(s: Windows, count_include_pad: bool, divisor: int | None) -> Any:
    """`divisor`, or how many cells each window has, (*outs): of padding those alone that do not hang over it."""
    bordered = s._replace(size=tuple(n + 2 * p for n, p in zip(s.size, s.padding, strict=True)), padding=(0,) * len(s.size))
    ones = np.pad(np.ones(s.size), [(p, p) for p in s.padding], constant_values=count_include_pad)
    return divisor or read_windows(ones, bordered).sum(-1)


def _reference(
    x: np.ndarray, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> np.ndarray:  # fmt: skip
    """The mean of each window; padding counts as zeros, or not at all without count_include_pad; or its sum divided by divisor_override."""
    s = pooling_windows(x.shape, kernel_size, stride, padding, None, ceil_mode)
    return np.asarray(read_windows(x, s).sum(-1) / _divisors(s, count_include_pad, divisor_override))


def _cpu(x: np.ndarray, *, count_include_pad: bool = True, divisor_override: int | None = None, **sizes: Any) -> np.ndarray:
    axes = cpu.layout_of(x)
    planes = cpu.as_planes(upcast(x), axes)
    return cpu.as_image(cpu.average(planes, _windows(x.shape, **sizes), count_include_pad, divisor_override), axes, x)


def _forward(x: CudaArray, *, count_include_pad: bool, divisor_override: int | None = None, **sizes: Any) -> CudaArray:
    s, last = _windows(x.shape, **sizes), is_channels_last(x)
    memory, y = image_for((*x.shape[:2], *s.outs), x.dtype, x, last)
    t, three = tile(y.shape, last), s.three()
    launch(
        _avg_pool_kernel, (t.programs,), x, memory, t.rows, t.width, x.shape[1], three.size, three.outs, three.stride, three.padding,
        divisor_override or 0, volume_strides(x), INCLUDE_PAD=count_include_pad, ACC=windows.window_type(x.dtype), KERNEL=three.kernel,
        UNROLLED=windows.unrolled(three.kernel), DEEP=len(s.size) == 3, CHANNELS_LAST=last, **windows.inner_strides(x, last), LONG_OFFSETS=long_offsets(x, y),
        **t.constants,
    )  # fmt: skip
    return y


# ---------------------------------------------------------------- its gradient as an op


def _spread_shape(axes: int) -> Callable[..., Spec]:
    name = f"avg_pool{axes}d_spread"

    def shape(g: Any, *, size: Sizes, **sizes: Any) -> Spec:
        if len(g.shape) != axes + 2:
            raise ShapeError(f"{name}: g {tuple(g.shape)}: g must be (N, C, {windows.RESULTS[axes]})")
        refuse_kind(name, g.dtype, ("float",), "g")
        s = _windows((*g.shape[:2], *size), **sizes)
        if tuple(g.shape[2:]) != s.outs:
            raise ShapeError(
                f"{name}: g {tuple(g.shape)}, size {size}: a pooling of that size gives {(*g.shape[:2], *s.outs)}, not g's shape"
            )
        return Spec((*g.shape[:2], *size), g.dtype)

    return shape


def _spread_reference(
    g: np.ndarray, *, size: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Average pooling's gradient to x (N, C, *size): every cell of a window gets an equal share of its g."""
    s = pooling_windows((*g.shape[:2], *size), kernel_size, stride, padding, None, ceil_mode)
    shares = (g / _divisors(s, count_include_pad, divisor_override))[..., None]
    return add_windows(np.repeat(shares, math.prod(s.kernel), -1), s)


def _spread_cpu(g: np.ndarray, *, size: Sizes, count_include_pad: bool, divisor_override: int | None = None, **sizes: Any) -> np.ndarray:
    s, axes = _windows((*g.shape[:2], *size), **sizes), cpu.layout_of(g)
    return cpu.as_image(cpu.spread(cpu.as_planes(upcast(g), axes), s, count_include_pad, divisor_override), axes, g)


def _spread_forward(g: CudaArray, *, size: Sizes, count_include_pad: bool, divisor_override: int | None = None, **sizes: Any) -> CudaArray:
    shape, last = (*g.shape[:2], *size), is_channels_last(g)
    s = _windows(shape, **sizes)
    memory, dx = image_for(shape, g.dtype, g, last)
    t, three, held = tile(shape, last), s.three(), windows.reach(s)
    launch(
        _avg_spread_kernel, (t.programs,), windows.to_layout(g, last), memory, t.rows, t.width, shape[1], three.size, three.outs, three.padding,
        divisor_override or 0, INCLUDE_PAD=count_include_pad, ACC=windows.window_type(g.dtype), KERNEL=three.kernel, STRIDE=three.stride, WINDOWS=held,
        UNROLLED=windows.unrolled(held), DEEP=len(s.size) == 3, CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(dx, g), **t.constants,
    )  # fmt: skip
    return dx


_HOW = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")


def _gradient(spread: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient to an x of any size by a function that spreads g over x."""
    return by_names(lambda g, x_shape, **how: spread(g, size=x_shape[2:], **how), "x_shape", *_HOW)


def _register(axes: int) -> None:
    name = f"avg_pool{axes}d"

    def spread(g: Any, **how: Any) -> Any:
        return (ops.avg_pool2d_spread if axes == 2 else ops.avg_pool3d_spread)(g, **how)

    def average(gg: Any, **how: Any) -> Any:
        return (ops.avg_pool2d if axes == 2 else ops.avg_pool3d)(gg, **how)

    op(
        name, _reference, cpu=_cpu, shape=_shape(axes), forward=_forward, rule=_gradient(spread), backward=_gradient(_spread_forward),
        cpu_backward=_gradient(_spread_cpu), samples=samples.means(axes), work=work, condition="absolute", layout="images",
        sizes=samples.sizes(axes, {"count_include_pad": True}),
    )  # fmt: skip
    op(
        f"{name}_spread", _spread_reference, cpu=_spread_cpu, shape=_spread_shape(axes), forward=_spread_forward,
        rule=by_names(average, *_HOW), backward=by_names(_forward, *_HOW), cpu_backward=by_names(_cpu, *_HOW),
        samples=samples.shares(axes, _reference), condition="absolute", layout="images",
    )  # fmt: skip


for _axes in (2, 3):
    _register(_axes)
