"""rnn_sequence: the simple recurrent net of Elman (1990) over a whole sequence, with tanh or relu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.recurrent.samples import sequences, timed_sequences, work_of_steps
from tritensor.kernels.recurrent.time_loop import Cell, Cpu, Gpu, Rows, gradient_rows
from tritensor.kernels.recurrent.time_steps import (
    check_shapes,
    concatenate_rows,
    fill_missing,
    replace_first_rows,
    run_op,
    states_before,
    steps,
)
from tritensor.ops.table import Spec, op, ops


# y = tanh(x + v), v = h @ w^T; its gradient at x
@triton.jit
def _tanh_cell(x, v):
    y = maths.tanh(x + v)
    return y, y


@triton.jit
def _tanh_gradient(y, gy, dh):
    return ((gy + dh) * maths.one_minus_square(y),)


# y = max(x + v, 0); its gradient at x, 0 at 0
@triton.jit
def _relu_cell(x, v):
    # written so that NaN stays: a comparison with it is false
    y = maths.where(x + v <= 0.0, maths.zeros(x), x + v)
    return y, y


@triton.jit
def _relu_gradient(y, gy, dh):
    return (maths.where(y <= 0.0, maths.zeros(gy), gy + dh),)


# What the roundings of the gradients are measured against
@triton.jit
def _bound_cell(y, gy, dh):
    return (gy + dh,)


_CELLS = {"tanh": (Cell(_tanh_cell), Cell(_tanh_gradient)), "relu": (Cell(_relu_cell), Cell(_relu_gradient))}
_BOUND = Cell(_bound_cell)


def _shape(x: Any, h: Any, w: Any, *, batch_sizes: tuple[int, ...], reverse: bool = False, nonlinearity: str = "tanh") -> tuple[Spec, ...]:
    if nonlinearity not in _CELLS:
        raise ArgumentError(f"rnn_sequence: nonlinearity {nonlinearity!r} is none of {', '.join(_CELLS)}; give one of these")
    size = w.shape[0] if w.shape else 0
    check_shapes("rnn_sequence", 1, x, w, size, batch_sizes, h=h)
    if h.shape[1] != size:
        raise ShapeError(f"rnn_sequence: h {tuple(h.shape)}, w {tuple(w.shape)}: h's last size must be w's first, {size}")
    return Spec((x.shape[0], size), x.dtype), Spec(h.shape, x.dtype)


def _over_time(on: Any) -> Callable[..., tuple[Any, ...]]:
    def forward(
        x: Any, h: Any, w: Any, *, batch_sizes: tuple[int, ...], reverse: bool = False, nonlinearity: str = "tanh"
    ) -> tuple[Any, ...]:
        (batch, size), x = h.shape, on.with_dense_rows(x)
        after, weights = on.copy(h), on.as_operand(w.transpose((1, 0)))
        y, product = on.new(x.shape, x.dtype, x), on.new((batch, size), dtypes.accumulator(x.dtype), x)
        step = on.make_pass(_CELLS[nonlinearity][0], [Rows(y, True), Rows(after, False)], [Rows(x, True), Rows(product, False)])
        on.over_time(steps(batch_sizes, reverse), Rows(after, False), weights, Rows(product, False), step, product_first=True)
        return y, after

    return forward


def _reference(
    x: np.ndarray, h: np.ndarray, w: np.ndarray, *, batch_sizes: tuple[int, ...], reverse: bool = False, nonlinearity: str = "tanh"
) -> tuple[np.ndarray, ...]:
    """Outputs (rows, size) and the last h (batch, size), of inputs x (rows, size), a first h and weights w (size, size).

    Rows are time steps one after the other, as many rows each as batch_sizes says (see time_steps.py).
    """
    state, y = h.copy(), np.zeros_like(x)
    for start, n in steps(batch_sizes, reverse):
        z = x[start : start + n] + state[:n] @ w.T
        y[start : start + n] = state[:n] = np.tanh(z) if nonlinearity == "tanh" else np.maximum(z, 0)
    return y, state


def _back_in_time(on: Any, cell: Cell | None = None) -> Callable[..., tuple[Any, ...]]:
    """The gradients; with `cell` in place of the nonlinearity's."""

    def backward(
        g: tuple[Any, ...], h: Any, w: Any, y: Any, batch_sizes: tuple[int, ...], reverse: bool, nonlinearity: str, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        gy, gh = g
        batch, wide = h.shape, dtypes.accumulator(y.dtype)
        dh = on.zeros(batch, wide, y) if gh is None else on.copy(gh, wide)
        dx, weights = on.new(y.shape, y.dtype, y), on.as_operand(w)
        given = [Rows(on.with_dense_rows(y), True), gradient_rows(on, gy, batch, y), Rows(dh, False)]
        step = on.make_pass(cell or _CELLS[nonlinearity][1], [Rows(dx, True)], given)
        on.over_time(steps(batch_sizes, reverse)[::-1], Rows(dx, True), weights, Rows(dh, False), step, product_first=False)
        dw = on.weight_gradient(dx, states_before(h, y, batch_sizes, reverse, on.run), w) if needs[2] else None
        return dx, on.round_to(dh, y.dtype), dw

    return backward


def _rule(g: Any, h: Any, w: Any, y: Any, batch_sizes: tuple[int, ...], reverse: bool, nonlinearity: str) -> tuple[Any, ...]:
    """Back through time in our own ops, from y, whose own graph leads to x."""
    before = states_before(h, y, batch_sizes, reverse, run_op)
    # both slopes are functions of the result: nothing but y is kept
    slope = ops.one_minus_square(y) if nonlinearity == "tanh" else ops.cast(ops.gt(y, 0.0), dtype=y._array.dtype)
    gy, dh = fill_missing(g, (y, h))
    parts = []
    for start, n in reversed(steps(batch_sizes, reverse)):
        at = slice(start, start + n)
        parts.append((gy[at] + dh[:n]) * slope[at])
        dh = replace_first_rows(dh, ops.matmul(parts[-1], w))
    dx = concatenate_rows(*(parts if reverse else parts[::-1]))
    return dx, dh, ops.matmul(ops.permute(dx, dims=(1, 0)), before)


def _gradient_scales(g: tuple[Any, ...], inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """For each gradient the sum of its terms' sizes."""
    y = np.abs(_reference(*inputs, **attrs)[0])
    sizes = tuple(None if k is None else np.abs(k) for k in g)
    return _back_in_time(Cpu, _BOUND)(sizes, np.abs(inputs[1]), np.abs(inputs[2]), y, **attrs, needs=(True,) * 3)


op(
    "rnn_sequence", _reference, cpu=_over_time(Cpu), shape=_shape, forward=_over_time(Gpu), rule=_rule, backward=_back_in_time(Gpu),
    cpu_backward=_back_in_time(Cpu), outputs=("y", "h_last"), samples=sequences(1, more=[{"nonlinearity": n} for n in _CELLS]),
    sizes=timed_sequences(1, nonlinearity="tanh"), work=lambda x, h, w, **attrs: work_of_steps(x, w, attrs["batch_sizes"], h.shape[1], 2, 0),
    borrows=("h", "w", "y"), condition=("measured", _gradient_scales, "stored"), autocast="lower",
)  # fmt: skip
