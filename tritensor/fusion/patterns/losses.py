"""Losses written op by op: log-probabilities of labels as cross-entropy, a linear map and cross-entropy as the op that holds no logits of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.fusion.graph import Call, Value, Window
from tritensor.fusion.patterns.match import Match, Mismatch
from tritensor.fusion.patterns.windows import reshaped, transposed
from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.losses.linear_cross_entropy import rows_of_chunk
from tritensor.ops.table import registry

NO_LABEL = -(1 << 63)  # what no label is that gather takes
_INT64 = np.dtype(np.int64)


def cross_entropy(m: Match) -> None:
    """nll_loss(log_softmax(x, classes), target, weight): log-probabilities are not rounded to 16 bits on the way."""
    p, target, weight = m.last.inputs
    (loss, *_) = m.last.results
    logs = m.made(p, "log_softmax")
    (x,) = logs.inputs
    dim = logs.attrs["dim"] % len(x.shape)
    if p.shape != x.shape:  # rows of classes, of which there may be more dims
        m.ask(len(p.shape) == 2, dim == len(x.shape) - 1, p.shape[-1] == x.shape[-1])
    else:
        m.ask(dim == min(len(x.shape) - 1, 1))
    _put(m, [(m.last, 0), (logs, 0)], loss, reshaped(x, p.shape), target, weight, m.last.attrs)


def cross_entropy_by_hand(m: Match) -> None:
    """-log_softmax(x, -1).gather(-1, label), one a row, and -mean or -sum of all of these; a label that is no class is an error, as by hand."""
    (y,) = m.last.results
    (x,) = m.last.inputs
    path, reduction = [(m.last, 0)], "none"
    if m.is_made(x, "mean", "sum"):
        call = m.made(x, "mean", "sum")
        path.append((call, 0))
        reduction, x = call.op.name, call.inputs[0]
        m.ask(call.results[0].shape == (), x.dtype == call.results[0].dtype)  # type: ignore[union-attr]
    gather = m.made(x, "gather")
    logs_of, label = gather.inputs
    logs = m.made(logs_of, "log_softmax")
    (x,) = logs.inputs
    last = len(x.shape) - 1
    m.ask(logs_of.shape == x.shape, last > 0, logs.attrs["dim"] % len(x.shape) == last, gather.attrs["dim"] % len(x.shape) == last)
    m.ask(label.shape == (*x.shape[:-1], 1), label.dtype == _INT64)
    rows = math.prod(x.shape[:-1])
    target = reshaped(label, (rows,))
    m.ask(target is not None)
    attrs = {"reduction": reduction, "ignore_index": NO_LABEL}
    _put(m, [*path, (gather, 0), (logs, 0)], y, reshaped(x, (rows, x.shape[-1])), target, None, attrs)


def _put(
    m: Match, path: Sequence[tuple[Call, int]], loss: Value | None, x: Window | None, target: Any, weight: Any, attrs: dict[str, Any]
) -> None:
    """Cross-entropy of logits in the place of a chain that ends at their log_softmax, and its gradient where the graph has that of the chain."""
    if x is None or loss is None:
        raise Mismatch
    m.ask(weight is None or weight.dtype == x.dtype)
    attrs = {**attrs, "label_smoothing": 0.0}
    results = m.put("cross_entropy", x, target, weight, on=loss.device, **attrs)
    g = m.gradient_of_result(path, len(path) - 1)
    if g is not None:
        dx = m.gradient_along(path, g)
        at = m.first_gradient()
        op = registry["cross_entropy"]
        named = {"x": x, "target": target, "weight": weight, **dict(zip(op.outputs, results, strict=True)), **attrs}
        named |= {"g": reshaped(g, results[0].shape), "needs": (True, False, False)}
        m.ask(named["g"] is not None)
        made = m.put_gradient(op, named, (x._replace(strides=contiguous_strides(x.shape)), None, None), loss.device, at)
        m.give(dx, reshaped(made[0], dx.shape), at)
    m.give(loss, reshaped(results[0], loss.shape))


def linear_cross_entropy(m: Match) -> None:
    """cross_entropy(x @ weight^T + bias, labels) of so many rows that the op takes several chunks, in a graph without its gradient.

    With it the logits would be made twice: the op then takes less memory, but more time. They are not rounded to 16 bits on the way.
    """
    logits, target, weights = m.last.inputs
    (loss, *_) = m.last.results
    m.ask(weights is None, target.dtype.kind in "iu", len(logits.shape) == 2)
    call = m.made(logits, "linear", "matmul")
    x, weight, *bias = call.inputs
    if call.op.name == "matmul":
        m.ask(len(weight.shape) == 2)
        weight, bias = transposed(weight), [None]
    rows, classes = logits.shape
    m.ask(len(weight.shape) == 2, rows > rows_of_chunk(rows, classes, 0), loss is not None)
    assert loss is not None
    features = reshaped(x, (rows, x.shape[-1]))
    m.ask(features is not None)
    (made, *_) = m.put("linear_cross_entropy", features, weight, target, *bias, on=loss.device, chunk=0, **m.last.attrs)
    if made.dtype != loss.dtype:
        (made,) = m.put("cast", made, on=loss.device, dtype=loss.dtype)
    m.give(loss, made)
