"""Sliding windows of pooling: their sizes, what is refused of them, and where kernels find their cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.indices.sliding_windows import Sizes, Windows
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.ops.array import CudaArray
from tritensor.ops.table import refuse_kind

BLOCK = 128  # elements of a program that has one a thread
# What pooling kernels are not specialised on: no size and no stride decides how wide their accesses are, and each would be a compilation more.
FREE = ["rows", "width", "channels", "size", "outs", "stride", "padding"]
NAMES = {1: "W", 2: "H, W", 3: "D, H, W"}
RESULTS = {2: "OH, OW", 3: "OD, OH, OW"}


def _out(size: int, k: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    span = size + 2 * padding - dilation * (k - 1) - 1
    out = (cdiv(span, stride) if ceil_mode else span // stride) + 1
    return out - 1 if ceil_mode and (out - 1) * stride >= size + padding else out  # no window starts in the right padding


def pooling_windows(
    x: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes | None = None, ceil_mode: bool = False
) -> Windows:
    """All sizes of a pooling of x (N, C, *size); refuses nothing."""
    size, dilation = tuple(x[2:]), (1,) * len(kernel_size) if dilation is None else dilation
    outs = tuple([_out(*axis, ceil_mode) for axis in zip(size, kernel_size, stride, padding, dilation, strict=True)])
    return Windows(size, outs, tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))


def check_windows(
    name: str, axes: int, x: Any, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool,
    kinds: tuple[str, ...] = ("float",),
) -> Windows:  # fmt: skip
    """The windows, or a ShapeError that says what does not fit."""
    given = f"{name}: x {tuple(x.shape)}, kernel_size {tuple(kernel_size)}"
    if len(x.shape) != axes + 2:
        raise ShapeError(f"{given}: x must be (N, C, {NAMES[axes]})")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{given}: x has a size of 0, which only its batch may have")
    refuse_kind(name, x.dtype, kinds)
    if min(kernel_size) < 1 or min(stride) < 1 or min(dilation) < 1:
        raise ShapeError(f"{given}: kernel_size, stride {stride} and dilation {dilation} must be at least 1")
    if min(padding) < 0 or any(2 * p > k for p, k in zip(padding, kernel_size, strict=True)):
        raise ShapeError(f"{given}: padding {padding} must be between 0 and half of kernel_size, or windows see nothing but padding")
    s = pooling_windows(tuple(x.shape), kernel_size, stride, padding, dilation, ceil_mode)
    if min(s.outs) < 1:
        spans = " x ".join([str(d * (k - 1) + 1) for d, k in zip(dilation, s.kernel, strict=True)])
        padded = " x ".join([str(n + 2 * p) for n, p in zip(s.size, s.padding, strict=True)])
        raise ShapeError(f"{given}: the window spans {spans}, the padded image only {padded}; give more padding, or a smaller window")
    return s


# ---------------------------------------------------------------- what kernels share


@triton.jit
def first_cell(
    x, n, c, f, r, q, stride, padding, strides, DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr, UNIT: tl.constexpr, ALIGN: tl.constexpr
):
    """Plane, row and column of the first cell of window (f, r, q), which may lie outside of the image, and its address. UNIT: what lies innermost has
    stride 1, and the others are multiples of ALIGN."""
    front, top, left = f, r * stride[1] - padding[1], q * stride[2] - padding[2]
    if DEEP:
        front = f * stride[0] - padding[0]
    rows, channels, columns = n * strides[0] + (front * strides[2] + top * strides[3]), c * strides[1], left * strides[4]
    if CHANNELS_LAST:
        # what is rounded to a multiple of ALIGN is one already: it tells the compiler that accesses may be wide
        offset = (rows + columns) // ALIGN * ALIGN + (c if UNIT else channels)
    else:
        offset = rows + channels + columns
    return front, top, left, x + offset


def window_type(dtype: np.dtype) -> tl.dtype:
    """The type that a window is reduced in."""
    if dtypes.of(dtype).kind in ("int", "uint"):
        return (tl.uint64 if dtype.kind == "u" else tl.int64) if dtype.itemsize == 8 else tl.int32
    return tl.float64 if dtype.itemsize == 8 else tl.float32


def to_layout(x: CudaArray, last: bool) -> CudaArray:
    """x's elements in the wanted order of memory; a copy only where they are not."""
    return to_c_order(x.transpose((0, *range(2, len(x.shape)), 1)) if last else x)


def inner_strides(x: CudaArray, last: bool) -> dict[str, Any]:
    """What `first_cell` is told of x's strides."""
    unit = last and x.strides[1] == 1
    return {"UNIT": unit, "ALIGN": math.gcd(8, x.strides[0], *x.strides[2:]) if unit else 1}


def reach(s: Windows) -> Sizes:
    """How many windows hold a cell at most, along each of three axes."""
    s = s.three()
    return tuple([cdiv((k - 1) * d + 1, step) for k, d, step in zip(s.kernel, s.dilation, s.stride, strict=True)])


def unrolled(counts: Sizes) -> Sizes:
    """By how much the loops over rows and columns of a window are unrolled: wholly where it is small."""
    # unrolled, loads of a window overlap; of large windows the code would be longer than what it saves
    rows, columns = counts[1:]
    return (rows, columns) if rows * columns <= 16 else (1, columns if columns <= 16 else 1)
