"""Padding, resizing, sampling and patches of images in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.onnx.element_types import FLOAT, is_float
from tritensor.onnx.errors import UnsupportedOperatorError
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.sizes import is_static_shape
from tritensor.onnx.translations.arithmetic import float_kind
from tritensor.onnx.translations.pooling import divide_evenly, reduce_to_one
from tritensor.ops.table import registry as ops


# -- padding
@translates("constant_pad")
def constant_pad(g: Graph, x: Value, sides: Any, value: Any) -> Any:
    return x if not sides else g.op("Pad", x, [*[a for a, _ in sides], *[b for _, b in sides]], g.number(value, x.dtype))


_PAD_MODES = {"reflect": "reflect", "replicate": "edge"}


@translates("edge_pad")
def edge_pad(g: Graph, x: Value, sides: Any, mode: str) -> Any:
    """What is added, then what is cut off."""
    axes = range(2, x.ndim)
    y = x
    if mode == "circular":
        for axis, (before, after) in zip(axes, sides, strict=True):
            n = x.shape[axis]
            # the padding goes round more than once, which two slices cannot give
            if isinstance(n, int) and max(before, after) > n:
                y = g.op("Gather", y, g.const((np.arange(n + before + after) - before) % n, np.int64), axis=axis)
                continue
            parts = [g.slice(y, axis, n - before, n)] if before else []
            parts += [y, *([g.slice(y, axis, 0, after)] if after else [])]
            y = g.op("Concat", *parts, axis=axis) if len(parts) > 1 else y
        return y
    more = [(max(a, 0), max(b, 0)) for a, b in sides]
    if any(max(s) for s in more):
        y = g.op("Pad", y, [0, 0, *[a for a, _ in more], 0, 0, *[b for _, b in more]], None, mode=_PAD_MODES[mode])
    for axis, (before, after) in zip(axes, sides, strict=True):
        if before < 0 or after < 0:
            y = g.slice(y, axis, max(-before, 0), after if after < 0 else np.iinfo(np.int64).max)
    return y


# -- resizing
def _resize_by_matrices(g: Graph, x: Value, size: Any, **how: Any) -> Value:
    """Each axis by its own matrix, which tritensor's op makes of the unit vectors."""
    kind = x.dtype if is_float(x.dtype) else FLOAT
    y = g.cast(x, kind)
    n = x.ndim
    for k, axis in enumerate(range(2, n)):
        cells, out = (g.number_of(s, "the axis that is resized") for s in (x.shape[axis], size[k]))
        if how["mode"] == "area" and cells == out:
            continue
        unit = np.eye(cells, dtype=np.float64 if kind == np.float64 else np.float32)[:, None]
        one = {**how, "size": (out,), "factors": (how["factors"][k],)}
        matrix = np.asarray(ops["resample"].cpu(unit, **one))[:, 0]  # (cells, out)
        last = [*[d for d in range(n) if d != axis], axis]
        y = g.op("MatMul", g.transpose(y, last), g.const(matrix.astype(kind)))
        y = g.transpose(y, [last.index(d) for d in range(n)])
    # bytes are rounded once and kept in range, as tritensor's own resize does
    if kind != x.dtype:
        y = g.op("Clip", g.op("Round", y), 0.0, 255.0)
    return g.cast(y, x.dtype)


@translates("resample")
def resample(g: Graph, x: Value, size: Any, mode: str, align_corners: bool, factors: Any) -> Any:
    if mode == "area":
        x = reduce_to_one(g, "ReduceMean", x, size)
    cells = x.shape[2:]
    if mode == "area":
        if tuple(cells) == tuple(size):
            return x
        window = divide_evenly(cells, size)
        if window is not None:
            return g.cast(g.op("AveragePool", g.cast(x, float_kind(x)), kernel_shape=window, strides=window), x.dtype)
        return _resize_by_matrices(g, x, size, mode=mode, align_corners=align_corners, factors=factors)
    odd = mode.endswith("-aa") or not is_float(x.dtype) or (mode == "cubic" and x.ndim != 4)
    if odd and is_static_shape((*cells, *size)):
        return _resize_by_matrices(g, x, size, mode=mode, align_corners=align_corners, factors=factors)
    if mode.endswith("-aa"):
        g.needs(18, "Resize(antialias=1)")
    return _resize(g, x, size, mode, align_corners, factors)


def _resize(g: Graph, x: Value, size: Any, mode: str, align_corners: bool, factors: Any) -> Value:
    """The operator Resize: by the factors that the user meant, else by sizes."""
    kind = {"nearest": "nearest", "nearest-exact": "nearest"}.get(mode, mode.removesuffix("-aa"))
    how = "asymmetric" if mode == "nearest" else "align_corners" if align_corners and kind != "nearest" else "half_pixel"
    if how == "half_pixel" and mode == "linear":
        how = "pytorch_half_pixel" if any(isinstance(m, int) and m == 1 for m in size) else how
    attrs: dict[str, Any] = {
        "mode": kind, "coordinate_transformation_mode": how, "cubic_coeff_a": -0.75 if kind == "cubic" else None,
        "nearest_mode": {"nearest": "floor", "nearest-exact": "round_prefer_ceil"}.get(mode), "antialias": 1 if mode.endswith("-aa") else None,
    }  # fmt: skip
    wide = g.cast(x, float_kind(x)) if is_float(x.dtype) else x
    halves = [f is not None and not (mode == "nearest" and m in (n, 2 * n)) for f, m, n in zip(factors, size, x.shape[2:], strict=True)]
    if how != "align_corners" and any(halves):
        if not all(halves) and not is_static_shape((*size, *x.shape[2:])):
            raise UnsupportedOperatorError("Resize takes a factor for every axis, or a size for every axis")
        scales = [1.0, 1.0, *[float(f) if h else m / n for f, h, m, n in zip(factors, halves, size, x.shape[2:], strict=True)]]
        y = g.op("Resize", wide, None, g.const(np.array(scales, np.float32)), **attrs)
    else:
        y = g.op("Resize", wide, None, None, [*x.shape[:2], *size], **attrs)
    return g.cast(y, x.dtype)


# -- sampling
@translates("grid_sample")
def grid_sample(g: Graph, x: Value, grid: Value, mode: str, padding_mode: str, align_corners: bool) -> Any:
    g.needs(20 if x.ndim == 5 else 16, f"GridSample of {x.ndim} dimensions")
    name = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode) if g.opset >= 20 else mode
    kind = float_kind(x)
    y = g.op("GridSample", g.cast(x, kind), g.cast(grid, kind), mode=name, padding_mode=padding_mode, align_corners=int(align_corners))
    return g.cast(y, x.dtype)


# -- patches
def _gather_windows(g: Graph, y: Value, axis: int, size: Any, k: int, dilation: int, padding: int, stride: int) -> tuple[Value, Any]:
    """Along an axis, (taps, windows) in its place; and how many windows."""
    count = (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    starts = g.unsqueeze(g.op("Mul", g.range(count), stride), [0])
    at = g.op("Add", starts, g.const(np.arange(k)[:, None] * dilation, np.int64))
    return g.op("Gather", y, at, axis=axis), count


@translates("im2col")
def im2col(g: Graph, x: Value, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """The windows of (N, C, H, W) as columns (N, C kh kw, windows)."""
    (kh, kw), (ph, pw) = kernel_size, padding
    n, c, h, w = x.shape
    y = g.op("Pad", x, [0, 0, ph, pw, 0, 0, ph, pw], g.number(0, x.dtype)) if ph or pw else x
    y, rows = _gather_windows(g, y, 2, h, kh, dilation[0], ph, stride[0])  # (n, c, kh, rows, w)
    y, columns = _gather_windows(g, y, 4, w, kw, dilation[1], pw, stride[1])  # (n, c, kh, rows, kw, columns)
    y = g.op("Transpose", y, perm=[0, 1, 2, 4, 3, 5])
    return g.op("Reshape", y, g.ints([n, c * kh * kw, rows * columns]))


def _add_up_columns(g: Graph, columns: Value, channels: Any, kernel: list[int], outs: Any, sizes: Any, how: dict[str, Any]) -> Value:
    """Columns (N, C taps, windows) as images: a transposed convolution whose weights write each tap at its place."""
    taps, kind = math.prod(kernel), float_kind(columns)
    n = columns.shape[0]
    y = g.op("Reshape", g.cast(columns, kind), g.ints([n * channels, taps, *outs]))
    weight = g.const(np.eye(taps).reshape(taps, 1, *kernel), kind)
    y = g.op("ConvTranspose", y, weight, kernel_shape=kernel, **how)
    return g.cast(g.op("Reshape", y, g.ints([n, channels, *sizes])), columns.dtype)


@translates("col2im")
def col2im(g: Graph, x: Value, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    if not is_float(x.dtype):
        kind = np.dtype(np.float64)
        y = g.cast(x, kind)
        y.shape = x.shape
        return g.cast(col2im(g, y, output_size, kernel_size, dilation, padding, stride), x.dtype)
    outs, extra = [], []
    for size, k, d, p, s in zip(output_size, kernel_size, dilation, padding, stride, strict=True):
        count = (size + 2 * p - d * (k - 1) - 1) // s + 1
        outs.append(count)
        extra.append(size + 2 * p - ((count - 1) * s + d * (k - 1) + 1))
    channels = x.shape[1] // math.prod(kernel_size)
    how = {
        "strides": list(stride),
        "dilations": list(dilation),
        "pads": [*padding, *padding],
        "output_padding": extra if any(extra) else None,
    }
    return _add_up_columns(g, x, channels, list(kernel_size), outs, output_size, how)


@translates("overlap_add")
def overlap_add(g: Graph, x: Value, step: int, length: Any) -> Any:
    """Windows (..., count, size), each `step` after the one before, added up to (..., length)."""
    *lead, count, size = x.shape
    kind = float_kind(x) if is_float(x.dtype) else np.dtype(np.float64)
    size = g.number_of(size, "the windows' length")
    rows = g.op("Reshape", g.cast(x, kind), g.ints([math.prod(lead), count, size]))
    weight = g.const(np.eye(size)[:, None], kind)
    y = g.op("ConvTranspose", g.op("Transpose", rows, perm=[0, 2, 1]), weight, kernel_shape=[size], strides=[step])
    made = (count - 1) * step + size
    if made < length:
        y = g.op("Pad", y, [0, 0, 0, 0, 0, length - made], g.number(0, kind))
    elif made > length:
        y = g.slice(y, 2, 0, length)
    return g.cast(g.op("Reshape", y, g.ints([*lead, length])), x.dtype)
