"""gru_sequence: gated recurrent units over a whole sequence (Cho et al. 2014; the candidate as in cuDNN, with the reset gate behind the product)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
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
from tritensor.ops.table import Spec, op, ops, refuse_mixed


# r, z = sigmoid(x + v), v = h @ w^T + b; n = tanh(x + r v); y = n + z (h - n). Kept: r, z, n, and v of n.
@triton.jit
def _forward_cell(xr, xz, xn, vr, vz, vn, h):
    r = maths.sigmoid(xr + vr)
    z = maths.sigmoid(xz + vz)
    n = maths.tanh(xn + r * vn)
    y = n + z * (h - n)
    return r, z, n, vn, y, y


# With dy = gy + what comes through v and what comes past it: the gradients at the x of r, z, n, at the v of r, z, n, and of h past v
@triton.jit
def _backward_cell(r, z, n, vn, h, gy, through, past):
    up = gy + through + past
    dn = up * (1.0 - z) * maths.one_minus_square(n)
    dz = up * (h - n) * (z * (1.0 - z))
    dr = dn * vn * (r * (1.0 - r))
    return dr, dz, dn, dr, dz, dn * r, up * z


# The same of sizes, with 1 for what is small only because two numbers cancel: what the roundings of the gradients are measured against
@triton.jit
def _bound_cell(r, z, n, vn, h, gy, through, past):
    up = gy + through + past
    dz = up * (h + 1.0) * z
    dr = up * (vn + 1.0) * r
    return dr, dz, up, dr, dz, up * r, up * z


_FORWARD, _BACKWARD, _BOUND = Cell(_forward_cell), Cell(_backward_cell), Cell(_bound_cell)


def _shape(x: Any, h: Any, w: Any, b: Any = None, *, batch_sizes: tuple[int, ...], reverse: bool = False) -> tuple[Spec, ...]:
    size = w.shape[0] // 3 if w.shape else 0
    check_shapes("gru_sequence", 3, x, w, size, batch_sizes, h=h)
    if h.shape[1] != size:
        raise ShapeError(f"gru_sequence: h {tuple(h.shape)}, w {tuple(w.shape)}: h's last size must be a third of w's first, {size}")
    if b is not None and tuple(b.shape) != (3 * size,):
        raise ShapeError(f"gru_sequence: w {tuple(w.shape)}, b {tuple(b.shape)}: b must have w's first size, ({3 * size},)")
    refuse_mixed("gru_sequence", ("x", x), ("b", b))
    return Spec((x.shape[0], size), x.dtype), Spec(h.shape, x.dtype), Spec((x.shape[0], 4 * size), x.dtype)


def _over_time(on: Any) -> Callable[..., tuple[Any, ...]]:
    def forward(x: Any, h: Any, w: Any, b: Any = None, *, batch_sizes: tuple[int, ...], reverse: bool = False) -> tuple[Any, ...]:
        rows, (batch, size) = x.shape[0], h.shape
        x, after, weights = on.with_dense_rows(x), on.copy(h), on.as_operand(w.transpose((1, 0)))
        y, kept = (on.new((rows, k * size), x.dtype, x) for k in (1, 4))
        product = on.new((batch, 3 * size), dtypes.accumulator(x.dtype), x)
        step = on.make_pass(
            _FORWARD, [*columns(kept, 4, True), Rows(y, True), Rows(after, False)],
            [*columns(x, 3, True), *columns(product, 3, False), Rows(after, False)],
        )  # fmt: skip
        on.over_time(steps(batch_sizes, reverse), Rows(after, False), weights, Rows(product, False), step, product_first=True, bias=b)
        return y, after, kept

    return forward


def _reference(
    x: np.ndarray, h: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, *, batch_sizes: tuple[int, ...], reverse: bool = False
) -> tuple[np.ndarray, ...]:
    """Outputs (rows, size) and the last h (batch, size), of gates' inputs x (rows, 3 size), a first h, weights w (3 size, size) and their bias b (3 size).

    Rows are time steps one after the other, as many rows each as batch_sizes says (see time_steps.py). In each the gates r, z, n stand side by side.
    """
    state, gates = h.copy(), []
    for start, n in steps(batch_sizes, reverse):
        xr, xz, xn = np.split(x[start : start + n], 3, 1)
        vr, vz, vn = np.split(state[:n] @ w.T + (0 if b is None else b), 3, 1)
        r, z = sigmoid(xr + vr), sigmoid(xz + vz)
        candidate = np.tanh(xn + r * vn)
        state[:n] = candidate + z * (state[:n] - candidate)
        gates.append(np.hstack([state[:n], r, z, candidate, vn]))
    rows = np.concatenate(gates[::-1] if reverse else gates)
    return rows[:, : h.shape[1]], state, rows[:, h.shape[1] :]


def _back_in_time(on: Any, cell: Cell = _BACKWARD) -> Callable[..., tuple[Any, ...]]:
    def backward(
        g: tuple[Any, ...], h: Any, w: Any, y: Any, kept: Any, batch_sizes: tuple[int, ...], reverse: bool, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        # either may not arrive: who uses the last state alone sends nothing to the outputs
        gy, gh = g
        (rows, size), state, wide = y.shape, (h.shape[0], y.shape[1]), dtypes.accumulator(y.dtype)
        # what comes past the product is summed in the wide type over all steps: rounded once, at the end
        past = on.zeros(state, wide, y) if gh is None else on.copy(gh, wide)
        through, before = on.zeros(state, wide, y), states_before(h, y, batch_sizes, reverse, on.run)
        dx, dv, weights = on.new((rows, 3 * size), y.dtype, y), on.new((rows, 3 * size), y.dtype, y), on.as_operand(w)
        step = on.make_pass(
            cell, [*columns(dx, 3, True), *columns(dv, 3, True), Rows(past, False)],
            [
                *columns(kept, 4, True), Rows(on.with_dense_rows(before), True), gradient_rows(on, gy, state, y), Rows(through, False),
                Rows(past, False),
            ],
        )  # fmt: skip
        # the state of before met the weights: its gradient is a product in every step, unlike the weights' own
        on.over_time(steps(batch_sizes, reverse)[::-1], Rows(dv, True), weights, Rows(through, False), step, product_first=False)
        dw = on.weight_gradient(dv, before, w) if needs[2] else None
        # the first state's gradient is what came through the product and what came past it
        dh = on.round_to(on.run("add", through, past), y.dtype) if needs[1] else None
        return dx, dh, dw, on.run("sum", dv, dim=(0,), keepdim=False) if needs[3:] == (True,) else None

    return backward


def _rule(
    g: Any, x: Any, h: Any, w: Any, b: Any, y: Any, batch_sizes: tuple[int, ...], reverse: bool, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """Back through time in our own ops, from the inputs and y alone."""
    size = h.shape[1]
    before = states_before(h, y, batch_sizes, reverse, run_op)
    v = ops.matmul(before, ops.permute(w, dims=(1, 0))) if b is None else ops.linear(before, w, b)
    r, z = (ops.sigmoid(x[:, k * size : (k + 1) * size] + v[:, k * size : (k + 1) * size]) for k in (0, 1))
    vn = v[:, 2 * size :]
    n = ops.tanh(x[:, 2 * size :] + r * vn)
    slope = (1.0 - z) * ops.one_minus_square(n)
    turn, reset = (before - n) * (z * (1.0 - z)), vn * (r * (1.0 - r))
    gy, dh = fill_missing(g, (y, h))
    at_x, at_v = [], []
    for start, rows in reversed(steps(batch_sizes, reverse)):
        at = slice(start, start + rows)
        up = gy[at] + dh[:rows]
        dn = up * slope[at]
        dr, dz = dn * reset[at], up * turn[at]
        at_x.append(ops.cat(dr, dz, dn, dim=1))
        at_v.append(ops.cat(dr, dz, dn * r[at], dim=1))
        dh = replace_first_rows(dh, up * z[at] + ops.matmul(at_v[-1], w))
    dx, dv = (concatenate_rows(*(parts if reverse else parts[::-1])) for parts in (at_x, at_v))
    return dx, dh, ops.matmul(ops.permute(dv, dims=(1, 0)), before), ops.sum(dv, dim=(0,), keepdim=False) if needs[3:] == (True,) else None


def _gradient_scales(g: tuple[Any, ...], inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """For each gradient the sum of its terms' sizes."""
    y, _, kept = (np.abs(k) for k in _reference(*inputs, **attrs))
    sizes = tuple(None if k is None else np.abs(k) for k in g)
    needs = (True, True, True, inputs[3] is not None)
    return _back_in_time(Cpu, _BOUND)(sizes, np.abs(inputs[1]), np.abs(inputs[2]), y, kept, **attrs, needs=needs)


op(
    "gru_sequence", _reference, cpu=_over_time(Cpu), shape=_shape, forward=_over_time(Gpu), rule=_rule, backward=_back_in_time(Gpu),
    cpu_backward=_back_in_time(Cpu), outputs=("y", "h_last", "kept"), residuals=("kept",), samples=sequences(3, biased=(1, 3)),
    sizes=timed_sequences(3, biased=True), work=lambda x, h, w, b=None, **attrs: work_of_steps(x, w, attrs["batch_sizes"], h.shape[1], 8, 20),
    borrows=("x", "h", "w", "b", "y"), condition=("measured", _gradient_scales, "stored"), autocast={"cpu": "widest", "cuda": "lower"},
)  # fmt: skip
