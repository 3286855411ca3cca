"""Losses in ONNX, of single elements and of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tritensor.onnx.element_types import BOOL, INT64, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations.activations import stable_softplus as softplus
from tritensor.onnx.translations.arithmetic import xlogy
from tritensor.onnx.translations.normalization import statistics_type


def _reduce(g: Graph, y: Value, reduction: str, rank: int) -> Value:
    """The elements' losses, their mean or their sum."""
    if reduction == "none":
        return y
    return g.reduce("ReduceMean" if reduction == "mean" else "ReduceSum", y, list(range(rank)), False)


def _enter_pointwise(name: str, formula: Callable[..., Any]) -> None:
    @translates(name)
    def loss(g: Graph, x: Value, target: Value, reduction: str = "mean", **numbers: float) -> Any:
        y = formula(g, x, target, **numbers)
        if y.shape is None:
            y.shape = x.shape
        return _reduce(g, y, reduction, x.ndim)


def _mse(g: Graph, x: Value, t: Value) -> Any:
    d = g.op("Sub", x, t)
    return g.op("Mul", d, d)


def _l1(g: Graph, x: Value, t: Value) -> Any:
    return g.op("Abs", g.op("Sub", x, t))


def _smooth_l1(g: Graph, x: Value, t: Value, beta: float = 1.0) -> Any:
    d = _l1(g, x, t)
    if not beta:
        return d
    return g.where(
        g.op("Less", d, float(beta), dtype=BOOL), g.op("Div", g.op("Mul", g.op("Mul", d, d), 0.5), float(beta)), g.op("Sub", d, 0.5 * beta)
    )  # fmt: skip


def _huber(g: Graph, x: Value, t: Value, delta: float = 1.0) -> Any:
    d = _l1(g, x, t)
    far = g.op("Mul", g.op("Sub", d, 0.5 * delta), float(delta))
    return g.where(g.op("LessOrEqual", d, float(delta), dtype=BOOL), g.op("Mul", g.op("Mul", d, d), 0.5), far)


def _bce(g: Graph, x: Value, t: Value) -> Any:
    """-(t log x + (1 - t) log(1 - x)), logarithms held above -100"""
    on, off = (g.op("Max", g.op("Log", p), -100.0) for p in (x, g.op("Sub", 1.0, x)))
    return g.op("Neg", g.op("Add", g.op("Mul", t, on), g.op("Mul", g.op("Sub", 1.0, t), off)))


def _bce_with_logits(g: Graph, x: Value, t: Value) -> Any:
    return g.op("Add", g.op("Mul", g.op("Sub", 1.0, t), x), softplus(g, g.op("Neg", x)))


def _kl(g: Graph, x: Value, t: Value) -> Any:
    return g.op("Sub", xlogy(g, t, t), g.op("Mul", t, x))


def _kl_of_log_target(g: Graph, x: Value, t: Value) -> Any:
    return g.op("Mul", g.op("Exp", t), g.op("Sub", t, x))


def _soft_margin(g: Graph, x: Value, t: Value) -> Any:
    return softplus(g, g.op("Neg", g.op("Mul", t, x)))


def _poisson_of_log_input(g: Graph, x: Value, t: Value) -> Any:
    return g.op("Sub", g.op("Exp", x), g.op("Mul", t, x))


def _poisson(g: Graph, x: Value, t: Value, eps: float = 1e-8) -> Any:
    return g.op("Sub", x, g.op("Mul", t, g.op("Log", g.op("Add", x, float(eps)))))


for _name, _formula in {
    "mse_loss": _mse, "l1_loss": _l1, "smooth_l1_loss": _smooth_l1, "huber_loss": _huber, "binary_cross_entropy": _bce,
    "bce_with_logits": _bce_with_logits, "kl_div": _kl, "kl_div_of_logs": _kl_of_log_target, "soft_margin_loss": _soft_margin,
    "poisson_nll_of_log": _poisson_of_log_input, "poisson_nll": _poisson,
}.items():  # fmt: skip
    _enter_pointwise(_name, _formula)


# -- of classes
def _align_axis(g: Graph, v: Value, rank: int, axis: int) -> Value:
    """A number for each class, as it broadcasts."""
    return g.op("Reshape", v, [-1 if d == axis else 1 for d in range(rank)])  # type: ignore[no-any-return]


def _pick_labels(
    g: Graph, away: Value, target: Value, weight: Value | None, reduction: str, ignore_index: int, smoothing: float, classes: Any
) -> Value:  # fmt: skip
    """sum q away over the classes, q a smoothed one-hot of the label times the weight; the mean divides by the labels' weights."""
    axis = 1 if away.ndim > 1 else 0
    counts = g.op("Not", g.op("Equal", target, ignore_index, dtype=BOOL))
    label = g.unsqueeze(g.cast(g.where(counts, target, g.value(0, target)), INT64), [axis])
    at = g.squeeze(g.op("GatherElements", away, label, axis=axis), [axis])
    share = g.cast(counts, away.dtype)
    if weight is not None:
        share = g.op("Mul", share, g.op("Gather", weight, g.squeeze(label, [axis]), axis=0))
    loss = g.where(counts, g.op("Mul", at, share), g.value(0.0, away))
    if smoothing:
        spread = away if weight is None else g.op("Mul", away, _align_axis(g, weight, away.ndim, axis))
        spread.shape = away.shape
        whole = g.where(counts, g.reduce("ReduceSum", spread, [axis], False), g.value(0.0, away))
        part = g.op("Div", g.op("Mul", whole, smoothing), g.number(classes, away.dtype))
        loss = g.op("Add", g.op("Mul", loss, 1 - smoothing), part)
    rank = away.ndim - 1
    if reduction == "none":
        return loss
    total = g.reduce("ReduceSum", loss, list(range(rank)), False)
    return g.op("Div", total, g.reduce("ReduceSum", share, list(range(rank)), False)) if reduction == "mean" else total


@translates("cross_entropy")
def cross_entropy(
    g: Graph, x: Value, target: Value, weight: Value | None = None, *, reduction: str = "mean", ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    axis, kind = (1 if x.ndim > 1 else 0), statistics_type(x)
    wide = g.cast(x, kind)
    away = g.op("Neg", g.op("LogSoftmax", wide, axis=axis, shape=x.shape), shape=x.shape)
    w = None if weight is None else g.cast(weight, kind)
    classes = x.shape[axis]
    if not is_float(target.dtype):
        return g.cast(_pick_labels(g, away, target, w, reduction, ignore_index, float(label_smoothing), classes), x.dtype)
    q = g.cast(target, kind)
    if label_smoothing:
        even = g.op("Div", g.value(float(label_smoothing), q), g.number(classes, kind))
        q = g.op("Add", g.op("Mul", q, 1.0 - label_smoothing), even)
    if w is not None:
        q = g.op("Mul", q, _align_axis(g, w, x.ndim, axis))
    rows = g.op("Mul", q, away, shape=x.shape)
    if reduction == "none":
        return g.cast(g.reduce("ReduceSum", rows, [axis], False), x.dtype)
    total = g.reduce("ReduceSum", rows, list(range(x.ndim)), False)
    if reduction == "mean":
        rows_of_classes = math.prod([n for d, n in enumerate(x.shape) if d != axis])
        total = g.op("Div", total, g.number(rows_of_classes, kind))
    return g.cast(total, x.dtype)


@translates("nll_loss")
def nll_loss(g: Graph, x: Value, target: Value, weight: Value | None = None, *, reduction: str = "mean", ignore_index: int = -100) -> Any:
    axis, kind = (1 if x.ndim > 1 else 0), statistics_type(x)
    away = g.op("Neg", g.cast(x, kind), shape=x.shape)
    w = None if weight is None else g.cast(weight, kind)
    return g.cast(_pick_labels(g, away, target, w, reduction, ignore_index, 0.0, x.shape[axis]), x.dtype)
