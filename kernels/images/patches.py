"""im2col and col2im: the windows of an image as columns, and columns added up to an image again; each is the other's gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.cpu.blocks import is_half
from tritensor.kernels.parts.grid_indices import long_offsets, tile, tile_of
from tritensor.kernels.parts.indices.sliding_windows import Windows, add_windows, read_windows
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops
from tritensor.ops.table.shape_rules import refuse_kind
from tritensor.ops.table.signature import by_names

Pair = tuple[int, int]
_KINDS = ("bool", "uint", "int", "float", "complex")
_HOW = ("kernel_size", "dilation", "padding", "stride")


def windows_of(name: str, size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Windows:
    """The windows of an image of `size`; refuses sizes that make none."""
    given = f"{name}: size {tuple(size)}, kernel_size {kernel_size}, dilation {dilation}, padding {padding}, stride {stride}"
    if min(*kernel_size, *dilation, *stride) < 1 or min(padding) < 0:
        raise ShapeError(f"{given}: kernel_size, dilation and stride must be at least 1, padding not negative")
    rows, cols = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel_size, dilation, padding, stride, strict=True)
    ]
    if rows < 1 or cols < 1:
        raise ShapeError(f"{given}: the windows, {rows} x {cols}, must be at least 1 x 1")
    return Windows(*map(tuple, (size, (rows, cols), kernel_size, stride, padding, dilation)))


# y[n, c, i, j, r, q] = x[n, c, sh r - ph + dh i, sw q - pw + dw j], 0 outside
@triton.jit(do_not_specialize=["rows", "width", "channels", "windows", "strides"])
def _im2col_kernel(
    x, y, rows, width, channels, windows, strides, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row, q, inside, at = tile_of(rows, width // EVEN * EVEN, LONG_OFFSETS, ROWS, COLS)
    r = row % windows.outs[0]
    tap = row // windows.outs[0]
    j = tap % windows.kernel[1]
    i = tap // windows.kernel[1] % windows.kernel[0]
    image = tap // windows.kernel[1] // windows.kernel[0]
    h = r * windows.stride[0] - windows.padding[0] + i * windows.dilation[0]
    v = q * windows.stride[1] - windows.padding[1] + j * windows.dilation[1]
    there = inside & (h >= 0) & (h < windows.size[0]) & (v >= 0) & (v < windows.size[1])
    from_ = x + (image // channels * strides[0] + image % channels * strides[1] + h * strides[2]) + v * strides[3]
    tl.store(y + at, tl.load(from_, mask=there, other=0), mask=inside)


# y[n, c, h, v] = sum of x[n, c, i, j, r, q] over the windows (r, q) whose cell (i, j) is (h, v)
@triton.jit(do_not_specialize=["rows", "width", "windows"])
def _col2im_kernel(
    x, y, rows, width, windows, ACC: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr
):
    row, v, inside, at = tile_of(rows, width // EVEN * EVEN, LONG_OFFSETS, ROWS, COLS)
    h = row % windows.size[0]
    image = row // windows.size[0]
    acc = tl.zeros((ROWS, COLS), ACC)
    for i in range(windows.kernel[0]):
        top = h + windows.padding[0] - i * windows.dilation[0]
        r = top // windows.stride[0]
        in_rows = inside & (top >= 0) & (top % windows.stride[0] == 0) & (r < windows.outs[0])
        for j in range(windows.kernel[1]):
            left = v + windows.padding[1] - j * windows.dilation[1]
            q = left // windows.stride[1]
            there = in_rows & (left >= 0) & (left % windows.stride[1] == 0) & (q < windows.outs[1])
            from_ = (((image * windows.kernel[0] + i) * windows.kernel[1] + j) * windows.outs[0] + r) * windows.outs[1] + q
            acc += tl.load(x + from_, mask=there, other=0).to(ACC)
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=inside)


def _columns(x: Any, g: Windows) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1] * math.prod(g.kernel), math.prod(g.outs)


def im2col_shape(x: Any, *, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Spec:
    refuse_kind("im2col", x.dtype, _KINDS)
    if len(x.shape) != 4 or 0 in x.shape[1:]:
        raise ShapeError(f"im2col: x {tuple(x.shape)}: x must be (N, C, H, W), only its batch may be empty")
    return Spec(_columns(x, windows_of("im2col", x.shape[2:], kernel_size, dilation, padding, stride)), x.dtype)


def _im2col_reference(x: np.ndarray, *, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> np.ndarray:
    """The windows of x (N, C, H, W) as columns: (N, C * kh * kw, windows), zeros where a window leaves the image."""
    g = windows_of("im2col", x.shape[2:], kernel_size, dilation, padding, stride)  # type: ignore[arg-type]
    return np.moveaxis(read_windows(x, g), -1, 2).reshape(_columns(x, g))


def _im2col_cpu(x: np.ndarray, *, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> np.ndarray:
    g = windows_of("im2col", x.shape[2:], kernel_size, dilation, padding, stride)  # type: ignore[arg-type]
    # a padded copy makes every window a view: no tap is asked whether it is inside
    if any(g.padding):
        padded, inside = _padded(x.shape[:2], g, x.dtype)
        padded[inside] = x
        x = padded
    a, b, *steps = x.strides
    taps, rows = ([n * step for n, step in zip(by, steps, strict=True)] for by in (g.dilation, g.stride))
    windows = np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *g.kernel, *g.outs), (a, b, *taps, *rows), writeable=False)
    return np.array(windows, order="C").reshape(_columns(x, g))


def _padded(lead: Sequence[int], g: Windows, dtype: Any) -> tuple[np.ndarray, tuple[slice, ...]]:
    """Zeros of the size of images (*lead, H, W) with their padding, and where the images are among them."""
    zeros = np.zeros((*lead, *[n + 2 * p for n, p in zip(g.size, g.padding, strict=True)]), dtype)
    return zeros, (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(g.size, g.padding, strict=True)])


def im2col_forward(x: CudaArray, *, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> CudaArray:
    g = windows_of("im2col", x.shape[2:], kernel_size, dilation, padding, stride)  # type: ignore[arg-type]
    y = allocate(_columns(x, g), x.dtype, x)
    t = tile((x.shape[0], y.shape[1], *g.outs))
    launch(_im2col_kernel, (t.programs,), x, y, t.rows, t.width, x.shape[1], g, x.strides, LONG_OFFSETS=long_offsets(x, y), **t.constants)
    return y


def col2im_shape(x: Any, *, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Spec:
    refuse_kind("col2im", x.dtype, _KINDS)
    g = windows_of("col2im", output_size, kernel_size, dilation, padding, stride)
    taps, (rows, cols) = math.prod(g.kernel), g.outs
    if len(x.shape) != 3 or x.shape[1] == 0 or x.shape[1] % taps or x.shape[2] != rows * cols:
        raise ShapeError(
            f"col2im: x {tuple(x.shape)}, output_size {tuple(output_size)}, kernel_size {kernel_size}: x must be (N, C * {taps}, {rows * cols}), "
            f"a column for each of {rows} x {cols} windows"
        )
    return Spec((x.shape[0], x.shape[1] // taps, *output_size), x.dtype)


def _col2im_reference(x: np.ndarray, *, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> np.ndarray:
    """Columns (N, C * kh * kw, windows) added up to images (N, C, *output_size): every cell gets the sum over the windows that hold it."""
    taps = math.prod(kernel_size)
    s = windows_of("col2im", output_size, kernel_size, dilation, padding, stride)
    return add_windows(np.moveaxis(x.reshape(x.shape[0], x.shape[1] // taps, taps, *s.outs), 2, -1), s)


def _col2im_cpu(x: np.ndarray, *, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> np.ndarray:
    g = windows_of("col2im", output_size, kernel_size, dilation, padding, stride)
    columns = x.reshape(x.shape[0], x.shape[1] // math.prod(g.kernel), *g.kernel, *g.outs)
    total, inside = _padded(columns.shape[:2], g, np.float32 if is_half(x.dtype) else x.dtype)
    for tap in np.ndindex(*g.kernel):
        first = [k * d for k, d in zip(tap, g.dilation, strict=True)]
        window: Any = (..., *[slice(a, a + (m - 1) * s + 1, s) for a, m, s in zip(first, g.outs, g.stride, strict=True)])
        cells = total[window]
        np.add(cells, columns[:, :, *tap], out=cells)
    return np.ascontiguousarray(total[inside], x.dtype)


def col2im_forward(x: CudaArray, *, output_size: Pair, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair) -> CudaArray:
    g = windows_of("col2im", output_size, kernel_size, dilation, padding, stride)
    y = allocate((x.shape[0], x.shape[1] // math.prod(g.kernel), *output_size), x.dtype, x)
    x = to_c_order(x)
    # booleans add up as numbers; integers in their own type, exact modulo its width
    small_float = x.dtype.kind not in "iub" and x.dtype.itemsize < 8
    acc = tl.float32 if small_float else tl.int32 if x.dtype.kind == "b" else getattr(tl, x.dtype.name)
    t = tile(tuple(y.shape))
    launch(_col2im_kernel, (t.programs,), x, y, t.rows, t.width, g, ACC=acc, LONG_OFFSETS=long_offsets(x, y), **t.constants)
    return y


def _of_image(col2im: Callable[..., Any]) -> Callable[..., Any]:
    """im2col's gradient by a function of col2im's: to the image's size."""
    return by_names(lambda g, x_shape, **how: col2im(g, output_size=x_shape[2:], **how), "x_shape", *_HOW)


def _cases() -> list[tuple[tuple[int, ...], dict[str, Any]]]:
    plain: dict[str, Any] = {"kernel_size": (2, 2), "dilation": (1, 1), "padding": (0, 0), "stride": (1, 1)}
    return [
        ((2, 2, 3, 4), plain),
        ((1, 3, 4, 6), plain | {"stride": (2, 2)}),  # side by side
        ((1, 1, 5, 7), plain | {"kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 2), "stride": (2, 1)}),
        ((0, 2, 4, 4), plain),
    ]


def im2col_samples(rng: np.random.Generator) -> list[Sample]:
    last = np.moveaxis(rng.standard_normal((2, 3, 4, 2)), -1, 1)
    cases = _cases()
    return [Sample(rng.standard_normal(s), **a) for s, a in cases] + [
        Sample(last, **cases[0][1]),
        Sample(rng.integers(0, 9, (1, 1, 3, 3)), **cases[0][1]),
    ]


def col2im_samples(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal(im2col_shape(np.empty(s), **a).shape), output_size=s[2:], **a) for s, a in _cases()]


def im2col_sizes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal((16, 32, 64, 64)), kernel_size=(3, 3), dilation=(1, 1), padding=(1, 1), stride=(1, 1))]


def _col2im_sizes(rng: np.random.Generator) -> list[Sample]:
    plain: dict[str, Any] = {"kernel_size": (3, 3), "dilation": (1, 1), "padding": (1, 1), "stride": (1, 1)}
    return [Sample(rng.standard_normal((16, 288, 4096)), output_size=(64, 64), **plain)]


def im2col_work(x: Any, **attrs: Pair) -> Work:
    """No arithmetic; the image and the columns once."""
    return Work(0, (math.prod(x.shape) + math.prod(im2col_shape(x, **attrs).shape)) * x.dtype.itemsize)


def _col2im_work(x: Any, **attrs: Any) -> Work:
    """An addition for each element of the columns; the columns and the image once."""
    return Work(math.prod(x.shape), (math.prod(x.shape) + math.prod(col2im_shape(x, **attrs).shape)) * x.dtype.itemsize)


op(
    "im2col", _im2col_reference, cpu=_im2col_cpu, shape=im2col_shape, forward=im2col_forward, rule=_of_image(lambda g, **how: ops.col2im(g, **how)),
    backward=_of_image(col2im_forward), cpu_backward=_of_image(_col2im_cpu), samples=im2col_samples, sizes=im2col_sizes, work=im2col_work,
)  # fmt: skip
op(
    "col2im", _col2im_reference, cpu=_col2im_cpu, shape=col2im_shape, forward=col2im_forward,
    rule=by_names(lambda g, **how: ops.im2col(g, **how), *_HOW), backward=by_names(im2col_forward, *_HOW), cpu_backward=by_names(_im2col_cpu, *_HOW),
    samples=col2im_samples, sizes=_col2im_sizes, work=_col2im_work, condition="absolute",
)  # fmt: skip
