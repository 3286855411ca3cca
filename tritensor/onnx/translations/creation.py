"""Creation of tensors in ONNX: constants, ranges, triangles, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.onnx import element_types as types
from tritensor.onnx.element_types import BOOL, FLOAT, is_float
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.sizes import varies


@translates("full")
def full(g: Graph, shape: Any, value: Any, dtype: Any, device: Any = None) -> Any:
    return g.full(shape, value, dtype)


@translates("arange")
def arange(g: Graph, start: Any, end: Any, step: Any, dtype: Any, device: Any = None) -> Any:
    """start + i step, i counted as the trace counted."""
    (n,) = g.call.results[0].shape
    kind = np.dtype(dtype)
    if not varies((n, start, step)):
        return g.const(np.arange(n) * step + start, kind)
    wide = np.float64 if is_float(kind) else np.int64
    y = g.cast(g.range(n), wide)
    y = y if step == 1 else g.op("Mul", y, g.number(step, wide))
    y = y if start == 0 else g.op("Add", y, g.number(start, wide))
    return g.cast(y, kind)


@translates("linspace")
def linspace(g: Graph, start: Any, end: Any, steps: Any, dtype: Any, device: Any = None) -> Any:
    i = g.cast(g.range(steps), np.float64)
    last = g.op("Max", g.number(steps - 1, np.float64), 1.0)
    span = g.op("Sub", g.number(end, np.float64), g.number(start, np.float64))
    y = g.op("Add", g.op("Div", g.op("Mul", i, span), last), g.number(start, np.float64))
    return g.cast(y, np.dtype(dtype))


@translates("eye")
def eye(g: Graph, rows: Any, columns: Any, dtype: Any, device: Any = None) -> Any:
    same = g.op("Equal", g.unsqueeze(g.range(rows), [1]), g.unsqueeze(g.range(columns), [0]), dtype=BOOL)
    return g.cast(same, np.dtype(dtype))


@translates("tril", upper=0)
@translates("triu", upper=1)
def _triangle(g: Graph, x: Value, diagonal: int = 0, *, upper: int) -> Any:
    # Trilu came with opset 14
    if g.opset < 14:
        rows, columns = g.range(x.shape[-2]), g.range(x.shape[-1])
        apart = g.op("Sub", g.unsqueeze(columns, [0]), g.unsqueeze(rows, [1]))
        kept = g.op("GreaterOrEqual" if upper else "LessOrEqual", apart, g.number(diagonal, np.int64), dtype=BOOL)
        return g.where(kept, x, g.number(0, x.dtype))
    return g.op("Trilu", x, g.number(diagonal, np.int64), upper=upper, shape=x.shape)


# -- chance: numbers of the runtime that runs the graph, not the trace's
@translates("dropout")
def dropout(g: Graph, x: Value, p: float, seed: Any = None, offset: Any = None) -> Any:
    return g.op("Dropout", x, g.const(np.float32(p)), g.const(np.bool_(True)), shape=x.shape)


@translates("rand", kind="RandomUniform")
@translates("randn", kind="RandomNormal")
def _draw(g: Graph, shape: Any, dtype: Any, *, kind: str, low: float | None = None, high: float | None = None, **other: Any) -> Value:
    numbers = {} if low is None else {"low": low, "high": high}
    if not varies(tuple(shape)):
        return g.cast(_add_node(g, kind, (), {"dtype": types.type_number(FLOAT), "shape": [int(n) for n in shape], **numbers}), dtype)
    like = g.full(shape, 0, FLOAT)
    return g.cast(_add_node(g, f"{kind}Like", (like,), {"dtype": types.type_number(FLOAT), **numbers}), dtype)


def _add_node(g: Graph, kind: str, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
    """A node whose attributes have the names of arguments of `Graph.op`."""
    from onnx import helper

    y = g.op(kind, *inputs, dtype=FLOAT)
    y.node.attribute.extend([helper.make_attribute(k, v) for k, v in attrs.items()])
    return y  # type: ignore[no-any-return]


@translates("randint")
def randint(g: Graph, low: int, high: int, shape: Any, dtype: Any, **other: Any) -> Any:
    u = _draw(g, shape, FLOAT, kind="RandomUniform", low=float(low), high=float(high))
    # float32 may round a number just below `high` up to it
    return g.cast(g.op("Min", g.op("Floor", u), float(high - 1)), dtype)


@translates("randperm")
def randperm(g: Graph, n: Any, dtype: Any, **other: Any) -> Any:
    """The order of as many random numbers."""
    u = _draw(g, (n,), FLOAT, kind="RandomUniform")
    return g.cast(g.op("TopK", u, [n], outputs=2, dtype=(FLOAT, np.int64))[1], dtype)
