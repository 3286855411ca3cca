"""The oracle of tapes against the same values written out in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import triton

from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.reduction import ReductionFunctions, add, value, zero
from tritensor.kernels.parts.tapes.oracle import evaluate, folded, stored
from tritensor.kernels.parts.tapes.tape import Fold, Step, Tape

F32, F64, BF16, F16, I32, I64, BOOL = (
    np.dtype(np.float32), np.dtype(np.float64), dtypes.bfloat16.numpy, np.dtype(np.float16), np.dtype(np.int32), np.dtype(np.int64), np.dtype(bool),
)  # fmt: skip


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _shifted(a, b):
    return a - b


@triton.jit
def _share(s, n):
    return maths.div(s, n)


@triton.jit
def _above(a, b):
    return a > b


@triton.jit
def _squared(x, index):
    return x * x


@triton.jit
def _weighed(x, index, c):
    return x * (index + c)


SUM = ReductionFunctions(value, add, None, zero)
rng = np.random.default_rng(3)


def test_values_between_steps_are_rounded_to_their_types() -> None:
    x, y = (rng.standard_normal((4, 5)).astype(BF16) for _ in range(2))
    tape = Tape((BF16, BF16), (F32,), (Step(_product, (0, 1), BF16, False), Step(_shifted, (3, 2), BF16, False)), (3, 4))
    first, second = evaluate(tape, (x, y), (0.5,))
    product = (x.astype(F32) * y.astype(F32)).astype(BF16)
    assert (first == product).all()
    assert first.dtype == BF16
    assert (second == (product.astype(F32) - np.float32(0.5)).astype(BF16)).all()
    assert (second != (x.astype(F32) * y.astype(F32) - np.float32(0.5)).astype(BF16)).any()


def test_wide_steps_compute_in_float64() -> None:
    x, y = rng.standard_normal((64,)).astype(F32), rng.standard_normal((64,))
    (got,) = evaluate(Tape((F32, F64), (), (Step(_product, (0, 1), F64, True),), (2,)), (x, y))
    assert (got == x.astype(F64) * y).all()
    (narrow,) = evaluate(Tape((F32, F32), (), (Step(_product, (0, 1), F64, False),), (2,)), (x, y.astype(F32)))
    assert (narrow == (x * y.astype(F32)).astype(F64)).all()


def test_booleans_and_integers() -> None:
    a, b = np.array([1, -5, 3], I32), np.array([True, False, True])
    got, more = evaluate(Tape((I32, BOOL), (), (Step(_product, (0, 1), I32, False), Step(_above, (0, 2), BOOL, False)), (2, 3)), (a, b))
    assert got.tolist() == [1, 0, 3]
    assert got.dtype == I32
    assert more.tolist() == [False, False, False]
    assert more.dtype == BOOL


def test_a_row_tape_with_values_per_row_per_column_and_a_number() -> None:
    """x - mean(x) over rows, weighed per column."""
    x, w = rng.standard_normal((3, 8)).astype(F32), rng.standard_normal((1, 8)).astype(F32)
    mean = Fold(ReductionFunctions(value, add, _share, zero), (0,), (2,), (), (F32,), (F32,))
    tape = Tape((F32, F32), (F32,), (mean, Step(_shifted, (0, 3), F32, False), Step(_product, (4, 1), F32, False)), (3, 5))
    means, got = evaluate(tape, (x, w), (8.0,))
    assert means.shape == (3, 1)
    assert np.allclose(means, x.mean(1, keepdims=True), rtol=1e-6, atol=1e-7)
    assert (got == (x - means) * w).all()
    assert got.dtype == F32


def test_a_fold_of_what_a_step_made_and_of_none_but_columns() -> None:
    x, w = rng.standard_normal((2, 5)).astype(F32), rng.standard_normal((1, 5)).astype(F32)
    squares = Fold(ReductionFunctions(_squared, add, None, zero), (2,), (), (), (F64,), (F32,))
    columns = Fold(SUM, (1,), (), (), (F32,), (F32,))
    got, per_row = evaluate(Tape((F32, F32), (), (Step(_product, (0, 1), F32, False), squares, columns), (3, 4)), (x, w))
    assert np.allclose(got, ((x * w) ** 2).sum(1, keepdims=True), rtol=1e-6)
    assert got.dtype == F32
    assert per_row.shape == (2, 1)
    assert np.allclose(per_row, w.sum())


def test_map_takes_the_index_and_numbers() -> None:
    x = np.arange(6, dtype=F32).reshape(2, 3)
    fold = Fold(ReductionFunctions(_weighed, add, None, zero), (0,), (), (1,), (F32,), (F32,))
    (got,) = evaluate(Tape((F32,), (F32,), (fold,), (2,)), (x,), (10.0,))
    assert got.tolist() == [[0 * 10 + 1 * 11 + 2 * 12], [3 * 10 + 4 * 11 + 5 * 12]]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 33])
def test_rows_of_any_length(n: int) -> None:
    x = rng.integers(-9, 9, (2, n))
    (got,) = folded(SUM, [x], (I64,), (), ())
    assert got.tolist() == x.sum(1, keepdims=True).tolist()


def test_storing_is_the_kernels() -> None:
    x = np.array([1.9, -1.9, 3e9, np.nan])
    assert stored(x, I32).tolist() == [1, -1, -(2**31), -(2**31)]
    assert stored(x, BOOL).tolist() == [True, True, True, True]
    assert stored(np.float32([1 + 2**-11, 7e4]), F16).tolist() == [1.0, np.inf]
