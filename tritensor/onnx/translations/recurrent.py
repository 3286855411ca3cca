"""Recurrent nets in ONNX: the operators LSTM, GRU and RNN over a padded batch, and single steps over a packed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.registry import translates
from tritensor.onnx.sizes import Repeated, Varying, VaryingFloat
from tritensor.onnx.tracing.record import Call, Constant, Result
from tritensor.onnx.translations.arithmetic import float_kind

# Where ONNX has the gates of tritensor (i, f, g, o and r, z, n): i, o, f, c and z, r, h
_GATE_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _as_padded(sizes: Any) -> tuple[Any, Any] | None:
    """(steps, rows of each) where all steps have as many; None for a packed batch."""
    if isinstance(sizes, Repeated):
        return sizes.count, sizes.value
    return (len(sizes), sizes[0]) if sizes and all(n == sizes[0] for n in sizes) else None


def _reorder_gates(g: Graph, kind: str, x: Value, size: Any) -> Value:
    """The gates of weights or biases in ONNX's order, with the axis of directions."""
    order = _GATE_ORDER[kind]
    # known weights are put in order once, here, not at each run of the graph
    if x.values is not None and g.fold:
        parts = [x.values[k * size : (k + 1) * size] for k in order]
        return g.const(np.concatenate(parts)[None], name=f"{x.name}.in_order" if x.name.count(".") or "weight" in x.name else "")
    pieces = [g.slice(x, 0, k * size, (k + 1) * size) for k in order]
    y = pieces[0] if len(pieces) == 1 else g.op("Concat", *pieces, axis=0)
    return g.op("Unsqueeze", y, [0])  # type: ignore[no-any-return]


def _find_linear(g: Graph, z: Value) -> tuple[Value, Value, Value | None] | None:
    """(x, weight, bias) where z is a linear layer of x that the graph has just made; so the operator does it itself."""
    call = z.step
    if not isinstance(call, Call) or call.name != "linear":
        return None
    x, w, *rest = [g.value_of(v) for v in call.inputs]
    return x, w, rest[0] if rest else None


def _write_sequence(
    g: Graph, kind: str, z: Value, states: Sequence[Value], weight: Value, bias: Value | None, steps: Any, rows: Any, reverse: bool, **attrs: Any
) -> tuple[Value, ...]:  # fmt: skip
    """The operator over (steps, rows, features): rows of outputs one after the other, and each state's end."""
    size, kept = weight.shape[1], float_kind(z)
    found = _find_linear(g, z)
    gates = len(_GATE_ORDER[kind])
    # the op was given the product, not its factors: a unit matrix stands for the input's weights
    if found is None:
        one = g.const(np.eye(gates * size), kept)
        x, w, b = z, _reorder_gates(g, kind, one, size), None
        features = gates * size
    else:
        x, inner, b = found
        features = inner.shape[1]
        w = _reorder_gates(g, kind, g.cast(inner, kept), size)
    both = None
    if b is not None or bias is not None:
        zero = g.const(np.zeros(gates * size), kept)
        first = zero if b is None else g.cast(b, kept)
        second = zero if bias is None else g.cast(bias, kept)
        halves = [_reorder_gates(g, kind, v, size) for v in (first, second)]
        known = [v.values for v in halves if v.values is not None]
        both = g.const(np.concatenate(known, axis=1)) if len(known) == 2 and g.fold else g.op("Concat", *halves, axis=1)
    sequence = g.reshape(g.cast(x, kept) if x.dtype != kept else x, (steps, rows, features))
    begins = (
        [] if all(_is_zero(v) for v in g.call.inputs[1 : 1 + len(states)]) else [g.op("Unsqueeze", g.cast(v, kept), [0]) for v in states]
    )
    outs = g.op(
        kind, sequence, w, _reorder_gates(g, kind, g.cast(weight, kept), size), both, None, *begins, hidden_size=size,
        direction="reverse" if reverse else "forward", outputs=1 + len(states), dtype=kept, **attrs,
    )  # fmt: skip
    outs[0].shape = (steps, 1, rows, size)
    found_states = []
    for y in outs[1:]:
        y.shape = (1, rows, size)
        found_states.append(g.cast(g.reshape(y, (rows, size)), z.dtype))
    return (g.cast(g.reshape(outs[0], (steps * rows, size)), z.dtype), *found_states)


def _is_zero(x: Any) -> bool:
    """Whether a first state is of zeros alone, which the operators take when none is given."""
    while isinstance(x, Result) and x.call.name in ("index_view", "reshape", "expand", "permute", "copy"):
        x = x.call.inputs[0]
    if isinstance(x, Result):
        return x.call.name == "full" and not isinstance(x.call.attrs["value"], VaryingFloat | Varying) and x.call.attrs["value"] == 0
    return isinstance(x, Constant) and not x.name and not x.values.any()


@translates("lstm_sequence")
def lstm(g: Graph, x: Value, h: Value, c: Value, w: Value, batch_sizes: Any, reverse: bool = False) -> Any:
    size = w.shape[1]
    padded = _as_padded(batch_sizes)
    # a projected state has fewer elements than the cell, for which the operator has no weights
    if padded is not None and c.shape[1] == size and c.shape[0] == padded[1]:
        return _write_sequence(g, "LSTM", x, (h, c), w, None, *padded, reverse)
    return _unroll_steps(g, x, (h, c), batch_sizes, reverse, lambda z, states: _lstm_step(g, z, states[0], states[1], w))


def _lstm_step(g: Graph, z: Value, h: Value, c: Value, w: Value) -> tuple[Value, ...]:
    size = c.shape[1]
    total = g.op("Add", z, g.op("MatMul", h, g.transpose(w, (1, 0))))
    i, f, t, o = (g.slice(total, 1, k * size, (k + 1) * size) for k in range(4))
    after = g.op("Add", g.op("Mul", g.op("Sigmoid", f), c), g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", t)))
    y = g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", after))
    return y, y, after


@translates("gru_sequence")
def gru(g: Graph, x: Value, h: Value, w: Value, b: Value | None = None, *, batch_sizes: Any, reverse: bool = False) -> Any:
    padded = _as_padded(batch_sizes)
    if padded is not None and h.shape[0] == padded[1]:
        return _write_sequence(g, "GRU", x, (h,), w, b, *padded, reverse, linear_before_reset=1)
    return _unroll_steps(g, x, (h,), batch_sizes, reverse, lambda z, states: _gru_step(g, z, states[0], w, b))


def _gru_step(g: Graph, z: Value, h: Value, w: Value, b: Value | None) -> tuple[Value, ...]:
    size = w.shape[1]
    v = g.op("MatMul", h, g.transpose(w, (1, 0)))
    v = v if b is None else g.op("Add", v, b)
    (xr, xz, xn), (vr, vz, vn) = ([g.slice(t, 1, k * size, (k + 1) * size) for k in range(3)] for t in (z, v))
    r, u = g.op("Sigmoid", g.op("Add", xr, vr)), g.op("Sigmoid", g.op("Add", xz, vz))
    n = g.op("Tanh", g.op("Add", xn, g.op("Mul", r, vn)))
    y = g.op("Add", n, g.op("Mul", u, g.op("Sub", h, n)))
    return y, y


@translates("rnn_sequence")
def rnn(g: Graph, x: Value, h: Value, w: Value, batch_sizes: Any, reverse: bool = False, nonlinearity: str = "tanh") -> Any:
    padded = _as_padded(batch_sizes)
    act = "Tanh" if nonlinearity == "tanh" else "Relu"
    if padded is not None and h.shape[0] == padded[1]:
        return _write_sequence(g, "RNN", x, (h,), w, None, *padded, reverse, activations=[act])
    return _unroll_steps(g, x, (h,), batch_sizes, reverse, lambda z, states: _rnn_step(g, z, states[0], w, act))


def _rnn_step(g: Graph, z: Value, h: Value, w: Value, act: str) -> tuple[Value, ...]:
    y = g.op(act, g.op("Add", z, g.op("MatMul", h, g.transpose(w, (1, 0)))))
    return y, y


def _unroll_steps(g: Graph, x: Value, states: tuple[Value, ...], sizes: Any, reverse: bool, step: Any) -> tuple[Value, ...]:
    """Time steps one after the other, each over the rows of the sequences that are so long."""
    if isinstance(sizes, Repeated):
        raise sizes.count.fixed_size_error("is the number of time steps, which a net that is written step by step has fixed")
    ends, parts, start, begins = list(states), [], 0, []
    for n in sizes:
        begins.append((start, n))
        start += n
    rows = states[0].shape[0]
    for begin, n in reversed(begins) if reverse else begins:
        now = [s if n == rows else _set_shape(g.slice(s, 0, 0, n), (n, *s.shape[1:])) for s in ends]
        y, *after = step(g.slice(x, 0, begin, begin + n), now)
        parts.append(y)
        for k, a in enumerate(after):
            whole = a if n == rows else g.op("Concat", a, g.slice(ends[k], 0, n, rows), axis=0)
            ends[k] = _set_shape(whole, states[k].shape)
    ordered = parts[::-1] if reverse else parts
    y = ordered[0] if len(ordered) == 1 else g.op("Concat", *ordered, axis=0)
    return (y, *[g.op("Identity", e) for e in ends])


def _set_shape(x: Value, shape: Any) -> Value:
    x.shape = tuple(shape)
    return x
