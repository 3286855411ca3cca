"""Activations in ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tritensor.onnx.element_types import BOOL, FLOAT, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations.arithmetic import as_operands, expm1, log1p


@translates("relu")
def relu(g: Graph, x: Value) -> Any:
    return g.op("Relu", x, shape=x.shape) if is_float(x.dtype) else g.op("Max", x, 0)


@translates("leaky_relu")
def leaky_relu(g: Graph, x: Value, negative_slope: float = 0.01) -> Any:
    return g.op("LeakyRelu", x, alpha=float(negative_slope), shape=x.shape)


@translates("prelu")
def prelu(g: Graph, x: Any, weight: Any) -> Any:
    a, w = as_operands(g, x, weight)
    return g.where(g.op("Greater", a, 0, dtype=BOOL), a, g.op("Mul", w, a))


@translates("silu")
def silu(g: Graph, x: Value) -> Any:
    return g.op("Mul", x, g.op("Sigmoid", x), shape=x.shape)


@translates("elu")
def elu(g: Graph, x: Value, alpha: float = 1.0) -> Any:
    return g.op("Elu", x, alpha=float(alpha), shape=x.shape)


@translates("celu")
def celu(g: Graph, x: Value, alpha: float = 1.0) -> Any:
    """max(x, 0) + min(alpha (e^(x / alpha) - 1), 0); the operator Celu is for float32 alone."""
    bent = g.op("Mul", expm1(g, g.op("Div", g.op("Min", x, 0.0), float(alpha))), float(alpha))
    return g.op("Add", g.op("Max", x, 0.0), g.op("Mul", bent, 1.0))


@translates("gelu")
def gelu(g: Graph, x: Value, approximate: str = "none") -> Any:
    # Gelu came with opset 20
    if g.opset >= 20:
        return g.op("Gelu", x, approximate=approximate, shape=x.shape)
    if approximate == "none":
        return g.op("Mul", g.op("Mul", x, g.op("Add", g.op("Erf", g.op("Mul", x, math.sqrt(0.5))), 1.0)), 0.5, shape=x.shape)
    cube = g.op("Mul", g.op("Mul", x, x), x)
    inner = g.op("Mul", g.op("Add", x, g.op("Mul", cube, 0.044715)), math.sqrt(2.0 / math.pi))
    return g.op("Mul", g.op("Mul", x, g.op("Add", g.op("Tanh", inner), 1.0)), 0.5, shape=x.shape)


def stable_softplus(g: Graph, x: Value) -> Value:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which does not overflow"""
    return g.op("Add", g.op("Max", x, 0.0), log1p(g, g.op("Exp", g.op("Neg", g.op("Abs", x)))))  # type: ignore[no-any-return]


@translates("softplus")
def softplus(g: Graph, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Any:
    t = x if beta == 1 else g.op("Mul", x, float(beta))
    found = stable_softplus(g, t)
    found = found if beta == 1 else g.op("Div", found, float(beta))
    return g.where(g.op("Greater", t, float(threshold), dtype=BOOL), x, found)


@translates("mish")
def mish(g: Graph, x: Value) -> Any:
    return g.op("Mul", x, g.op("Tanh", stable_softplus(g, x)), shape=x.shape)


@translates("log_sigmoid")
def log_sigmoid(g: Graph, x: Value) -> Any:
    return g.op("Neg", stable_softplus(g, g.op("Neg", x)))


@translates("hardsigmoid")
def hardsigmoid(g: Graph, x: Value) -> Any:
    return g.op("Div", g.op("Clip", g.op("Add", x, 3), 0, 6), 6)


@translates("hardswish")
def hardswish(g: Graph, x: Value) -> Any:
    return g.op("HardSwish", x, shape=x.shape) if g.opset >= 14 and is_float(x.dtype) else g.op("Mul", x, hardsigmoid(g, x))


@translates("hardtanh")
def hardtanh(g: Graph, x: Value, low: float = -1.0, high: float = 1.0) -> Any:
    return g.op("Clip", x, low, high, shape=x.shape)


@translates("hardshrink")
def hardshrink(g: Graph, x: Value, limit: float = 0.5) -> Any:
    inside = g.op("LessOrEqual", g.op("Abs", x), float(limit), dtype=BOOL)
    return g.where(inside, g.value(0.0, x), x)


@translates("softshrink")
def softshrink(g: Graph, x: Value, limit: float = 0.5) -> Any:
    """x - clip(x, -limit, limit), and infinity as it is"""
    return g.op("Sub", x, g.op("Clip", x, -float(limit), float(limit)), shape=x.shape)


@translates("threshold")
def threshold(g: Graph, x: Value, threshold: float = 0.0, value: float = 0.0) -> Any:
    return g.where(g.op("LessOrEqual", x, threshold, dtype=BOOL), g.value(value, x), x)


@translates("glu")
def glu(g: Graph, x: Value, dim: int) -> Any:
    axis = dim % x.ndim
    half = x.shape[axis] // 2
    return g.op("Mul", g.slice(x, axis, 0, half), g.op("Sigmoid", g.slice(x, axis, half, x.shape[axis])))


@translates("softmax", kind="Softmax")
@translates("log_softmax", kind="LogSoftmax")
def _softmax(g: Graph, x: Value, dim: int, kind: str) -> Any:
    if not x.ndim:  # the axis of a scalar is none
        return g.op("Reshape", g.op(kind, g.op("Reshape", x, [1]), axis=0), g.ints([]))
    wide = g.cast(x, FLOAT) if x.dtype.itemsize == 2 else x  # sums of exponentials of 16 bits overflow
    return g.cast(g.op(kind, wide, axis=dim % x.ndim, shape=x.shape), x.dtype)


# those that fused ops name
BY_NAME: dict[str, Callable[[Graph, Value], Any]] = {
    "relu": relu, "gelu": gelu, "gelu_tanh": partial(gelu, approximate="tanh"), "silu": silu,
    "sigmoid": lambda g, x: g.op("Sigmoid", x, shape=x.shape), "tanh": lambda g, x: g.op("Tanh", x),
}  # fmt: skip
