"""Max pooling over two and three axes, and its gradient, in which each cell gathers from the windows that hold it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.parts.allocation import image_for
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.grid_indices import long_offsets, memory_at, place, place_of, positions, tile, tile_of
from tritensor.kernels.parts.indices.sliding_windows import Sizes, Windows, cells_read, read_windows
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.view_arithmetic import is_channels_last, volume_strides
from tritensor.kernels.pooling import cpu, samples, windows
from tritensor.kernels.pooling.windows import check_windows, pooling_windows
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Spec, Work, op, ops, refuse_kind
from tritensor.ops.table.signature import by_names

_POOLED = ("float", "int", "uint")  # the kinds of types that have a largest element and kernels for it
INT64 = np.dtype(np.int64)


# ---------------------------------------------------------------- kernels


@triton.jit
def _first(low, dilation):
    """The first of low, low + dilation, ... that is not negative."""
    return tl.where(low < 0, low + (dilation - 1 - low) // dilation * dilation, low)


# y[n, c, o] = max over taps t of x[n, c, stride o - padding + dilation t], and the flat place of the first largest; o and t over one to three axes
@triton.jit(do_not_specialize=[*windows.FREE, "dilation", "strides"])
def _max_pool_kernel(
    x, y, index, rows, width, channels, size, outs, stride, padding, dilation, strides,
    ACC: tl.constexpr, LEAST: tl.constexpr, KERNEL: tl.constexpr, UNROLLED: tl.constexpr, DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr,
    UNIT: tl.constexpr, ALIGN: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    width = width // EVEN * EVEN
    row, col, inside, at = tile_of(rows, width, LONG_OFFSETS, ROWS, COLS)
    n, c, f, r, q = place_of(row, col, channels, outs, DEEP, CHANNELS_LAST)
    front, top, left, from_ = windows.first_cell(x, n, c, f, r, q, stride, padding, strides, DEEP, CHANNELS_LAST, UNIT, ALIGN)
    best = tl.full((ROWS, COLS), LEAST, ACC)
    found = (_first(front, dilation[0]) * size[1] + _first(top, dilation[1])) * size[2] + _first(left, dilation[2])
    found -= (front * size[1] + top) * size[2] + left  # places are counted from the window's first cell
    found = tl.broadcast_to(found, (ROWS, COLS))
    for e in range(KERNEL[0] if DEEP else 1):
        in_planes = inside
        if DEEP:
            d = front + e * dilation[0]
            in_planes = inside & (d >= 0) & (d < size[0])
        for i in tl.range(0, KERNEL[1], loop_unroll_factor=UNROLLED[0]):
            h = top + i * dilation[1]
            in_rows = in_planes & (h >= 0) & (h < size[1])
            for j in tl.range(0, KERNEL[2], loop_unroll_factor=UNROLLED[1]):
                v = left + j * dilation[2]
                step = e * dilation[0] * strides[2] + i * dilation[1] * strides[3] + j * dilation[2] * strides[4]
                good = in_rows & (v >= 0) & (v < size[2])
                value = tl.load(from_ + step // ALIGN * ALIGN, mask=good, other=LEAST).to(ACC)
                take = (value > best) | (value != value)
                best = tl.where(take, value, best)
                found = tl.where(take, (e * dilation[0] * size[1] + i * dilation[1]) * size[2] + j * dilation[2], found)
    tl.store(y + at, best.to(y.dtype.element_ty), mask=inside)
    tl.store(index + at, (front * size[1] + top) * size[2] + left + found, mask=inside)


@triton.jit
def _is_tap(cell, DILATION: tl.constexpr):
    """Whether a cell, counted from the first of a window, is one of its taps: what names no tap is the place of a window that sees no cell."""
    if DILATION == 1:
        found = True  # every window sees a cell, and names one of its own
    else:
        found = cell % DILATION == 0
    return found


# dx[n, c, h] = sum of g[n, c, o] over the windows o that hold cell h and chose it
@triton.jit(do_not_specialize=["rows", "width", "channels", "size", "outs", "padding"])
def _max_scatter_kernel(
    g, index, dx, rows, width, channels, size, outs, padding,
    ACC: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr, WINDOWS: tl.constexpr, UNROLLED: tl.constexpr, DEEP: tl.constexpr,
    CHANNELS_LAST: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    width = width // EVEN * EVEN
    row, col, inside, at = tile_of(rows, width, LONG_OFFSETS, ROWS, COLS)
    n, c, d, h, v = place_of(row, col, channels, size, DEEP, CHANNELS_LAST)
    here = (d * size[1] + h) * size[2] + v
    r0, q0 = (h + padding[1]) // STRIDE[1], (v + padding[2]) // STRIDE[2]  # the last windows that hold the cell
    total = tl.zeros((ROWS, COLS), ACC)
    for e in range(WINDOWS[0] if DEEP else 1):
        f = d
        in_planes = inside
        if DEEP:
            f = (d + padding[0]) // STRIDE[0] - e
            in_planes = inside & (f >= 0) & (f < outs[0]) & _is_tap(d + padding[0] - f * STRIDE[0], DILATION[0])
        for i in tl.range(0, WINDOWS[1], loop_unroll_factor=UNROLLED[0]):
            r = r0 - i
            in_rows = in_planes & (r >= 0) & (r < outs[1]) & _is_tap(h + padding[1] - r * STRIDE[1], DILATION[1])
            for j in tl.range(0, WINDOWS[2], loop_unroll_factor=UNROLLED[1]):
                q = q0 - j
                good = in_rows & (q >= 0) & (q < outs[2]) & _is_tap(v + padding[2] - q * STRIDE[2], DILATION[2])
                from_ = memory_at(
                    n, c, f, r, q, width if CHANNELS_LAST else channels, outs, CHANNELS_LAST
                )  # width: what divides it is known
                chosen = tl.load(index + from_, mask=good, other=-1).to(here.dtype)
                arrives = tl.load(g + from_, mask=good, other=0).to(ACC)  # a mask by what is chosen would make the access narrow
                total += tl.where(chosen == here, arrives, 0)
    tl.store(dx + at, total.to(dx.dtype.element_ty), mask=inside)


# y[n, c, o] = x[n, c, place], place = index[n, c, o]; 0 where that is no place, as of a window that sees no cell
@triton.jit(do_not_specialize=["elements", "channels", "size", "outs", "strides"])
def _max_gather_kernel(
    x, index, y, elements, channels, size, outs, strides,
    DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = positions(LONG_OFFSETS, BLOCK)
    inside = at < elements
    n, c, _, _, _ = place(at, channels, outs, DEEP, CHANNELS_LAST)
    chosen = tl.load(index + at, mask=inside, other=0)
    row = chosen // size[2]
    from_ = x + n * strides[0] + c * strides[1] + chosen % size[2] * strides[4]
    if DEEP:
        there = inside & (row // size[1] < size[0])
        from_ += row // size[1] * strides[2]
        row = row % size[1]
    else:
        there = inside & (row < size[1])
    from_ += row * strides[3]
    tl.store(y + at, tl.load(from_, mask=there, other=0), mask=inside)


def _least(dtype: np.dtype) -> float:
    """What every element is at least."""
    # NaN is above -inf too: every comparison with it is made by itself
    return -math.inf if dtypes.is_float(dtype) else int(np.iinfo(dtype).min)


def _refuse_indices(name: str, size: Sizes, indices: Any, x: Any, expected: Sizes, axes: int) -> None:
    if tuple(x.shape) != expected or len(indices.shape) != axes + 2:
        raise ShapeError(f"{name}: {tuple(x.shape)} with indices {tuple(indices.shape)} and size {size}: it must be {expected}")
    refuse_kind(name, x.dtype, _POOLED, "g" if name.endswith("scatter") else "x")
    if indices.dtype != np.int64:
        raise DTypeError(f"{name}: indices {dtypes.of(indices.dtype).name}: they must be int64, as max_pool{axes}d returns them")


# ---------------------------------------------------------------- max pooling


def _shape(axes: int) -> Callable[..., tuple[Spec, Spec]]:
    def shape(x: Any, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> tuple[Spec, Spec]:
        s = check_windows(f"max_pool{axes}d", axes, x, kernel_size, stride, padding, dilation, ceil_mode, _POOLED)
        out = (*x.shape[:2], *s.outs)
        return Spec(out, x.dtype), Spec(out, INT64)

    return shape


def _reference(
    x: np.ndarray, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The largest element of each window and its flat place in its plane or volume; the first of equals, NaN above all, padding below all."""
    s = pooling_windows(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    values, cells = read_windows(x, s), cells_read(s)
    y, index = np.full(values.shape[:-1], _least(x.dtype), x.dtype), np.full(values.shape[:-1], -1)
    for tap in range(cells.shape[-1]):
        value, cell = values[..., tap], cells[..., tap]
        larger = (cell >= 0) & ((index < 0) | (value > y) | (value != value))
        y, index = np.where(larger, value, y), np.where(larger, cell, index)
    return y, index


def cpu_forward(x: np.ndarray, *, ceil_mode: bool = False, **sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    s = pooling_windows(x.shape, **sizes, ceil_mode=ceil_mode)
    axes = cpu.layout_of(x)
    y, index = cpu.largest(cpu.as_planes(upcast(x), axes), s)
    return cpu.as_image(y, axes, x), cpu.as_image(index, axes, x, INT64)


def forward(x: CudaArray, *, ceil_mode: bool, **sizes: Sizes) -> tuple[CudaArray, CudaArray]:
    s = pooling_windows(x.shape, **sizes, ceil_mode=ceil_mode)
    last, out = is_channels_last(x), (*x.shape[:2], *s.outs)
    memory, y = image_for(out, x.dtype, x, last)
    places, index = image_for(out, INT64, x, last)
    t, three = tile(out, last), s.three()
    launch(
        _max_pool_kernel, (t.programs,), x, memory, places, t.rows, t.width, x.shape[1], three.size, three.outs, three.stride, three.padding,
        three.dilation, volume_strides(x), ACC=windows.window_type(x.dtype), LEAST=_least(x.dtype), KERNEL=three.kernel,
        UNROLLED=windows.unrolled(three.kernel), DEEP=len(s.size) == 3, CHANNELS_LAST=last, **windows.inner_strides(x, last),
        LONG_OFFSETS=long_offsets(x, y), **t.constants,
    )  # fmt: skip
    return y, index


# ---------------------------------------------------------------- its gradient, a scatter by indices, and the gradient of that, a gather


def _scatter_shape(axes: int) -> Callable[..., Spec]:
    def shape(g: Any, indices: Any, *, size: Sizes, **_windows: Sizes) -> Spec:
        _refuse_indices(f"max_pool{axes}d_scatter", size, indices, g, tuple(indices.shape), axes)
        return Spec((*g.shape[:2], *size), g.dtype)

    return shape


def _chosen(indices: np.ndarray, s: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Which windows see a cell, and their indices by plane, (N, C, windows); 0 in place of those of the others, which name none."""
    seen = np.any(cells_read(s) >= 0, -1)
    return seen, np.where(seen, indices, 0).reshape(*indices.shape[:2], seen.size)  # type: ignore[return-value]


def _scatter_reference(
    g: np.ndarray, indices: np.ndarray, *, size: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> np.ndarray:
    """dx (N, C, *size): each cell gets the sum of g over the windows whose index names it. `indices` are max pooling's of the same windows."""
    seen, chosen = _chosen(indices, Windows(tuple(size), indices.shape[2:], kernel_size, stride, padding, dilation))
    dx = np.zeros((*g.shape[:2], math.prod(size)), g.dtype)
    at: Any = (*np.indices(g.shape[:2])[..., None], chosen)
    np.add.at(dx, at, np.where(seen, g, 0).reshape(chosen.shape))  # type: ignore[index]
    return dx.reshape(*g.shape[:2], *size)


def cpu_scatter(
    g: np.ndarray, indices: np.ndarray, *, size: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> np.ndarray:
    s = Windows(tuple(size), indices.shape[2:], tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))
    axes = cpu.layout_of(indices)
    return cpu.as_image(cpu.scatter(cpu.as_planes(upcast(g), axes), cpu.as_planes(indices, axes), s), axes, g)


def _scatter(
    g: CudaArray, indices: CudaArray, *, size: Sizes, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> CudaArray:
    last = is_channels_last(g) or is_channels_last(indices)
    s = Windows(tuple(size), tuple(indices.shape[2:]), kernel_size, stride, padding, dilation)
    memory, dx = image_for((*indices.shape[:2], *size), g.dtype, g, last)
    t, three, held = tile(dx.shape, last), s.three(), windows.reach(s)
    launch(
        _max_scatter_kernel, (t.programs,), windows.to_layout(g, last), windows.to_layout(indices, last), memory, t.rows, t.width, indices.shape[1],
        three.size, three.outs, three.padding, ACC=windows.window_type(g.dtype), STRIDE=three.stride, DILATION=three.dilation, WINDOWS=held,
        UNROLLED=windows.unrolled(held), DEEP=len(size) == 3, CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(dx, indices), **t.constants,
    )  # fmt: skip
    return dx


def _gather_shape(axes: int) -> Callable[..., Spec]:
    def shape(x: Any, indices: Any, **_windows: Sizes) -> Spec:
        _refuse_indices(f"max_pool{axes}d_gather", tuple(x.shape[2:]), indices, x, (*indices.shape[:2], *x.shape[2:]), axes)
        return Spec(tuple(indices.shape), x.dtype)

    return shape


def _gather_reference(
    x: np.ndarray, indices: np.ndarray, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> np.ndarray:
    """y[n, c, o] = x[n, c] at the flat place indices[n, c, o], 0 where the window sees no cell."""
    seen, chosen = _chosen(indices, Windows(x.shape[2:], indices.shape[2:], kernel_size, stride, padding, dilation))
    y = np.take_along_axis(x.reshape(*x.shape[:2], math.prod(x.shape[2:])), chosen, 2)
    return np.where(seen, y.reshape(indices.shape), 0)


def cpu_gather(x: np.ndarray, indices: np.ndarray, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> np.ndarray:
    """What _gather_reference gives."""
    s = Windows(x.shape[2:], indices.shape[2:], tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))
    planes = indices.shape[0] * indices.shape[1]
    unseeing = cpu.blind(s)
    at = indices if unseeing is None else np.where(unseeing[..., 0], 0, indices)
    flat = x.reshape(planes, math.prod(s.size))
    y = flat[np.arange(planes)[:, None], at.reshape(planes, math.prod(s.outs))].reshape(indices.shape)
    return y if unseeing is None else np.where(unseeing[..., 0], x.dtype.type(0), y)


def _gather(x: CudaArray, indices: CudaArray, **_windows: Sizes) -> CudaArray:
    last, lead = is_channels_last(x) or is_channels_last(indices), (1,) * (5 - len(x.shape))
    memory, y = image_for(tuple(indices.shape), x.dtype, x, last)
    launch(_max_gather_kernel, (cdiv(y.size, windows.BLOCK),), x, windows.to_layout(indices, last), memory, y.size, x.shape[1], (*lead, *x.shape[2:]),
           (*lead, *indices.shape[2:]), volume_strides(x),
           DEEP=not lead, CHANNELS_LAST=last, LONG_OFFSETS=long_offsets(x, y), BLOCK=windows.BLOCK)  # fmt: skip
    return y


def work(x: Any, **attrs: Any) -> Work:
    """One operation for each cell of each window; the image is read and its maxima or means are written once."""
    s = pooling_windows(tuple(x.shape), attrs["kernel_size"], attrs["stride"], attrs["padding"], attrs.get("dilation"), attrs["ceil_mode"])
    y = x.shape[0] * x.shape[1] * math.prod(s.outs)
    return Work(y * math.prod(s.kernel), (math.prod(x.shape) + y) * x.dtype.itemsize)


_HOW = ("kernel_size", "stride", "padding", "dilation")


def _gradient(scatter: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient to an x of any size by a function that scatters g into x."""
    return by_names(lambda g, indices, x_shape, **how: scatter(g, indices, size=x_shape[2:], **how), "indices", "x_shape", *_HOW)


def _register(axes: int) -> None:
    name, pooled = f"max_pool{axes}d", samples.largest(axes, _reference)

    def scatter(g: Any, indices: Any, **how: Any) -> Any:
        return (ops.max_pool2d_scatter if axes == 2 else ops.max_pool3d_scatter)(g, indices, **how)

    def gather(gg: Any, indices: Any, **how: Any) -> Any:
        return (ops.max_pool2d_gather if axes == 2 else ops.max_pool3d_gather)(gg, indices, **how)

    op(
        name, _reference, cpu=cpu_forward, shape=_shape(axes), forward=forward, outputs=("y", "indices"),
        rule=_gradient(lambda g, *given, **how: scatter(g[0], *given, **how)), backward=_gradient(lambda g, *given, **how: _scatter(g[0], *given, **how)),
        cpu_backward=_gradient(lambda g, *given, **how: cpu_scatter(g[0], *given, **how)), samples=pooled.forward, work=work, layout="images",
        dtypes=(*FLOATS, "int32", "int64", "uint8"), sizes=samples.sizes(axes, {"dilation": (1,) * axes}),
    )  # fmt: skip
    op(
        f"{name}_scatter", _scatter_reference, cpu=cpu_scatter, shape=_scatter_shape(axes), forward=_scatter,
        rule=(by_names(gather, "indices", *_HOW), None), backward=(lambda gg, indices: _gather(gg, indices), None),
        cpu_backward=(by_names(cpu_gather, "indices", *_HOW), None), samples=pooled.scatter, layout="images",
    )  # fmt: skip
    op(
        f"{name}_gather", _gather_reference, cpu=cpu_gather, shape=_gather_shape(axes), forward=_gather, rule=(_gradient(scatter), None),
        backward=(_gradient(_scatter), None), cpu_backward=(_gradient(cpu_scatter), None), samples=pooled.gather, layout="images",
    )  # fmt: skip


for _axes in (2, 3):
    _register(_axes)
