"""Random programs: the plan gives what the calls give one by one, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as tt
from tests.fusion.graphs import Graph

SMOOTH = ("exp_small", "tanh", "abs", "square", "relu", "gelu")
UNARY = ("exp_small", "tanh", "neg", "abs", "square", "relu", "gelu", "cast", "int", "copy", "full")
BINARY = ("add", "sub", "mul", "maximum", "where", "lt")
FOLDS = ("sum", "mean", "amax", "var")
VIEWS = ("transpose", "reshape", "part", "expand", "unsqueeze")
WHOLE = ("matmul", "softmax", "cumsum", "flip", "cat")
WRITES = ("set", "add_")


def _apply(kind: str, x: Any, y: Any, dim: int, number: float) -> Any:
    """One op on a matrix, and another one of any shape that broadcasts to it or not. What jumps does so where no value comes to lie by itself, as a
    rounding tells on which side it is."""
    if kind in BINARY:
        if x.dtype != y.dtype or tuple(y.shape) not in {tuple(x.shape), (1, *x.shape[1:]), (*x.shape[:-1], 1), ()}:
            y = number
        if kind == "where":
            return tt.where(x > number + 0.00371, x, y)
        return (
            x < number + 0.00371
            if kind == "lt"
            else x * y
            if kind == "mul"
            else x + y
            if kind == "add"
            else x - y
            if kind == "sub"
            else x.clamp(min=number + 0.00371)
        )
    if kind in FOLDS:
        if not x.dtype.is_floating_point or dim >= x.ndim:
            return x
        return getattr(x, kind)(dim, keepdim=number > 0)
    if kind in VIEWS:
        if x.ndim < 2:
            return x.unsqueeze(0) if kind == "unsqueeze" else x
        return {
            "transpose": lambda: x.transpose(0, 1), "reshape": lambda: x.reshape(-1), "part": lambda: x[:, :2], "expand": lambda: x[:, :1].expand(*x.shape),
            "unsqueeze": lambda: x.unsqueeze(1).squeeze(1),
        }[kind]()  # fmt: skip
    if kind in WRITES:
        z = x * 1
        if z.ndim < 2:
            return z.add_(1) if kind == "add_" else z
        if kind == "set":
            z[:, :1] = 2
        else:
            z[:1].add_(z[-1:])
        return z
    if kind in WHOLE:
        if not x.dtype.is_floating_point or x.ndim < 2:
            return x
        return {
            "matmul": lambda: x @ x.transpose(-1, -2), "softmax": lambda: x.softmax(-1), "cumsum": lambda: x.cumsum(0), "flip": lambda: x.flip(0),
            "cat": lambda: tt.cat([x, x * 2], 0)[: x.shape[0]],
        }[kind]()  # fmt: skip
    if kind in SMOOTH and not x.dtype.is_floating_point:
        return x
    return {
        "exp_small": lambda: tt.exp(x * 0.1), "tanh": lambda: tt.tanh(x), "neg": lambda: -x, "abs": lambda: abs(x - 0.00371), "square": lambda: x * x * 0.5,
        "relu": lambda: (x - 0.00371).relu(), "gelu": lambda: tt.nn.functional.gelu(x), "cast": lambda: x.float(),
        "int": lambda: (x.float() * 3 + 0.137).clamp(-9, 9).int(), "copy": lambda: x.clone(),
        "full": lambda: x + tt.full(tuple(x.shape), number, device=x.device),
    }[kind]()  # fmt: skip


steps = st.tuples(
    st.sampled_from((*UNARY, *UNARY, *BINARY, *BINARY, *FOLDS, *VIEWS, *WHOLE, *WRITES)), st.integers(0, 7), st.integers(0, 7), st.integers(0, 1),
    st.floats(-2, 2).map(lambda x: round(x, 2)),
)  # fmt: skip


def _program(written: Any, kept: int, leaves: list[Any], backward: bool) -> Any:
    """Run the steps on the last values; the values that are kept."""
    values = [*leaves]
    for kind, i, j, dim, number in written:
        x, y = values[-1 - i % len(values)], values[-1 - j % len(values)]
        if x.dtype == tt.bool:
            x = x.float()
        if y.dtype == tt.bool:
            y = y.float()
        values.append(_apply(kind, x, y, dim, number))
    made = values[len(leaves) :]
    found = [v for k, v in enumerate(made) if kept >> k & 1] or made[-1:]
    if backward:
        ends = [v for v in found if v.requires_grad]
        if ends:
            sum([(v * v).mean() for v in ends]).backward()  # type: ignore[attr-defined]
            found += [x.grad for x in leaves if x.grad is not None]
    return found


def ask(written: Any, kept: int, sizes: tuple[int, int], seed: int, backward: bool, device: str) -> None:
    """Compare the plan of a random program with its calls."""
    rng = np.random.default_rng(seed)
    leaves = [tt.tensor(rng.normal(size=sizes).astype(np.float32), requires_grad=backward, device=device) for _ in range(2)]
    leaves.append(tt.tensor(rng.normal(size=(1, sizes[1])).astype(np.float32), requires_grad=backward, device=device))
    Graph(lambda: _program(written, kept, leaves, backward)).check(1e-3)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(steps, min_size=2, max_size=14),
    st.integers(0, 2**14 - 1),
    st.tuples(st.integers(1, 4), st.integers(2, 5)),
    st.integers(0, 99),
    st.booleans(),
)
def test_plans_give_what_calls_give(written: Any, kept: int, sizes: tuple[int, int], seed: int, backward: bool) -> None:
    ask(written, kept, sizes, seed, backward, "cpu")


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(
    st.lists(steps, min_size=2, max_size=24),
    st.integers(0, 2**24 - 1),
    st.tuples(st.integers(1, 4), st.integers(2, 5)),
    st.integers(0, 99),
    st.booleans(),
)
def test_many_plans_give_what_calls_give(written: Any, kept: int, sizes: tuple[int, int], seed: int, backward: bool) -> None:
    ask(written, kept, sizes, seed, backward, "cpu")
