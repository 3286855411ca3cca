"""Convolutions and pooling in ONNX, with ceil_mode as padding, since runtimes count windows past the end differently."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tritensor.onnx.element_types import INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations.arithmetic import float_kind


def _overhang(g: Graph, x: Value, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """By how many cells the last window of each axis leaves the padded image."""
    found = []
    for n, out, k, s, p, d in zip(x.shape[2:], g.call.results[0].shape[2:], kernel, stride, padding, dilation, strict=True):
        reach = (out - 1) * s + d * (k - 1) + 1 - (n + 2 * p)
        found.append(
            max(0, reach) if isinstance(reach, int) else 0 if reach <= 0 else g.number_of(reach, "how far windows leave the image")
        )
    return found


def _average_windows(g: Graph, x: Value, kernel: Any, stride: Any, before: Any, after: Any) -> Value:
    """The mean over whole windows of x with zeros around it."""
    if any(before) or any(after):
        x = g.op("Pad", x, [0, 0, *before, 0, 0, *after], g.value(0.0, x))
    return g.op("AveragePool", x, kernel_shape=list(kernel), strides=list(stride))  # type: ignore[no-any-return]


@translates("avg_pool2d")
@translates("avg_pool3d")
def _pool_averages(
    g: Graph, x: Value, *, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:  # fmt: skip
    beyond = _overhang(g, x, kernel_size, stride, padding, (1,) * len(kernel_size)) if ceil_mode else [0] * len(kernel_size)
    wide = g.cast(x, float_kind(x))
    wide.shape = x.shape
    after = [p + b for p, b in zip(padding, beyond, strict=True)]
    if divisor_override is not None:
        y = _average_windows(g, wide, kernel_size, stride, padding, after)
        return g.cast(g.op("Mul", y, math.prod(kernel_size) / divisor_override), x.dtype)
    # without cells past the end the operator divides as PyTorch does
    if not any(beyond):
        y = g.op(
            "AveragePool", wide, kernel_shape=list(kernel_size), strides=list(stride), pads=[*padding, *padding],
            count_include_pad=int(count_include_pad),
        )  # fmt: skip
        return g.cast(y, x.dtype)
    counted = [n + 2 * p if count_include_pad else n for n, p in zip(x.shape[2:], padding, strict=True)]
    ones = g.full((1, 1, *counted), 1, wide.dtype)
    share = _average_windows(
        g, ones, kernel_size, stride, [0] * len(padding) if count_include_pad else padding, beyond if count_include_pad else after
    )
    return g.cast(g.op("Div", _average_windows(g, wide, kernel_size, stride, padding, after), share), x.dtype)


@translates("max_pool2d")
@translates("max_pool3d")
def _pool_maxima(g: Graph, x: Value, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool = False) -> Any:
    beyond = _overhang(g, x, kernel_size, stride, padding, dilation) if ceil_mode else [0] * len(kernel_size)
    kind = float_kind(x) if is_float(x.dtype) else np.dtype(np.float64)
    wide = g.cast(x, kind)
    pads = [*padding, *[p + b for p, b in zip(padding, beyond, strict=True)]]
    indices = g.is_used(1)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel_size, dilation, strict=True)]
    # runtimes refuse a padding as wide as the window
    if not indices and any(p >= r for p, r in zip(pads, [*reach, *reach], strict=True)):
        wide = g.op("Pad", wide, [0, 0, *pads[: len(padding)], 0, 0, *pads[len(padding) :]], g.value(-math.inf, wide))
        pads = [0] * len(pads)
    given: dict[str, Any] = {"kernel_shape": list(kernel_size), "strides": list(stride), "pads": pads, "dilations": list(dilation)}
    if not indices:
        return g.cast(g.op("MaxPool", wide, **given), x.dtype)
    y, at = g.op("MaxPool", wide, **given, outputs=2, dtype=(kind, INT64))
    return g.cast(y, x.dtype), g.op("Mod", at, g.number(math.prod(x.shape[2:]), INT64))  # ONNX counts through the whole batch


def _flatten_planes(g: Graph, x: Value, indices: Value) -> tuple[Value, Value]:
    """x (N, C, *sizes) and indices as rows of a plane each."""
    return g.reshape(x, (*x.shape[:2], math.prod(x.shape[2:]))), g.reshape(indices, (*indices.shape[:2], math.prod(indices.shape[2:])))


@translates("max_pool2d_scatter")
@translates("max_pool3d_scatter")
def _scatter_maxima(g: Graph, x: Value, indices: Value, *, size: Any, **windows: Any) -> Any:
    """x added up at its places in planes of zeros."""
    g.needs(16, "ScatterElements(reduction='add')")
    lead = tuple(x.shape[:2])
    cells = math.prod(size)
    values, at = _flatten_planes(g, x, indices)
    flat = g.op("ScatterElements", g.full((*lead, cells), 0, x.dtype), at, values, axis=2, reduction="add")
    return g.op("Reshape", flat, [*lead, *size])


@translates("max_pool2d_gather")
@translates("max_pool3d_gather")
def _gather_maxima(g: Graph, x: Value, indices: Value, **windows: Any) -> Any:
    values, at = _flatten_planes(g, x, indices)
    return g.op("Reshape", g.op("GatherElements", values, at, axis=2), list(indices.shape))


def divide_evenly(cells: Any, size: Any) -> list[int] | None:
    """The window of each axis where windows of one length divide it; None where they do not. An axis that varies is divided by one window alone."""
    pairs = list(zip(cells, size, strict=True))
    if not all(n == m or (isinstance(n, int) and isinstance(m, int) and n % m == 0) for n, m in pairs):
        return None
    return [1 if n == m else n // m for n, m in pairs]


def reduce_to_one(g: Graph, kind: str, x: Value, size: Any) -> Value:
    """x reduced along the axes that are pooled to one window, which need not be known."""
    axes = [axis for axis, m in enumerate(size, 2) if isinstance(m, int) and m == 1]
    return g.reduce(kind, x, axes, True)


@translates("adaptive_max_pool")
def adaptive_max_pool(g: Graph, x: Value, size: Any) -> Any:
    if not g.is_used(1):
        x = reduce_to_one(g, "ReduceMax", x, size)
    cells = x.shape[2:]
    window = divide_evenly(cells, size)
    if g.is_used(1) and window is not None:
        y, at = g.op("MaxPool", g.cast(x, float_kind(x)), kernel_shape=window, strides=window, outputs=2, dtype=(float_kind(x), INT64))
        return g.cast(y, x.dtype), g.op("Mod", at, math.prod(cells))
    # every window is one cell
    if tuple(cells) == tuple(size) and not g.is_used(1):
        return x
    if window is not None:
        return g.cast(g.op("MaxPool", g.cast(x, float_kind(x)), kernel_shape=window, strides=window), x.dtype)
    table = _cells_of_windows([g.number_of(n, "an axis that is pooled to windows of different lengths") for n in cells], size)
    windows, most = table.shape
    rows = g.op("Gather", g.reshape(x, (*x.shape[:2], math.prod(cells))), g.const(table, np.int64), axis=2)  # (N, C, windows, most)
    y = g.op("Reshape", g.reduce("ReduceMax", rows, [3], False), [*x.shape[:2], *size])
    if not g.is_used(1):
        return y
    at = g.op("ArgMax", rows, axis=3, keepdims=0, dtype=INT64)
    flat = g.op("Add", at, g.const(np.arange(windows) * most, np.int64))
    return y, g.op("Reshape", g.op("Gather", g.const(table.reshape(-1), np.int64), flat, axis=0), [*x.shape[:2], *size])


def _cells_of_windows(cells: Any, size: Any) -> np.ndarray:
    """(windows, the most cells of one): the flat places of each window's cells, the first one again where it has fewer."""
    axes = [[range(k * n // m, -(-(k + 1) * n // m)) for k in range(m)] for n, m in zip(cells, size, strict=True)]
    steps = [math.prod(cells[d + 1 :]) for d in range(len(cells))]
    found = []
    for window in itertools.product(*axes):
        found.append([sum(i * s for i, s in zip(cell, steps, strict=True)) for cell in itertools.product(*window)])
    most = max(len(w) for w in found)
    return np.array([w + w[:1] * (most - len(w)) for w in found])


def single(g: Graph, *xs: Value | None) -> list[Value | None]:
    """Values in a type that ONNX convolves and pools: bfloat16 as float32."""
    return [None if x is None else g.cast(x, float_kind(x)) for x in xs]


def _convolve(
    g: Graph, x: Value, weight: Value, bias: Value | None = None, *, stride: Any, padding: Any, dilation: Any, groups: int = 1
) -> Any:  # fmt: skip
    y = g.op(
        "Conv", *single(g, x, weight, bias), kernel_shape=list(weight.shape[2:]), strides=list(stride), pads=[*padding, *padding],
        dilations=list(dilation), group=groups,
    )  # fmt: skip
    return g.cast(y, x.dtype)


def _convolve_and_clip(g: Graph, x: Value, weight: Value, bias: Value | None = None, **attrs: Any) -> Any:
    y = _convolve(g, x, weight, bias, **attrs)
    return g.op("Relu", y, shape=y.shape)


def _convolve_transposed(
    g: Graph, x: Value, weight: Value, bias: Value | None = None, *, size: Any, stride: Any, padding: Any, dilation: Any, groups: int = 1
) -> Any:  # fmt: skip
    """What is missing to `size` is added at the end of each axis."""
    kernel = weight.shape[2:]
    extra = [
        g.number_of(n - ((m - 1) * s - 2 * p + d * (k - 1) + 1), "the output's padding")
        for n, m, s, p, d, k in zip(size, x.shape[2:], stride, padding, dilation, kernel, strict=True)
    ]
    y = g.op(
        "ConvTranspose", *single(g, x, weight, bias), kernel_shape=list(kernel), strides=list(stride), pads=[*padding, *padding],
        dilations=list(dilation), group=groups, output_padding=extra if any(extra) else None,
    )  # fmt: skip
    return g.cast(y, x.dtype)


for _name in ("conv1d", "conv2d", "conv3d"):
    translates(_name)(_convolve)
    translates(f"{_name}_relu")(_convolve_and_clip)
    translates(f"{_name}_input")(_convolve_transposed)
