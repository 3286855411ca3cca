"""Normalizations in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.onnx.element_types import FLOAT
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations.activations import BY_NAME
from tritensor.onnx.translations.arithmetic import float_kind


def _align_channels(g: Graph, x: Value, v: Value) -> Value:
    """A number for each channel, as it broadcasts over (N, C, ...)."""
    return g.op("Reshape", v, [1, -1, *(1,) * (x.ndim - 2)])  # type: ignore[no-any-return]


def _scale_and_shift(g: Graph, y: Value, weight: Value | None, bias: Value | None) -> Value:
    y = y if weight is None else g.op("Mul", y, g.cast(weight, y.dtype))
    return y if bias is None else g.op("Add", y, g.cast(bias, y.dtype))


def statistics_type(x: Value) -> Any:
    """The type that means are taken in: float32 for 16 bits."""
    return np.dtype(np.float64) if x.dtype == np.float64 else FLOAT


def center(g: Graph, x: Value, axes: list[int]) -> tuple[Value, Value, Value]:
    """x - mean, mean and variance (of n) over axes."""
    mean = g.reduce("ReduceMean", x, axes, True)
    apart = g.op("Sub", x, mean, shape=x.shape)
    return apart, mean, g.reduce("ReduceMean", g.op("Mul", apart, apart, shape=x.shape), axes, True)


def _divide_by_deviation(g: Graph, apart: Value, variance: Value, eps: float) -> Value:
    return g.op("Div", apart, g.op("Sqrt", g.op("Add", variance, float(eps))), shape=apart.shape)  # type: ignore[no-any-return]


@translates("batch_norm")
def batch_norm(g: Graph, x: Value, weight: Value | None = None, bias: Value | None = None, *, eps: float = 1e-5) -> Any:
    """By the batch's own mean and variance, which are outputs as well."""
    wide = g.cast(x, statistics_type(x))
    wide.shape = x.shape
    axes = [d for d in range(x.ndim) if d != 1]
    apart, mean, variance = center(g, wide, axes)
    y = _divide_by_deviation(g, apart, variance, eps)
    w, b = (None if v is None else _align_channels(g, x, v) for v in (weight, bias))
    y = _scale_and_shift(g, y, w, b)
    kinds = [r.dtype for r in g.call.results]
    flat = [g.cast(g.squeeze(v, axes), k) for v, k in zip((mean, variance), kinds[1:], strict=True)]
    return g.cast(y, x.dtype), *flat


@translates("batch_norm_by")
def batch_norm_by(
    g: Graph, x: Value, mean: Value, var: Value, weight: Value | None = None, bias: Value | None = None, *, eps: float = 1e-5
) -> Any:  # fmt: skip
    (channels,) = mean.shape
    kind = float_kind(x)
    scale = g.full((channels,), 1, mean.dtype) if weight is None else weight
    shift = g.full((channels,), 0, mean.dtype) if bias is None else bias
    given = [g.cast(v, kind) for v in (x, scale, shift, mean, var)]
    return g.cast(g.op("BatchNormalization", *given, epsilon=float(eps)), x.dtype)


@translates("group_norm")
def group_norm(g: Graph, x: Value, weight: Value | None = None, bias: Value | None = None, *, groups: int, eps: float = 1e-5) -> Any:
    """Each group of channels is one row, normalized as an instance."""
    wide = g.cast(x, float_kind(x))
    # ONNX's own GroupNormalization is of opset 21, and had other scales before
    rows = g.op("Reshape", wide, [0, groups, -1])
    ones, zeros = g.const(np.ones(groups), wide.dtype), g.const(np.zeros(groups), wide.dtype)
    y = g.op("InstanceNormalization", rows, ones, zeros, epsilon=float(eps))
    y = g.reshape(y, x.shape)
    w, b = (None if v is None else _align_channels(g, x, v) for v in (weight, bias))
    return g.cast(_scale_and_shift(g, y, w, b), x.dtype)


def _add_and_activate(g: Graph, y: Value, x: Value, residual: Value | None, activation: str) -> Value:
    if residual is not None:
        y = g.op("Add", y, residual, shape=x.shape)
    return BY_NAME[activation](g, y)  # type: ignore[no-any-return]


@translates("batch_norm_activation")
def batch_norm_activation(
    g: Graph, x: Value, weight: Value, bias: Value, residual: Value | None = None, *, activation: str = "relu", eps: float = 1e-5
) -> Any:
    """activation(batch_norm(x) + residual)"""
    y, *kept = batch_norm(g, x, weight, bias, eps=eps)
    return _add_and_activate(g, y, x, residual, activation), *kept


@translates("batch_norm_by_activation")
def batch_norm_by_activation(
    g: Graph, x: Value, mean: Value, var: Value, weight: Value, bias: Value, residual: Value | None = None, *,
    activation: str = "relu", eps: float = 1e-5,
) -> Any:  # fmt: skip
    """activation((x - mean) / sqrt(var + eps) weight + bias + residual)"""
    return _add_and_activate(g, batch_norm_by(g, x, mean, var, weight, bias, eps=eps), x, residual, activation)


@translates("group_norm_activation")
def group_norm_activation(
    g: Graph, x: Value, weight: Value, bias: Value, *, groups: int, activation: str = "silu", eps: float = 1e-5
) -> Any:
    """activation(group_norm(x))"""
    return _add_and_activate(g, group_norm(g, x, weight, bias, groups=groups, eps=eps), x, None, activation)


@translates("layer_norm")
def layer_norm(g: Graph, x: Value, weight: Value | None = None, bias: Value | None = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    if g.opset >= 17 and x.dtype != np.float64 and axes:  # its inner sums are float32
        shape, wide = x.shape[x.ndim - axes :], g.cast(x, FLOAT)
        scale = g.full(shape, 1, FLOAT) if weight is None else g.cast(weight, FLOAT)
        shift = None if bias is None else g.cast(bias, FLOAT)
        return g.cast(g.op("LayerNormalization", wide, scale, shift, axis=-axes, epsilon=float(eps), shape=x.shape), x.dtype)
    wide = g.cast(x, statistics_type(x))
    wide.shape = x.shape
    apart, _, variance = center(g, wide, list(range(x.ndim - axes, x.ndim)))
    return g.cast(_scale_and_shift(g, _divide_by_deviation(g, apart, variance, eps), weight, bias), x.dtype)


@translates("add_layer_norm")
def add_layer_norm(g: Graph, x: Value, residual: Value, weight: Value | None = None, bias: Value | None = None, **attrs: Any) -> Any:
    total = g.op("Add", x, residual)
    return layer_norm(g, total, weight, bias, **attrs), total


@translates("add_rms_norm")
def add_rms_norm(g: Graph, x: Value, residual: Value, weight: Value | None = None, **attrs: Any) -> Any:
    total = g.op("Add", x, residual)
    return rms_norm(g, total, weight, **attrs), total


@translates("rms_norm")
def rms_norm(g: Graph, x: Value, weight: Value | None = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    """x / sqrt(mean(x^2) + eps) weight"""
    wide = g.cast(x, statistics_type(x))
    square = g.op("Mul", wide, wide, shape=x.shape)
    power = g.reduce("ReduceMean", square, list(range(x.ndim - axes, x.ndim)), True)
    return g.cast(_scale_and_shift(g, _divide_by_deviation(g, wide, power, eps), weight, None), x.dtype)
