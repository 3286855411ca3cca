"""check_kernel: what it takes, how it lays arrays out, and what it refuses. What it finds: tests/sabotage/test_planted_errors.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError
from tritensor.ops.array import to_host
from tritensor.testing import check_kernel
from tritensor.testing.kernel_check import place_as

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@triton.jit
def rows(x, y, by, columns, x_row, x_column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * x_row + c * x_column, mask=c < columns)
    tl.store(y + r * columns + c, v * by, mask=c < columns)


STEPS = (lambda x: x.stride(0), lambda x: x.stride(1))


def test_arrays_tensors_and_names() -> None:
    y = np.empty_like(X)
    check_kernel(rows, (3,), (X, y, 2.0, 4, 4, 1), {"y": 2 * X}, BLOCK=4)
    check_kernel(rows, lambda meta: (12 // meta["BLOCK"],), (X, y, 2.0, 4, *STEPS), lambda x, by: {"y": by * x}, BLOCK=4)
    named = {"x": tt.tensor(X, device="cuda"), "y": tt.empty(3, 4), "columns": 4, "by": 0.5, "x_row": 4, "x_column": 1, "BLOCK": 4}
    check_kernel(rows, (3,), {k: v for k, v in named.items() if k != "BLOCK"}, lambda x: {"y": x / 2}, BLOCK=4)


def test_the_strides_of_what_is_given_are_kept() -> None:
    for x in (X.T.copy().T, np.repeat(X, 2, 1)[:, ::2], X[::-1, ::-1]):
        strides = [s // 4 for s in x.strides]
        check_kernel(rows, (3,), (x, np.empty_like(X), 1.0, 4, *strides), {"y": x}, BLOCK=4)
    t = tt.tensor(X).T.contiguous().T
    check_kernel(rows, (3,), (t, tt.empty(3, 4), 1.0, 4, *t.stride()), lambda x: {"y": x}, BLOCK=4)


@pytest.mark.parametrize("strides", [(4, 1), (1, 3), (-4, -1), (9, 2)])
@pytest.mark.parametrize("offset", [0, 1])
def test_what_is_placed_lies_in_poison(strides: tuple[int, int], offset: int) -> None:
    p = place_as(X, strides, offset, device("cuda", 0))
    assert p.array.strides == strides
    assert (to_host(p.array) == X).all()
    base = to_host(p.base)
    assert np.isnan(base).sum() == base.size - X.size
    assert np.isnan(base[:offset]).all()


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_a_kernel_in_place_is_given_its_values() -> None:
    x = np.arange(5, dtype=np.int64)
    check_kernel(add_one, (2,), (x, 5), lambda x: {"x": x + 1}, updates=["x"], BLOCK=4)
    with pytest.raises(
        AssertionError, match=r"add_one: launch: 2 of 2 cases, first as given, emulated: x: 5 of 5 elements differ; at \[\d\] got"
    ):
        check_kernel(add_one, (2,), (x, 5), lambda x: {"x": x + 1}, BLOCK=4)


def test_tolerances_are_the_callers() -> None:
    off = 2 * X * 1.01
    with pytest.raises(AssertionError, match=r"elements differ; .* stored by rows, program"):
        check_kernel(rows, (3,), (X, np.empty_like(X), 2.0, 4, 4, 1), {"y": off}, BLOCK=4)
    check_kernel(rows, (3,), (X, np.empty_like(X), 2.0, 4, 4, 1), {"y": off}, BLOCK=4, rtol=0.02)
    check_kernel(rows, (3,), (X, np.empty_like(X), 2.0, 4, 4, 1), {"y": off}, BLOCK=4, atol=0.3)


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "too many": (
        (X, X, 1.0, 4, 4, 1, 4),
        {"y": X},
        "7 arguments for the parameters x, y, by, columns, x_row, x_column; give constexprs by name",
    ),
    "no such parameter": ({"x": X, "z": X}, {"x": X}, "it has no parameter 'z'; its parameters are x, y"),
    "no such result": ((X, X, 1.0, 4, 4, 1), {"z": X}, "'z', which is expected to be written, is no array among the arguments; x, y are"),
    "a number as a result": ((X, X, 1.0, 4, 4, 1), {"by": 2.0}, "'by', which is expected to be written, is no array"),
    "another shape": ((X, X, 1.0, 4, 4, 1), {"y": X[0]}, r"y has shape \(3, 4\), what is expected of it \(4,\)"),
    "nothing expected": ((X, X, 1.0, 4, 4, 1), {}, "nothing is expected; name a parameter"),
    "a function of what is not there": ((X, X, 1.0, 4, lambda w: 4, 1), {"y": X}, "x_row asks for 'w'; it can be given x, y"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    args, expected, said = REFUSED[what]
    with pytest.raises(ArgumentError, match="check_kernel rows: " + said):
        check_kernel(rows, (3,), args, expected, BLOCK=4)


def test_a_parameter_that_is_missing() -> None:
    with pytest.raises(TypeError, match="columns"):
        check_kernel(rows, (3,), {"x": X, "y": X, "by": 1.0}, {"y": X}, BLOCK=4)
