"""Max pooling over two dimensions, and its gradient, in which each cell gathers from the windows that hold it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.errors import DTypeError, ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import dense
from tritensor.kernels.parts.cpu.blocks import is_narrow
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.positions import Windows, long_offsets, positions
from tritensor.kernels.parts.view_arithmetic import is_channels_last
from tritensor.kernels.pooling import pooling_cpu as cpu
from tritensor.table import FLOATS, Sample, Spec, Work, op, ops, refuse_kind

Pair = tuple[int, int]
_POOLED = ("float", "int", "uint")  # the kinds of types that have a largest element and kernels for it
BLOCK = 128  # one element a thread: two of them spill
# What a kernel on one element a thread is not specialised on: no size and no stride decides how wide its accesses are.
SIZES = ["size", "channels", "height", "width", "rows", "cols", "kh", "kw", "sh", "sw", "ph", "pw"]
DILATION = ["dh", "dw"]
STRIDES = ["x_n", "x_c", "x_h", "x_w"]


# ---------------------------------------------------------------- kernels


@triton.jit
def place(at, channels, height, width, CHANNELS_LAST: tl.constexpr):
    """Image, channel, row and column of the element at a place in memory."""
    if CHANNELS_LAST:
        c = at % channels
        v = at // channels % width
        h = at // channels // width % height
        n = at // channels // width // height
    else:
        v = at % width
        h = at // width % height
        c = at // width // height % channels
        n = at // width // height // channels
    return n, c, h, v


@triton.jit
def memory_at(n, c, h, v, channels, height, width, CHANNELS_LAST: tl.constexpr):
    """The inverse of place."""
    if CHANNELS_LAST:
        at = ((n * height + h) * width + v) * channels + c
    else:
        at = ((n * channels + c) * height + h) * width + v
    return at


@triton.jit
def cell_at(r, q, i, j, height, width, sh, sw, ph, pw, dh, dw):
    """Cell (i, j) of window (r, q), and whether it lies in the image."""
    h = r * sh - ph + i * dh
    v = q * sw - pw + j * dw
    return h, v, (h >= 0) & (h < height) & (v >= 0) & (v < width)


@triton.jit
def window_at(h, v, i, j, rows, cols, sh, sw, ph, pw, dh, dw):
    """The window (r, q) whose cell (i, j) is (h, v), and whether there is one."""
    top = h + ph - i * dh
    left = v + pw - j * dw
    r = top // sh
    q = left // sw
    return r, q, (top >= 0) & (left >= 0) & (top % sh == 0) & (left % sw == 0) & (r < rows) & (q < cols)


@triton.jit
def _first(low, dilation):
    """The first of low, low + dilation, ... that is not negative."""
    return tl.where(low < 0, low + (dilation - 1 - low) // dilation * dilation, low)


# y[n, c, r, q] = max over i, j of x[n, c, sh r - ph + dh i, sw q - pw + dw j], and the flat place of the first largest
@triton.jit(do_not_specialize=[*SIZES, *DILATION, *STRIDES])
def _max_pool_kernel(
    x, y, index, size, channels, height, width, rows, cols, kh, kw, sh, sw, ph, pw, dh, dw, x_n, x_c, x_h, x_w,
    ACC: tl.constexpr, LEAST: tl.constexpr, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < size
    n, c, r, q = place(at, channels, rows, cols, CHANNELS_LAST)
    best = tl.full((BLOCK,), LEAST, ACC)
    found = _first(r * sh - ph, dh) * width + _first(q * sw - pw, dw)
    for i in range(kh):
        for j in range(kw):
            h, v, there = cell_at(r, q, i, j, height, width, sh, sw, ph, pw, dh, dw)
            good = inside & there
            value = tl.load(x + n * x_n + c * x_c + h * x_h + v * x_w, mask=good, other=0).to(ACC)
            take = good & ((value > best) | (value != value))
            best = tl.where(take, value, best)
            found = tl.where(take, h * width + v, found)
    tl.store(y + at, best.to(y.dtype.element_ty), mask=inside)
    tl.store(index + at, found, mask=inside)


# dx[n, c, h, v] = sum of g[n, c, r, q] over the windows (r, q) that hold (h, v) and chose it
@triton.jit(do_not_specialize=[*SIZES, *DILATION])
def _max_scatter_kernel(
    g, index, dx, size, channels, height, width, rows, cols, kh, kw, sh, sw, ph, pw, dh, dw,
    ACC: tl.constexpr, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < size
    n, c, h, v = place(at, channels, height, width, CHANNELS_LAST)
    total = tl.zeros((BLOCK,), ACC)
    for i in range(kh):
        for j in range(kw):
            r, q, there = window_at(h, v, i, j, rows, cols, sh, sw, ph, pw, dh, dw)
            good = inside & there
            from_ = memory_at(n, c, r, q, channels, rows, cols, CHANNELS_LAST)
            chosen = tl.load(index + from_, mask=good, other=-1)
            total += tl.load(g + from_, mask=good & (chosen == h * width + v), other=0).to(ACC)
    tl.store(dx + at, total.to(dx.dtype.element_ty), mask=inside)


# y[n, c, r, q] = x[n, c, place], place = index[n, c, r, q]
@triton.jit(do_not_specialize=["size", "channels", "width", "rows", "cols", *STRIDES])
def _max_gather_kernel(
    x, index, y, size, channels, width, rows, cols, x_n, x_c, x_h, x_w, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < size
    n, c, _, _ = place(at, channels, rows, cols, CHANNELS_LAST)
    chosen = tl.load(index + at, mask=inside, other=0)
    tl.store(y + at, tl.load(x + n * x_n + c * x_c + chosen // width * x_h + chosen % width * x_w, mask=inside, other=0), mask=inside)


def window_type(dtype: np.dtype) -> tl.dtype:
    """The type that a window is reduced in."""
    if dtypes.of(dtype).kind in ("int", "uint"):
        return (tl.uint64 if dtype.kind == "u" else tl.int64) if dtype.itemsize == 8 else tl.int32
    return tl.float64 if dtype.itemsize == 8 else tl.float32


def _least(dtype: np.dtype) -> float:
    """What every element is at least."""
    return -math.inf if dtypes.is_float(dtype) else int(np.iinfo(dtype).min)


def image_for(n: int, c: int, h: int, w: int, dtype: np.dtype, like: CudaArray, last: bool) -> tuple[CudaArray, CudaArray]:
    """An empty image in the wanted layout: its memory in order, and its (N, C, H, W) view."""
    memory = allocate((n, h, w, c) if last else (n, c, h, w), dtype, like)
    return memory, memory.transpose((0, 3, 1, 2)) if last else memory


def in_order(x: CudaArray, last: bool) -> CudaArray:
    """x's elements in the wanted order of memory; a copy only where they are not."""
    return dense(x.transpose((0, 2, 3, 1)) if last else x)


# ---------------------------------------------------------------- sizes and refusals


def _out(size: int, k: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    span = size + 2 * padding - dilation * (k - 1) - 1
    out = (cdiv(span, stride) if ceil_mode else span // stride) + 1
    return out - 1 if ceil_mode and (out - 1) * stride >= size + padding else out  # no window starts in the right padding


def windows(
    x: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair = (1, 1), ceil_mode: bool = False
) -> Windows:
    """All sizes of a pooling of x (N, C, H, W); refuses nothing."""
    rows, cols = (_out(x[2 + d], kernel_size[d], stride[d], padding[d], dilation[d], ceil_mode) for d in (0, 1))
    return Windows(x[2], x[3], rows, cols, *kernel_size, *stride, *padding, *dilation)


def checked(
    name: str, x: Any, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool, kinds: tuple[str, ...] = ("float",)
) -> Windows:
    given = f"{name}: x {tuple(x.shape)}, kernel_size {tuple(kernel_size)}"
    if len(x.shape) != 4:
        raise ShapeError(f"{given}: x must be (N, C, H, W)")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{given}: x has a size of 0, which only its batch may have")
    refuse_kind(name, x.dtype, kinds)
    if min(kernel_size) < 1 or min(stride) < 1 or min(dilation) < 1:
        raise ShapeError(f"{given}: kernel_size, stride {stride} and dilation {dilation} must be at least 1")
    if min(padding) < 0 or any(2 * p > k for p, k in zip(padding, kernel_size, strict=True)):
        raise ShapeError(f"{given}: padding {padding} must be between 0 and half of kernel_size, or windows see nothing but padding")
    s = windows(tuple(x.shape), kernel_size, stride, padding, dilation, ceil_mode)
    if s.rows < 1 or s.cols < 1:
        spans = f"{dilation[0] * (s.kh - 1) + 1} x {dilation[1] * (s.kw - 1) + 1}"
        raise ShapeError(
            f"{given}: the window spans {spans}, the padded image only {s.height + 2 * s.ph} x {s.width + 2 * s.pw}; give more padding, or a smaller window"
        )
    return s


def _of_indices(name: str, size: tuple[int, ...], indices: Any, x: Any, expected: tuple[int, ...]) -> None:
    if tuple(x.shape) != expected or len(indices.shape) != 4:
        raise ShapeError(f"{name}: {tuple(x.shape)} with indices {tuple(indices.shape)} and size {size}: it must be {expected}")
    refuse_kind(name, x.dtype, _POOLED, "g" if name.endswith("scatter") else "x")
    if indices.dtype != np.int64:
        raise DTypeError(f"{name}: indices {dtypes.of(indices.dtype).name}: they must be int64, as max_pool2d returns them")


# ---------------------------------------------------------------- max_pool2d


def shape(x: Any, *, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool) -> tuple[Spec, Spec]:
    s = checked("max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode, _POOLED)
    out = (*x.shape[:2], s.rows, s.cols)
    return Spec(out, x.dtype), Spec(out, np.dtype(np.int64))


def reference(
    x: np.ndarray, *, kernel_size: Pair, stride: Pair, padding: Pair = (0, 0), dilation: Pair = (1, 1), ceil_mode: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The largest element of each window and its flat place in its plane; the first of equals, NaN above all, padding below all."""
    s = windows(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    axes = cpu.layout_of(x)
    flat = cpu.planes(x.astype(np.float32) if is_narrow(x.dtype) else x, axes)
    y, index = cpu.max_quarters(flat, s) if s.quarters else cpu.max_general(flat, s)
    if s.quarters and y.dtype.kind == "f" and np.isnan(y).any():
        y, index = cpu.max_general(flat, s)
    return cpu.image(y.astype(x.dtype, copy=False), axes, *x.shape[:2]), cpu.image(index, axes, *x.shape[:2])


def forward(
    x: CudaArray, *, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[CudaArray, CudaArray]:
    s = windows(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    n, c = x.shape[:2]
    last = is_channels_last(x)
    memory, y = image_for(n, c, s.rows, s.cols, x.dtype, x, last)
    places, index = image_for(n, c, s.rows, s.cols, np.dtype(np.int64), x, last)
    launch(_max_pool_kernel, (cdiv(y.size, BLOCK),), x, memory, places, y.size, c, s.height, s.width, s.rows, s.cols, *s[4:], *x.strides,
           ACC=window_type(x.dtype), LEAST=_least(x.dtype), CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(x, y), BLOCK=BLOCK)  # fmt: skip
    return y, index


def rule(g: Any, indices: Any, x_shape: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    return ops.max_pool2d_scatter(
        g[0], indices, size=x_shape[2:], kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation
    )


def backward(
    g: Any, indices: CudaArray, x_shape: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> CudaArray:
    return scatter_forward(g[0], indices, size=x_shape[2:], kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def reference_backward(
    g: Any, indices: np.ndarray, x_shape: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> np.ndarray:
    return scatter_reference(g[0], indices, size=x_shape[2:], kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


# ---------------------------------------------------------------- its gradient, a scatter by indices, and the gradient of that, a gather


def scatter_shape(g: Any, indices: Any, *, size: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Spec:
    _of_indices("max_pool2d_scatter", size, indices, g, tuple(indices.shape))
    return Spec((*g.shape[:2], *size), g.dtype)


def scatter_reference(
    g: np.ndarray,
    indices: np.ndarray,
    *,
    size: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> np.ndarray:
    """dx (N, C, *size): each cell gets the sum of g over the windows whose index names it. `indices` are max_pool2d's of the same windows."""
    s = Windows(size[0], size[1], indices.shape[2], indices.shape[3], *kernel_size, *stride, *padding, *dilation)
    axes = cpu.layout_of(indices)
    upcast = g.astype(np.float32) if g.dtype.itemsize == 2 else g
    dx = cpu.scatter(cpu.planes(upcast, axes), cpu.planes(indices, axes), s)
    return cpu.image(dx.astype(g.dtype, copy=False), axes, *g.shape[:2])


def scatter_forward(
    g: CudaArray, indices: CudaArray, *, size: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> CudaArray:
    n, c, rows, cols = indices.shape
    last = is_channels_last(g) or is_channels_last(indices)
    memory, dx = image_for(n, c, size[0], size[1], g.dtype, g, last)
    launch(
        _max_scatter_kernel, (cdiv(dx.size, BLOCK),), in_order(g, last), in_order(indices, last), memory, dx.size, c, size[0], size[1], rows, cols,
        *kernel_size, *stride, *padding, *dilation, ACC=window_type(g.dtype), CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(dx), BLOCK=BLOCK,
    )  # fmt: skip
    return dx


def _scatter_rule(gg: Any, indices: Any, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    return ops.max_pool2d_gather(gg, indices, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def _scatter_backward(gg: CudaArray, indices: CudaArray) -> CudaArray:
    return gather_forward(gg, indices)


def gather_shape(x: Any, indices: Any, *, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Spec:
    _of_indices("max_pool2d_gather", tuple(x.shape[2:]), indices, x, (*indices.shape[:2], *x.shape[2:]))
    return Spec(tuple(indices.shape), x.dtype)


def gather_reference(x: np.ndarray, indices: np.ndarray, *, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> np.ndarray:
    """y[n, c, r, q] = x[n, c] at the flat place indices[n, c, r, q]; the windows are only told to its gradient."""
    n, c, h, w = x.shape
    chosen = indices.reshape(n, c, indices.shape[2] * indices.shape[3])
    return np.take_along_axis(x.reshape(n, c, h * w), chosen, 2).reshape(indices.shape)


def gather_forward(x: CudaArray, indices: CudaArray, **_windows: Pair) -> CudaArray:
    n, c, rows, cols = indices.shape
    last = is_channels_last(x) or is_channels_last(indices)
    memory, y = image_for(n, c, rows, cols, x.dtype, x, last)
    launch(_max_gather_kernel, (cdiv(y.size, BLOCK),), x, in_order(indices, last), memory, y.size, c, x.shape[3], rows, cols, *x.strides,
           CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(x, y), BLOCK=BLOCK)  # fmt: skip
    return y


def _gather_rule(g: Any, indices: Any, x_shape: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    return ops.max_pool2d_scatter(g, indices, size=x_shape[2:], kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def _gather_backward(
    g: CudaArray, indices: CudaArray, x_shape: tuple[int, ...], kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> CudaArray:
    return scatter_forward(g, indices, size=x_shape[2:], kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


# ---------------------------------------------------------------- samples


def window_cases(rng: np.random.Generator) -> list[tuple[np.ndarray, dict[str, Any]]]:
    def x(*size: int) -> np.ndarray:
        return rng.permutation(math.prod(size)).reshape(size) / 8.0 - 2  # no two values near each other

    two = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "ceil_mode": False}
    return [
        (x(2, 2, 4, 6), two),
        (x(1, 2, 5, 7), two),  # a row and a column left over
        (x(3, 5, 4, 2).transpose(3, 0, 1, 2), two),  # batch innermost
        (x(2, 4, 5, 3).transpose(0, 3, 1, 2), two),  # channels innermost
        (x(1, 2, 5, 7), two | {"ceil_mode": True}),
        (x(2, 1, 5, 6), two | {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 1)}),  # windows overlap
        (x(1, 1, 7, 6), two | {"kernel_size": (2, 3), "stride": (3, 4), "padding": (0, 1), "ceil_mode": True}),
        (x(3, 5, 9, 5), two | {"stride": (1, 1)}),  # more than one block
        (x(0, 2, 4, 4), two),
    ]


def samples(rng: np.random.Generator) -> list[Sample]:
    cases = [(x, a | {"dilation": (1, 1)}) for x, a in window_cases(rng)]
    cases.append((cases[5][0], cases[5][1] | {"dilation": (1, 3), "stride": (1, 2)}))
    whole = [(rng.integers(-9, 9, (1, 2, 5, 4)), cases[5][1]), (rng.integers(-128, 128, (2, 1, 4, 4)).astype(np.int8), cases[0][1])]
    return [Sample(x, **a) for x, a in cases + whole]


def scatter_samples(rng: np.random.Generator) -> list[Sample]:
    out = []
    for s in samples(rng):
        x, a = s.inputs[0], dict(s.attrs)
        y, index = reference(x, **a)
        del a["ceil_mode"]
        out.append(Sample(rng.standard_normal(y.shape), index, size=x.shape[2:], **a))
    return out


def gather_samples(rng: np.random.Generator) -> list[Sample]:
    out = []
    for s in samples(rng):
        _, index = reference(s.inputs[0], **s.attrs)
        out.append(Sample(s.inputs[0], index, **{k: v for k, v in s.attrs.items() if k != "ceil_mode"}))
    return out


def sizes(rng: np.random.Generator) -> list[Sample]:
    a: dict[str, Any] = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "ceil_mode": False}
    return [Sample(rng.standard_normal((64, 6, 24, 24)), **a), Sample(rng.standard_normal((32, 64, 112, 112)), **a)]


def work(x: Any, **attrs: Any) -> Work:
    """One operation for each cell of each window; the image is read and its maxima or means are written once."""
    out = attrs["kernel_size"]
    s = windows(tuple(x.shape), out, attrs["stride"], attrs["padding"], attrs.get("dilation", (1, 1)), attrs["ceil_mode"])
    y = x.shape[0] * x.shape[1] * s.rows * s.cols
    return Work(y * math.prod(out), (math.prod(x.shape) + y) * x.dtype.itemsize)


op(
    "max_pool2d", reference, shape=shape, forward=forward, outputs=("y", "indices"), rule=rule, backward=backward,
    reference_backward=reference_backward, samples=samples, work=work, layout="images", dtypes=(*FLOATS, "int32", "int64", "uint8"),
    sizes=lambda rng: [Sample(*s.inputs, **s.attrs, dilation=(1, 1)) for s in sizes(rng)],
)  # fmt: skip
op(
    "max_pool2d_scatter", scatter_reference, shape=scatter_shape, forward=scatter_forward, rule=(_scatter_rule, None),
    backward=(_scatter_backward, None), samples=scatter_samples, layout="images",
)  # fmt: skip
op(
    "max_pool2d_gather", gather_reference, shape=gather_shape, forward=gather_forward, rule=(_gather_rule, None),
    backward=(_gather_backward, None), samples=gather_samples, layout="images",
)  # fmt: skip
