"""Draws in tapes: every number that of its place in the stream, however the tape's space runs over the places, by each way that a tape is run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.tapes.chains import on_device
from tests.kernels.tapes.sample_tapes import forget
from tritensor.kernels.elementwise import arithmetic
from tritensor.kernels.parts import reduction
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.random_words import draws
from tritensor.kernels.parts.rows.row_tapes import run_rows
from tritensor.kernels.parts.tapes import on_cpu, pointwise
from tritensor.kernels.parts.tapes.oracle import evaluate
from tritensor.kernels.parts.tapes.pointwise import run_tape
from tritensor.kernels.parts.tapes.tape import INDEX, Fold, Places, Step, Tape
from tritensor.kernels.random import plain_numbers
from tritensor.llvm import compiler
from tritensor.ops.array import to_host

F16, F32, F64, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)
I32, I64 = np.dtype(np.int32), np.dtype(np.int64)
SEED, OFFSET = 2**63 + 12345, 2**32 - 3  # whose blocks reach over 32 bits
NUMBERS = (draws.signed(SEED), draws.signed(OFFSET))


def _words(n: int) -> np.ndarray:
    return (plain_numbers.words(n, 32, SEED, OFFSET).astype(np.int64) - 2**31).astype(np.int32)


def _uniforms(digits: int, dtype: np.dtype) -> Callable[[int], np.ndarray]:
    return lambda n: plain_numbers.uniforms(n, SEED, OFFSET, digits).astype(dtype)


def _normals(dtype: np.dtype) -> Callable[[int], np.ndarray]:
    return lambda n: plain_numbers.normals(n, 64 if dtype == F64 else 32, SEED, OFFSET).astype(dtype)


# by name: the formula, the type of its numbers, the first so many of them in plain numpy
DRAWS: dict[str, tuple[Any, np.dtype, Callable[[int], np.ndarray]]] = {
    "words": (draws.words, I32, _words),
    **{f"uniforms of {d.name}": (draws.UNIFORMS[d.name], d, _uniforms(digits, d)) for d, digits in ((F16, 11), (BF16, 8), (F32, 24), (F64, 53))},
    **{f"normals of {d.name}": (draws.NORMALS[d.name], d, _normals(d)) for d in (F16, BF16, F32, F64)},
}  # fmt: skip
# (the tape's space, strides of the places over it)
SPACES = [
    ((5, 64), (64, 1)), ((1, 1000), (0, 1)), ((7, 13), (13, 1)), ((3, 6), (6, 1)), ((64, 6), (1, 64)), ((9, 5), (1, 9)), ((8, 33), (1, 0)), ((8, 33), (0, 1)),
    ((4, 3, 32), (32, 128, 1)), ((4, 3, 10), (1, 40, 4)), ((2, 5), (0, 0)), ((3, 8), (100, 4)), ((2, 130), (1000, 1)), ((6, 3), (4, 1)),
]  # fmt: skip


def tape(name: str) -> Tape:
    """The numbers and, of floats, the same less an array's."""
    formula, dtype, _ = DRAWS[name]
    steps = (Step(formula, (1, 2, 3), dtype, False), Step(arithmetic._sub, (4, 0), dtype, dtype == F64))
    return Tape((dtype, INDEX), (I64, I64), steps, (4, 5))


def places(shape: tuple[int, ...], strides: tuple[int, ...]) -> Places:
    return Places(tuple([n if s else 1 for n, s in zip(shape, strides, strict=True)]), strides)


def wanted(name: str, shape: tuple[int, ...], at: Places) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array, the numbers over the space, and what is left of them."""
    _, dtype, plain = DRAWS[name]
    index = np.broadcast_to(at.numbers(), shape)
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)
    numbers = plain(int(index.max()) + 1)[index]
    kind = F32 if dtype in (F16, BF16) else dtype
    return x, numbers, (numbers.astype(kind) - x.astype(kind)).astype(dtype)


def same(found: Any, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(np.asarray(found).view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))


@pytest.mark.parametrize(("shape", "strides"), SPACES, ids=str)
@pytest.mark.parametrize("name", DRAWS)
def test_on_a_gpu(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    at = places(shape, strides)
    x, *expected = wanted(name, shape, at)
    given = on_device(x)
    outs = [allocate(shape, x.dtype, given) for _ in range(2)]
    run_tape(tape(name), [given, at], NUMBERS, outs)
    for y, e in zip(outs, expected, strict=True):
        same(to_host(y), e)


@pytest.mark.parametrize(("shape", "strides"), SPACES, ids=str)
@pytest.mark.parametrize("name", DRAWS)
def test_on_the_cpu(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    at = places(shape, strides)
    x, *expected = wanted(name, shape, at)
    for run in (on_cpu.run, on_cpu.step_by_step):
        outs = [np.empty(shape, x.dtype) for _ in range(2)]
        run(tape(name), [x, at], NUMBERS, outs)
        for y, e in zip(outs, expected, strict=True):
            same(y, e)
    for y, e in zip(evaluate(tape(name), [x, at], NUMBERS), expected, strict=True):
        same(np.broadcast_to(y, shape).copy(), e)


@pytest.mark.parametrize("name", ["words", "normals of float32"])
def test_without_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(compiler, "refusal", lambda: "none here")
    try:
        test_on_the_cpu(name, (5, 64), (64, 1))
    finally:
        forget()


def test_many_elements_are_shared_among_threads() -> None:
    for shape, strides in (((1, 70000), (0, 1)), ((300, 260), (260, 1)), ((70, 1001), (1001, 1))):
        test_on_the_cpu("normals of float32", shape, strides)


@pytest.mark.parametrize(("shape", "strides", "whole"), [
    ((5, 64), (64, 1), True), ((64, 6), (1, 64), False), ((3, 6), (6, 1), False), ((8, 33), (1, 0), False),
    ((2, 130), (1000, 1), True), ((6, 3), (4, 1), False),
])  # fmt: skip
def test_a_block_is_computed_once_where_it_lies_in_a_row(
    shape: tuple[int, ...], strides: tuple[int, ...], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    known = pointwise.steps_of
    monkeypatch.setattr(pointwise, "steps_of", lambda tape, by_fours=False: asked.append(by_fours) or known(tape, by_fours))
    x = on_device(np.zeros(shape, np.int32))
    # a broadcast operand keeps the axes apart
    two = Tape((I32, INDEX, I32), (I64, I64), (Step(draws.words, (1, 3, 4), I32, False), Step(arithmetic._add, (5, 2), I32, False)), (6,))
    run_tape(two, [x, places(shape, strides), on_device(np.zeros((1, shape[1]), np.int32))], NUMBERS, [allocate(shape, I32, x)])
    assert asked == [whole]
    assert draws.by_fours[draws.words] in known(two, True).formulas
    assert draws.words in known(two).formulas


def row_tape(name: str) -> Tape:
    """The numbers of each row, their sum, and x plus both."""
    formula, dtype, _ = DRAWS[name]
    total = Fold(reduction.ReductionFunctions(reduction.value, reduction.add, None, lambda states: (0.0,)), (4,), (), (), (F32,), (F32,))
    steps = (
        Step(formula, (1, 2, 3), dtype, False),
        total,
        Step(arithmetic._sub, (4, 5), F32, False),
        Step(arithmetic._add, (6, 0), F32, False),
    )
    return Tape((F32, INDEX), (I64, I64), steps, (4, 5, 7))


# rows of whole blocks and others, that begin between boundaries, that are walked, of places that are one for each row or column
ROWS = [(6, 64, (64, 1)), (5, 39, (39, 1)), (9, 67, (67, 1)), (3, 65, (100, 1)), (2, 20000, (20000, 1)), (3, 17001, (17001, 1)), (6, 40, (1, 6)),
        (4, 36, (0, 1)), (4, 36, (1, 0))]  # fmt: skip


@pytest.mark.parametrize(("rows", "n", "strides"), ROWS, ids=str)
@pytest.mark.parametrize("name", ["uniforms of float32", "normals of bfloat16"])
def test_in_rows(name: str, rows: int, n: int, strides: tuple[int, int]) -> None:
    _, dtype, plain = DRAWS[name]
    at = places((rows, n), strides)
    index = np.broadcast_to(at.numbers(), (rows, n))
    numbers = plain(int(index.max()) + 1)[index]
    x = np.random.default_rng(0).standard_normal((rows, n)).astype(np.float32)
    total = numbers.astype(np.float64).sum(1, keepdims=True)
    along = n if strides[1] else 1
    outs = [np.empty((rows, n), dtype), np.empty((rows, 1), np.float32), np.empty((rows, n), np.float32)]
    on_cpu.run(row_tape(name), [x, at], NUMBERS, outs, 1)
    given = on_device(x)
    # on a GPU a result has the shape that its value has
    made = [allocate((rows if strides[0] else 1, along), dtype, given), allocate((rows, 1), F32, given), allocate((rows, n), F32, given)]
    run_rows(row_tape(name), [given, at], NUMBERS, made, rows, n)
    found = [outs, [np.broadcast_to(to_host(y), e.shape).copy() for y, e in zip(made, outs, strict=True)]]
    for ys in found:
        same(ys[0], numbers)
        scale = np.abs(numbers.astype(np.float64)).sum(1, keepdims=True)
        assert np.all(np.abs(ys[1] - total) <= 1e-6 * scale)
        expected = numbers.astype(np.float32) - ys[1] + x
        same(ys[2], expected.astype(np.float32))


def test_places_count_from_nothing() -> None:
    at = Places((3, 1, 4), (4, 0, 1))
    assert np.array_equal(at.numbers(), np.arange(12).reshape(3, 1, 4))
    assert at.reshape((1, 3, 1, 4)).strides == (0, 4, 0, 1)
    assert math.prod(at.numbers().shape) == 12
    assert hash(tape("words")) == hash(tape("words"))
