"""Losses written op by op: log-probabilities of labels as cross-entropy, a linear map and cross-entropy as the op that holds no logits of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.fusion.graph import Call, Value, Window
from tritensor.fusion.patterns.match import Match, Mismatch
from tritensor.fusion.patterns.softmax import take_largest
from tritensor.fusion.patterns.windows import reshaped, transposed
from tritensor.ground.strides import contiguous_strides
from tritensor.ops.table import registry

NO_LABEL = -(1 << 63)  # what no label is that gather takes
_EACH = {"reduction": "none", "ignore_index": NO_LABEL}
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


def cross_entropy_of_logs(m: Match) -> None:
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
    logs = m.made(gather.inputs[0], "log_softmax")
    (x,) = logs.inputs
    m.ask(gather.inputs[0].shape == x.shape, _is_last(logs.attrs["dim"], x))
    rows, target = _rows(m, gather, x)
    _put(m, [*path, (gather, 0), (logs, 0)], y, rows, target, None, {"reduction": reduction, "ignore_index": NO_LABEL})


def cross_entropy_of_sums(m: Match) -> None:
    """logsumexp(x, -1) - x.gather(-1, label), one a row; and log(sum(exp(z), -1)) - z.gather(-1, label), z = x - max x, in a graph without its gradient.

    A row with an infinite logit is NaN, where by hand it may be infinite.
    """
    total, picked = m.last.inputs
    (y,) = m.last.results
    path, shift = [(m.last, 0)], None
    if m.is_made(total, "add"):
        call = m.made(total, "add")
        path.append((call, 0))
        total, shift = call.inputs
    for name in ("log", "sum", "exp", "sub"):
        path.append((m.made(total, name), 0))
        total = path[-1][0].inputs[0]
    x, top = path[-1][0].inputs
    take_largest(m, top, x)
    gather = m.made(picked, "gather")
    m.ask(
        gather.inputs[0] == (path[-1][0].results[0] if shift is None else x),
        shift is None or shift is top,
        path[-3][0].attrs["dim"] == (len(x.shape) - 1,),
    )
    rows, target = _rows(m, gather, x)
    results = _put_forward(m, y, rows, target, None, _EACH)
    g = m.gradient_of_result(path, len(path) - 2)
    if g is not None:
        m.ask(shift is not None)
        through, down = m.gradient_along(path, g), m.gradient(m.last, 1, g)
        m.ask(down is not None)
        direct = m.gradient(gather, 0, _in_its_shape(m, down))
        joined = m.only_reader(through, "add")
        m.ask(direct in joined.inputs)
        at = m.first_gradient()
        _put_gradient(m, joined.results[0], g, rows, target, None, results, at, _EACH)


def _is_last(dim: int, x: Any) -> bool:
    return dim % len(x.shape) == len(x.shape) - 1


def _rows(m: Match, gather: Call, x: Any) -> tuple[Window, Window]:
    """Rows of logits, and the label that each is asked for."""
    label = gather.inputs[1]
    m.ask(len(x.shape) > 1, _is_last(gather.attrs["dim"], x), label.shape == (*x.shape[:-1], 1), label.dtype == _INT64)
    count = math.prod(x.shape[:-1])
    rows, target = reshaped(x, (count, x.shape[-1])), reshaped(label, (count,))
    if rows is None or target is None:
        raise Mismatch
    return rows, target


def _in_its_shape(m: Match, g: Any) -> Any:
    """A gradient that was given a dim of size 1 again."""
    readers = m.uses.readers.get(g, [])
    if len(readers) == 1 and readers[0].op.name == "pad_view" and math.prod(readers[0].results[0].shape) == math.prod(g.shape):  # type: ignore[union-attr]
        m.take(readers[0])
        return readers[0].results[0]
    return g


def _put(m: Match, path: Sequence[tuple[Call, int]], loss: Any, x: Window | None, target: Any, weight: Any, attrs: dict[str, Any]) -> None:
    """Cross-entropy of logits in the place of a chain that ends at their log_softmax, and its gradient where the graph has that of the chain."""
    if x is None:
        raise Mismatch
    results = _put_forward(m, loss, x, target, weight, attrs)
    g = m.gradient_of_result(path, len(path) - 1)
    if g is not None:
        dx = m.gradient_along(path, g)
        _put_gradient(m, dx, g, x, target, weight, results, m.first_gradient(), attrs)


def _put_forward(m: Match, loss: Any, x: Window, target: Any, weight: Any, attrs: dict[str, Any]) -> tuple[Value, ...]:
    m.ask(weight is None or weight.dtype == x.dtype)
    results = m.put("cross_entropy", x, target, weight, on=loss.device, label_smoothing=0.0, **attrs)
    m.give(loss, reshaped(results[0], loss.shape))
    return results


def _put_gradient(
    m: Match, dx: Any, g: Any, x: Window, target: Any, weight: Any, results: Sequence[Value], at: Call, attrs: dict[str, Any]
) -> None:
    op = registry["cross_entropy"]
    up = reshaped(g, results[0].shape)
    m.ask(up is not None)
    named = {"g": up, "x": x, "target": target, "weight": weight, **dict(zip(op.outputs, results, strict=True)), **attrs}
    named |= {"label_smoothing": 0.0, "needs": (True, False, False)}
    like = x._replace(strides=contiguous_strides(x.shape))
    made = m.put_gradient(op, named, (like, None, None), dx.device, at)
    m.give(dx, reshaped(made[0], dx.shape), at)


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
    from tritensor.kernels.losses.linear_cross_entropy import rows_of_chunk

    m.ask(len(weight.shape) == 2, rows > rows_of_chunk(rows, classes, 0), loss is not None)
    assert loss is not None
    features = reshaped(x, (rows, x.shape[-1]))
    m.ask(features is not None)
    (made, *_) = m.put("linear_cross_entropy", features, weight, target, *bias, on=loss.device, chunk=0, **m.last.attrs)
    if made.dtype != loss.dtype:
        (made,) = m.put("cast", made, on=loss.device, dtype=loss.dtype)
    m.give(loss, made)
