"""Tapes at random, over types, layouts and broadcasts: fused, step by step, and over arrays that lie otherwise they give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.tapes.sample_tapes import (
    BINARY,
    BOOL,
    COMPARED,
    F32,
    F64,
    FLOATS,
    I32,
    I64,
    ROUNDING,
    UNARY,
    WHOLE,
    fold,
    forget,
    machine,
    same_bits,
    values,
)
from tritensor.kernels.elementwise import selection
from tritensor.kernels.parts import reduction
from tritensor.kernels.parts.elementwise import unchanged
from tritensor.kernels.parts.tapes import on_cpu
from tritensor.kernels.parts.tapes.tape import Fold, Step, Tape
from tritensor.kernels.reductions import extrema
from tritensor.llvm import compiler

TYPES = [*FLOATS, BOOL, I32, I64]


@st.composite
def tapes(draw: Any, rows: bool) -> tuple[Tape, list[str]]:
    """A tape, and how each of its inputs lies: a tile, one number for each row or column, a number."""
    inputs = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))
    lies = ["tile", *[draw(st.sampled_from(["tile", "tile", "row", "column", "slice", "number", "turned"])) for _ in inputs[1:]]]
    numbers = draw(st.lists(st.sampled_from([F32, F64, I64]), max_size=2))
    known = [*inputs, *numbers]
    steps: list[Step | Fold] = []
    tile = [lie in ("tile", "slice", "turned", "column") for lie in lies] + [False] * len(numbers)
    for _ in range(draw(st.integers(1, 7))):
        at = draw(st.integers(0, len(known) - 1))
        d = known[at]
        partners = [k for k, t in enumerate(known) if t == d and not len(inputs) <= k < len(inputs) + len(numbers)] or [at]
        kind = draw(st.sampled_from(["cast", "unary", "binary", "binary", "compare", "where", *["fold"] * (2 * rows)]))
        wide = d == F64
        if kind == "fold" and d in FLOATS:
            steps.append(draw(st.sampled_from([fold(d, reduction.add, at), fold(d, extrema._larger, at, identity=extrema._lowest)])))
            tile.append(False)
            known.append(d)
            continue
        if kind == "where" and BOOL in known and d in FLOATS:
            made = Step(selection._where, (known.index(BOOL), at, draw(st.sampled_from(partners))), d, wide)
        elif kind == "cast" or d == BOOL or kind in ("fold", "where"):
            target = draw(st.sampled_from(TYPES))
            made = Step(unchanged, (at,), target, wide)
        elif kind == "compare":
            made = Step(draw(st.sampled_from(COMPARED)), (at, draw(st.sampled_from(partners))), BOOL, wide)
        elif kind == "unary" and d in FLOATS:
            made = Step(draw(st.sampled_from(UNARY)), (at,), d, wide)
        else:
            made = Step(draw(st.sampled_from(BINARY if d in FLOATS else WHOLE)), (at, draw(st.sampled_from(partners))), d, wide)
        steps.append(made)
        tile.append(any(tile[p] for p in made.picks))
        known.append(made.dtype)
    first = len(inputs) + len(numbers)
    made_here = list(range(first, len(known)))
    stores = draw(st.lists(st.sampled_from(made_here), min_size=1, max_size=3, unique=True))
    return Tape(tuple(inputs), tuple(numbers), tuple(steps), tuple(stores)), [*lies, *["tile" if tile[v] else "flat" for v in stores]]


def lying(rng: np.random.Generator, how: str, dtype: np.dtype, rows: int, n: int) -> np.ndarray:
    shape = {"row": (rows, 1), "column": (n,), "number": ()}.get(how, (rows, n))
    if how == "slice":
        return values(rng, (rows, 3 * n), dtype)[:, n : 2 * n]
    return np.asarray(values(rng, (n, rows), dtype).T if how == "turned" else values(rng, shape, dtype))


def check(tape: Tape, lies: list[str], rows: int, n: int, reduced: int) -> None:
    rng = np.random.default_rng(0)
    inputs = [lying(rng, how, d, rows, n) for how, d in zip(lies, tape.inputs, strict=False)]
    numbers = [2 if d == I64 else 0.75 for d in tape.numbers]
    made, apart = (
        [
            np.empty((rows, 1) if reduced and how == "flat" else (rows, n), tape.dtypes()[v])
            for v, how in zip(tape.stores, lies[len(inputs) :], strict=True)
        ]
        for _ in range(2)
    )
    on_cpu.run(tape, inputs, numbers, made, reduced)
    on_cpu.step_by_step(tape, inputs, numbers, apart, reduced)
    for a, b in zip(made, apart, strict=True):
        assert same_bits(a, b), tape
    # and the same of arrays that lie otherwise: in whole, side by side
    whole = [np.ascontiguousarray(np.broadcast_to(x, (rows, 1) if reduced and x.shape[-1:] in ((), (1,)) else (rows, n))) for x in inputs]
    on_cpu.run(tape, whole, numbers, apart, reduced)
    for a, b in zip(made, apart, strict=True):
        assert same_bits(a, b), tape


@settings(max_examples=60, deadline=None)
@given(tapes(False), st.integers(1, 5), st.sampled_from([1, 3, 16, 37, 64, 130]))
def test_random_tapes(drawn: tuple[Tape, list[str]], rows: int, n: int) -> None:
    check(*drawn, rows, n, 0)


@settings(max_examples=60, deadline=None)
@given(tapes(True), st.integers(1, 5), st.sampled_from([1, 3, 16, 37, 64, 130]))
def test_random_row_tapes(drawn: tuple[Tape, list[str]], rows: int, n: int) -> None:
    check(*drawn, rows, n, 1)


@machine
@settings(max_examples=40, deadline=None)
@given(tapes(True), st.integers(1, 5), st.sampled_from([1, 3, 37]))
def test_random_tapes_in_numpy_alone(drawn: tuple[Tape, list[str]], rows: int, n: int) -> None:
    """Without machine code every tape runs; what is one step away from the inputs is as near."""
    tape, lies = drawn
    rng = np.random.default_rng(0)
    inputs = [lying(rng, how, d, rows, n) for how, d in zip(lies, tape.inputs, strict=False)]
    numbers = [2 if d == I64 else 0.75 for d in tape.numbers]
    flat = lies[len(inputs) :]
    made, alone = (
        [np.empty((rows, 1 if how == "flat" else n), tape.dtypes()[v]) for v, how in zip(tape.stores, flat, strict=True)] for _ in range(2)
    )
    on_cpu.run(tape, inputs, numbers, made, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "refusal", lambda: "for this test")
        forget()
        on_cpu.run(tape, inputs, numbers, alone, 1)
    forget()
    if len(tape.steps) == 1:
        near = 8 * ROUNDING.get(made[0].dtype, 0)
        np.testing.assert_allclose(made[0].astype(np.float64), alone[0].astype(np.float64), rtol=near, atol=near)
