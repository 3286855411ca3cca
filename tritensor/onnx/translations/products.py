"""Matrix products, attention and determinants in ONNX."""

from __future__ import annotations

import math
from typing import Any

from tritensor.onnx.element_types import BOOL, FLOAT, INT64
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.translations import activations
from tritensor.onnx.translations.arithmetic import float_kind

_MATMUL_TYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32", "uint64")


@translates("linear")
def linear(g: Graph, x: Value, weight: Value, bias: Value | None = None) -> Any:
    """x @ weight^T + bias"""
    if x.ndim == 2 and x.dtype.kind != "c":
        return g.op("Gemm", x, weight, bias, transB=1)
    y = g.op("MatMul", x, g.transpose(weight, (1, 0)))
    return y if bias is None else g.op("Add", y, bias)


@translates("linear_activation")
def linear_activation(
    g: Graph, x: Value, weight: Value, bias: Value | None = None, residual: Value | None = None, *,
    activation: str = "none", scale: float = 1.0, keep: bool = False,
) -> Any:  # fmt: skip
    """activation(x @ weight^T + bias) * scale + residual"""
    y = linear(g, x, weight, bias)
    if activation != "none":
        y = activations.BY_NAME[activation](g, y)
    if scale != 1:
        y = g.op("Mul", y, float(scale))
    return y if residual is None else g.op("Add", y, residual)


@translates("linear_activation_by_result")
def linear_activation_by_result(g: Graph, x: Value, weight: Value, bias: Value | None = None, *, activation: str = "relu") -> Any:
    """activation(x @ weight^T + bias)"""
    return linear_activation(g, x, weight, bias, activation=activation)


@translates("matmul")
def matmul(g: Graph, a: Value, b: Value) -> Any:
    if a.dtype.name in _MATMUL_TYPES:
        return g.op("MatMul", a, b)
    # integers wrap around: the low bits of the int64 product are the product's
    return g.cast(g.op("MatMul", g.cast(a, INT64), g.cast(b, INT64)), a.dtype)


@translates("add_product")
def add_product(g: Graph, a: Value, b: Value, c: Value | None = None, *, beta: float = 1.0, alpha: float = 1.0) -> Any:
    """beta * c + alpha * (a @ b), of 16-bit floats in float32"""
    kept = a.dtype if a.dtype.itemsize > 2 else FLOAT
    y = g.op("MatMul", g.cast(a, kept), g.cast(b, kept))
    y = y if alpha == 1 else g.op("Mul", y, float(alpha))
    if c is not None:
        c = g.cast(c, kept)
        y = g.op("Add", y, c if beta == 1 else g.op("Mul", c, float(beta)))
    return g.cast(y, a.dtype)


@translates("attention")
def attention(g: Graph, q: Value, k: Value, v: Value, mask: Value | None = None, *, scale: float, causal: bool = False) -> Any:
    """softmax(q k^T scale + mask) v; a query that sees no key gives 0."""
    n = k.ndim
    scores = g.op("MatMul", q, g.transpose(k, (*range(n - 2), n - 1, n - 2)))
    scores = g.op("Mul", scores, float(scale))
    seen = None
    if causal:
        rows, columns = g.range(q.shape[-2]), g.range(k.shape[-2])
        seen = g.op("LessOrEqual", g.unsqueeze(columns, [0]), g.unsqueeze(rows, [1]), dtype=BOOL)
    if mask is not None and mask.dtype == BOOL:
        seen = mask if seen is None else g.op("And", seen, mask)
    elif mask is not None:
        scores = g.op("Add", scores, mask)
    if seen is not None:
        scores = g.where(seen, scores, g.value(-math.inf, scores))
    weights = g.op("Softmax", scores, axis=-1)
    if mask is not None:  # a row of -inf has no softmax
        weights = g.where(g.op("IsNaN", weights, dtype=BOOL), g.value(0.0, weights), weights)
    return g.op("MatMul", weights, v)


@translates("det")
def det(g: Graph, a: Value) -> Any:
    return g.cast(g.op("Det", g.cast(a, float_kind(a))), a.dtype)


@translates("cdist")
def cdist(g: Graph, x1: Value, x2: Value, p: float = 2.0, fast: bool = False) -> Any:
    """The p-norm of every difference of two rows."""
    apart = g.op("Abs", g.op("Sub", g.unsqueeze(x1, [2]), g.unsqueeze(x2, [1])))
    if p == 0:
        return g.reduce("ReduceSum", g.cast(g.op("Not", g.op("Equal", apart, 0.0, dtype=BOOL)), x1.dtype), [3], False)
    if p == math.inf:
        return g.reduce("ReduceMax", apart, [3], False)
    if p in (1, 2):
        return g.reduce("ReduceL1" if p == 1 else "ReduceL2", apart, [3], False)
    return g.op("Pow", g.reduce("ReduceSum", g.op("Pow", apart, float(p)), [3], False), 1.0 / p)
