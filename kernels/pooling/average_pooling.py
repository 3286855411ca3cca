"""Average pooling over two dimensions, and its gradient, in which each cell gathers from the windows that hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.errors import ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.positions import long_offsets, positions
from tritensor.kernels.parts.view_arithmetic import is_channels_last
from tritensor.kernels.pooling import pooling_cpu as cpu
from tritensor.kernels.pooling.max_pooling import (
    BLOCK,
    SIZES,
    STRIDES,
    Pair,
    cell_at,
    checked,
    image_for,
    in_order,
    memory_at,
    place,
    sizes,
    window_at,
    window_cases,
    window_type,
    windows,
    work,
)
from tritensor.table import Sample, Spec, op, ops, refuse_kind


@triton.jit
def _count(r, q, height, width, kh, kw, sh, sw, ph, pw, divisor, INCLUDE_PAD: tl.constexpr):
    """What the sum over window (r, q) is divided by: `divisor`, or where that is 0 the number of its cells."""
    top = r * sh - ph
    left = q * sw - pw
    bottom = tl.minimum(top + kh, height + ph)
    right = tl.minimum(left + kw, width + pw)
    if not INCLUDE_PAD:
        top = tl.maximum(top, 0)
        left = tl.maximum(left, 0)
        bottom = tl.minimum(bottom, height)
        right = tl.minimum(right, width)
    return tl.where(divisor != 0, divisor, (bottom - top) * (right - left))


# y[n, c, r, q] = sum over i, j of x[n, c, sh r - ph + i, sw q - pw + j] / count
@triton.jit(do_not_specialize=[*SIZES, "divisor", *STRIDES])
def _avg_pool_kernel(
    x, y, size, channels, height, width, rows, cols, kh, kw, sh, sw, ph, pw, divisor, x_n, x_c, x_h, x_w,
    INCLUDE_PAD: tl.constexpr, ACC: tl.constexpr, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < size
    n, c, r, q = place(at, channels, rows, cols, CHANNELS_LAST)
    total = tl.zeros((BLOCK,), ACC)
    for i in range(kh):
        for j in range(kw):
            h, v, there = cell_at(r, q, i, j, height, width, sh, sw, ph, pw, 1, 1)
            good = inside & there
            total += tl.load(x + n * x_n + c * x_c + h * x_h + v * x_w, mask=good, other=0).to(ACC)
    y_value = maths.div(total, _count(r, q, height, width, kh, kw, sh, sw, ph, pw, divisor, INCLUDE_PAD))
    tl.store(y + at, y_value.to(y.dtype.element_ty), mask=inside)


# dx[n, c, h, v] = sum of g[n, c, r, q] / count(r, q) over the windows (r, q) that hold (h, v)
@triton.jit(do_not_specialize=[*SIZES, "divisor"])
def _avg_spread_kernel(
    g, dx, size, channels, height, width, rows, cols, kh, kw, sh, sw, ph, pw, divisor,
    INCLUDE_PAD: tl.constexpr, ACC: tl.constexpr, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < size
    n, c, h, v = place(at, channels, height, width, CHANNELS_LAST)
    total = tl.zeros((BLOCK,), ACC)
    for i in range(kh):
        for j in range(kw):
            r, q, there = window_at(h, v, i, j, rows, cols, sh, sw, ph, pw, 1, 1)
            good = inside & there
            share = tl.load(g + memory_at(n, c, r, q, channels, rows, cols, CHANNELS_LAST), mask=good, other=0).to(ACC)
            count = _count(r, q, height, width, kh, kw, sh, sw, ph, pw, divisor, INCLUDE_PAD)
            total += tl.where(good, maths.div(share, tl.where(good, count, 1)), 0)
    tl.store(dx + at, total.to(dx.dtype.element_ty), mask=inside)


# ---------------------------------------------------------------- avg_pool2d, and its gradient as an op


def avg_shape(
    x: Any, *, kernel_size: Pair, stride: Pair, padding: Pair, ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None
) -> Spec:
    s = checked("avg_pool2d", x, kernel_size, stride, padding, (1, 1), ceil_mode)
    return Spec((*x.shape[:2], s.rows, s.cols), x.dtype)


def avg_reference(
    x: np.ndarray,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> np.ndarray:
    """The mean of each window; padding counts as zeros, or not at all without count_include_pad; or its sum divided by divisor_override."""
    s = windows(x.shape, kernel_size, stride, padding, (1, 1), ceil_mode)
    axes = cpu.layout_of(x)
    y = cpu.average(cpu.planes(x.astype(np.float32) if x.dtype.itemsize == 2 else x, axes), s, count_include_pad, divisor_override)
    return cpu.image(y.astype(x.dtype, copy=False), axes, *x.shape[:2])


def avg_forward(
    x: CudaArray,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> CudaArray:
    s = windows(x.shape, kernel_size, stride, padding, (1, 1), ceil_mode)
    last = is_channels_last(x)
    memory, y = image_for(x.shape[0], x.shape[1], s.rows, s.cols, x.dtype, x, last)
    launch(_avg_pool_kernel, (cdiv(y.size, BLOCK),), x, memory, y.size, x.shape[1], s.height, s.width, s.rows, s.cols, *s[4:10],
           divisor_override or 0, *x.strides,
           INCLUDE_PAD=count_include_pad, ACC=window_type(x.dtype), CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(x, y), BLOCK=BLOCK)  # fmt: skip
    return y


def avg_rule(
    g: Any,
    x_shape: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Any:
    return ops.avg_pool2d_spread(
        g,
        size=x_shape[2:],
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


def avg_backward(
    g: CudaArray,
    x_shape: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> CudaArray:
    s = windows(x_shape, kernel_size, stride, padding, (1, 1), ceil_mode)
    last = is_channels_last(g)
    memory, dx = image_for(x_shape[0], x_shape[1], s.height, s.width, g.dtype, g, last)
    launch(_avg_spread_kernel, (cdiv(dx.size, BLOCK),), in_order(g, last), memory, dx.size, x_shape[1], s.height, s.width, s.rows, s.cols,
           *s[4:10], divisor_override or 0,
           INCLUDE_PAD=count_include_pad, ACC=window_type(g.dtype), CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(dx), BLOCK=BLOCK)  # fmt: skip
    return dx


def avg_reference_backward(
    g: np.ndarray,
    x_shape: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> np.ndarray:
    s = windows(x_shape, kernel_size, stride, padding, (1, 1), ceil_mode)
    axes = cpu.layout_of(g)
    dx = cpu.spread(cpu.planes(g.astype(np.float32) if g.dtype.itemsize == 2 else g, axes), s, count_include_pad, divisor_override)
    return cpu.image(dx.astype(g.dtype, copy=False), axes, *g.shape[:2])


def spread_shape(
    g: Any,
    *,
    size: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Spec:
    if len(g.shape) != 4:
        raise ShapeError(f"avg_pool2d_spread: g {tuple(g.shape)}: g must be (N, C, OH, OW)")
    refuse_kind("avg_pool2d_spread", g.dtype, ("float",), "g")
    s = windows((*g.shape[:2], *size), kernel_size, stride, padding, (1, 1), ceil_mode)
    if tuple(g.shape[2:]) != (s.rows, s.cols):
        raise ShapeError(
            f"avg_pool2d_spread: g {tuple(g.shape)}, size {size}: a pooling of that size gives {(*g.shape[:2], s.rows, s.cols)}, not g's shape"
        )
    return Spec((*g.shape[:2], *size), g.dtype)


def spread_reference(
    g: np.ndarray,
    *,
    size: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> np.ndarray:
    """avg_pool2d's gradient to x (N, C, *size): every cell of a window gets an equal share of its g."""
    return avg_reference_backward(g, (*g.shape[:2], *size), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def spread_forward(
    g: CudaArray,
    *,
    size: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> CudaArray:
    return avg_backward(g, (*g.shape[:2], *size), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _spread_rule(
    gg: Any, kernel_size: Pair, stride: Pair, padding: Pair, ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None
) -> Any:
    return ops.avg_pool2d(
        gg,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


def _spread_backward(
    gg: CudaArray,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> CudaArray:
    return avg_forward(
        gg,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


def avg_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(x, **a, count_include_pad=i % 2 == 0)
        for i, (x, a) in enumerate(window_cases(rng) + [window_cases(rng)[5], window_cases(rng)[6]])
    ] + [Sample(x, **a, count_include_pad=True, divisor_override=3) for x, a in window_cases(rng)[5:7]]


def spread_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal(avg_reference(s.inputs[0], **s.attrs).shape), size=s.inputs[0].shape[2:], **s.attrs)
        for s in avg_samples(rng)
    ]


op(
    "avg_pool2d", avg_reference, shape=avg_shape, forward=avg_forward, rule=avg_rule, backward=avg_backward,
    reference_backward=avg_reference_backward, samples=avg_samples, work=work, condition="absolute", layout="images",
    sizes=lambda rng: [Sample(*s.inputs, **s.attrs, count_include_pad=True) for s in sizes(rng)],
)  # fmt: skip
op(
    "avg_pool2d_spread", spread_reference, shape=spread_shape, forward=spread_forward, rule=_spread_rule, backward=_spread_backward,
    samples=spread_samples, condition="absolute", layout="images",
)  # fmt: skip
