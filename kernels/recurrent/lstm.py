"""lstm_sequence: long short-term memory over a whole sequence (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).

A time step is one product of the state with all gates' weights and one pass over the gates; the inputs' product is one, and before this op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.recurrent.samples import sequences, timed_sequences, work_of_steps
from tritensor.kernels.recurrent.time_loop import Cell, Cpu, Gpu, Rows, columns, gradient_rows
from tritensor.kernels.recurrent.time_steps import (
    check_shapes,
    concatenate_rows,
    fill_missing,
    replace_first_rows,
    run_op,
    sigmoid,
    states_before,
    steps,
)
from tritensor.ops.table import Sample, Spec, op, ops


# i, f, o = sigmoid, g = tanh of x + h @ w^T; c' = f c + i g; y = o tanh(c'). Kept: the gates, and the c of before.
@triton.jit
def _forward_cell(xi, xf, xg, xo, hi, hf, hg, ho, c):
    i = maths.sigmoid(xi + hi)
    f = maths.sigmoid(xf + hf)
    g = maths.tanh(xg + hg)
    o = maths.sigmoid(xo + ho)
    after = f * c + i * g
    y = o * maths.tanh(after)
    return i, f, g, o, c, y, after, y


# dc = dc' + dy o (1 - t^2) with t = tanh(c') and dy = gy + dh; the gradients at the gates' arguments, then of the c of before
@triton.jit
def _backward_cell(i, f, g, o, c, gy, dh, dc):
    t = maths.tanh(f * c + i * g)
    up = gy + dh
    inner = dc + up * o * maths.one_minus_square(t)
    return (
        inner * g * (i * (1.0 - i)),
        inner * c * (f * (1.0 - f)),
        inner * i * maths.one_minus_square(g),
        up * t * (o * (1.0 - o)),
        inner * f,
    )


# The same of sizes, with 1 for what is small only because two numbers cancel: what the roundings of the gradients are measured against
@triton.jit
def _bound_cell(i, f, g, o, c, gy, dh, dc):
    up = gy + dh
    inner = dc + up * o
    return inner * i, inner * (c + 1.0) * f, inner * i, up * o, inner * f


_FORWARD, _BACKWARD, _BOUND = Cell(_forward_cell), Cell(_backward_cell), Cell(_bound_cell)


def _shape(x: Any, h: Any, c: Any, w: Any, *, batch_sizes: tuple[int, ...], reverse: bool = False) -> tuple[Spec, ...]:
    size = c.shape[-1] if c.shape else 0
    check_shapes("lstm_sequence", 4, x, w, size, batch_sizes, h=h, c=c)
    rows, state = x.shape[0], Spec((h.shape[0], size), x.dtype)
    return Spec((rows, size), x.dtype), state, state, Spec((rows, 4 * size), x.dtype), Spec((rows, size), x.dtype)


def _over_time(on: Any) -> Callable[..., tuple[Any, ...]]:
    def forward(x: Any, h: Any, c: Any, w: Any, *, batch_sizes: tuple[int, ...], reverse: bool = False) -> tuple[Any, ...]:
        rows, (batch, size), wide = x.shape[0], c.shape, dtypes.accumulator(x.dtype)
        x, first = on.with_dense_rows(x), on.copy(h)
        # a projected state is narrower than what comes out; then there is one step, and its state is not read again
        after_h = first if h.shape[1] == size else on.new((batch, size), x.dtype, x)
        after_c, weights = on.copy(c, wide), on.as_operand(w.transpose((1, 0)))
        y, gates, cells = (on.new((rows, k * size), x.dtype, x) for k in (1, 4, 1))
        product = on.new((batch, 4 * size), wide, x)
        step = on.make_pass(
            _FORWARD, [*columns(gates, 4, True), Rows(cells, True), Rows(y, True), Rows(after_c, False), Rows(after_h, False)],
            [*columns(x, 4, True), *columns(product, 4, False), Rows(after_c, False)],
        )  # fmt: skip
        on.over_time(steps(batch_sizes, reverse), Rows(first, False), weights, Rows(product, False), step, product_first=True)
        return y, after_h, on.round_to(after_c, x.dtype), gates, cells

    return forward


def _reference(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, w: np.ndarray, *, batch_sizes: tuple[int, ...], reverse: bool = False
) -> tuple[np.ndarray, ...]:
    """Outputs (rows, size), the last h and c (batch, size), of gates' inputs x (rows, 4 size), first states h and c and weights w (4 size, size).

    Rows are time steps one after the other, as many rows each as batch_sizes says (see time_steps.py). In each the gates i, f, g, o stand side by side.
    """
    (y, gates, cells), c = (np.zeros((len(x), k * c.shape[1]), x.dtype) for k in (1, 4, 1)), c.copy()
    for start, n in steps(batch_sizes, reverse):
        rows = slice(start, start + n)
        i, f, g, o = np.split(x[rows] + h[:n] @ w.T, 4, 1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        gates[rows], cells[rows] = np.hstack([i, f, g, o]), c[:n]
        c[:n] = f * c[:n] + i * g
        y[rows] = o * np.tanh(c[:n])
        h = y[rows] if n == len(h) else np.concatenate([y[rows], h[n:]])
    return y, h, c, gates, cells


def _back_in_time(on: Any, cell: Cell = _BACKWARD) -> Callable[..., tuple[Any, ...]]:
    def backward(
        g: tuple[Any, ...], h: Any, w: Any, y: Any, gates: Any, cells: Any, batch_sizes: tuple[int, ...], reverse: bool, needs: Sequence[bool]
    ) -> tuple[Any, ...]:  # fmt: skip
        # any may not arrive: who uses the last state alone sends nothing to the outputs
        gy, gh, gc = g
        (rows, size), state, wide = y.shape, (h.shape[0], y.shape[1]), dtypes.accumulator(y.dtype)
        dc, dh = (on.zeros(state, wide, y) if k is None else on.copy(k, wide) for k in (gc, gh))
        # a projected state has another size than what arrives from the outputs
        before = dh if h.shape[1] == size else on.new(h.shape, wide, y)
        dx, weights = on.new((rows, 4 * size), y.dtype, y), on.as_operand(w)
        step = on.make_pass(
            cell, [*columns(dx, 4, True), Rows(dc, False)],
            [*columns(gates, 4, True), Rows(cells, True), gradient_rows(on, gy, state, y), Rows(dh, False), Rows(dc, False)],
        )  # fmt: skip
        on.over_time(steps(batch_sizes, reverse)[::-1], Rows(dx, True), weights, Rows(before, False), step, product_first=False)
        dw = on.weight_gradient(dx, states_before(h, y, batch_sizes, reverse, on.run), w) if needs[3] else None
        return dx, on.round_to(before, y.dtype), on.round_to(dc, y.dtype), dw

    return backward


def _rule(g: Any, x: Any, h: Any, c: Any, w: Any, y: Any, batch_sizes: tuple[int, ...], reverse: bool) -> tuple[Any, ...]:
    """Back through time in our own ops, from the inputs and y alone."""
    size = c.shape[1]
    before = states_before(h, y, batch_sizes, reverse, run_op)
    z = x + ops.matmul(before, ops.permute(w, dims=(1, 0)))
    i, f, o = (ops.sigmoid(z[:, k * size : (k + 1) * size]) for k in (0, 1, 3))
    a = ops.tanh(z[:, 2 * size : 3 * size])
    kept, state = [], c
    for start, n in steps(batch_sizes, reverse):
        at, old = slice(start, start + n), state[:n]
        new = f[at] * old + i[at] * a[at]
        kept.append((at, n, old, ops.tanh(new)))
        state = replace_first_rows(state, new)
    gy, dh, dc = fill_missing(g, (y, c, c))
    parts = []
    for at, n, old, t in reversed(kept):
        up = gy[at] + dh[:n]
        inner = dc[:n] + up * o[at] * ops.one_minus_square(t)
        dz = ops.cat(
            inner * a[at] * (i[at] * (1.0 - i[at])), inner * old * (f[at] * (1.0 - f[at])), inner * i[at] * ops.one_minus_square(a[at]),
            up * t * (o[at] * (1.0 - o[at])), dim=1,
        )  # fmt: skip
        dh, dc = replace_first_rows(dh, ops.matmul(dz, w)), replace_first_rows(dc, inner * f[at])
        parts.append(dz)
    dx = concatenate_rows(*(parts if reverse else parts[::-1]))
    return dx, dh, dc, ops.matmul(ops.permute(dx, dims=(1, 0)), before)


def _gradient_scales(g: tuple[Any, ...], inputs: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """For each gradient the sum of its terms' sizes."""
    y, _, _, gates, cells = (np.abs(k) for k in _reference(*inputs, **attrs))
    sizes = tuple(None if k is None else np.abs(k) for k in g)
    return _back_in_time(Cpu, _BOUND)(sizes, np.abs(inputs[1]), np.abs(inputs[3]), y, gates, cells, **attrs, needs=(True,) * 4)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """As of the others, and a state that is not as large as what comes out, for one step."""
    narrow = rng.normal(size=(2, 12)), rng.normal(size=(2, 2)), rng.normal(size=(2, 3)), rng.normal(size=(12, 2))
    return [*sequences(4, 2)(rng), Sample(*narrow, batch_sizes=(2,), reverse=False, in_c_order=True)]


op(
    "lstm_sequence", _reference, cpu=_over_time(Cpu), shape=_shape, forward=_over_time(Gpu), rule=_rule, backward=_back_in_time(Gpu),
    cpu_backward=_back_in_time(Cpu), outputs=("y", "h_last", "c_last", "gates", "cells"), residuals=("gates", "cells"), samples=_samples,
    sizes=timed_sequences(4, 2), work=lambda x, h, c, w, **attrs: work_of_steps(x, w, attrs["batch_sizes"], c.shape[1], 10, 20),
    borrows=("x", "h", "c", "w", "y"), condition=("measured", _gradient_scales, "stored"), autocast="lower",
)  # fmt: skip
