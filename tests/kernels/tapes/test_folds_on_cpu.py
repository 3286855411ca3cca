"""Folds of tapes on the CPU: sums, extrema and their places, products, truths, moments, in every type, fused and by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.tapes.sample_tapes import (
    BF16,
    BOOL,
    F32,
    F64,
    FLOATS,
    FOLDS,
    I32,
    I64,
    ROUNDING,
    fold,
    forget,
    fused,
    kept,
    machine,
    same_bits,
    values,
)
from tritensor.kernels.parts import reduction
from tritensor.kernels.parts.tapes import moments, on_cpu
from tritensor.kernels.parts.tapes.tape import Fold, Tape
from tritensor.kernels.reductions import extrema, sums
from tritensor.llvm import compiler


@machine
@pytest.mark.parametrize("dtype", [*FLOATS, I32, I64], ids=str)
@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("shape", [(3, 1), (3, 15), (2, 64), (3, 201), (2, 3, 40)])
def test_folds(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    combine, map_, finish, identity, numpy = FOLDS[name]
    reduced = len(shape) - 1
    x = values(np.random.default_rng(1), shape, dtype)
    one = fold(dtype, combine, 0, map_, finish, (), identity)
    tape = Tape((dtype,), (), (one,), (1,))
    y, z = (np.empty((shape[0], *[1] * reduced), dtype) for _ in range(2))
    assert fused(tape, (x,), (), (y,), reduced)
    on_cpu.step_by_step(tape, (x,), (), (z,), reduced)
    assert same_bits(y, z)
    wide = x.astype(np.float64 if dtype.kind != "i" else np.int64)
    want = numpy(wide, axis=tuple(range(1, len(shape))), keepdims=True)
    if name == "prod" and dtype.kind == "i":
        want = want.astype(dtype)
    if dtype.kind == "i":
        np.testing.assert_array_equal(y, want)
    else:
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(
                y.astype(np.float64),
                want.astype(dtype).astype(np.float64),
                rtol=8 * ROUNDING[dtype] * (9 if name == "prod" else 1),
                atol=ROUNDING[dtype] * 64,
            )


@machine
@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("place", [0, 17, 63, 64, 70])
def test_nan_wins(name: str, place: int) -> None:
    combine, map_, finish, identity, _ = FOLDS[name]
    x = np.random.default_rng(0).standard_normal((3, 71)).astype(F32)
    x[1, place] = np.nan
    y = np.empty((3, 1), F32)
    assert fused(Tape((F32,), (), (fold(F32, combine, 0, map_, finish, (), identity),), (1,)), (x,), (), (y,), 1)
    np.testing.assert_array_equal(np.isnan(y[:, 0]), [False, True, False])


@machine
@pytest.mark.parametrize("name", ["any", "all"])
def test_quantifiers(name: str) -> None:
    combine, start = {"any": (extrema._either, 0), "all": (extrema._both, 1)}[name]
    functions = reduction.ReductionFunctions(extrema._true, combine, extrema._nonzero, lambda states: (start,))
    for dtype in (BOOL, F32, I64, BF16):
        x = np.random.default_rng(0).integers(0, 2, (40, 4)).astype(dtype)
        tape = Tape((dtype,), (), (Fold(functions, (0,), (), (), (I32,), (BOOL,)),), (1,))
        y, z = np.empty((40, 1), bool), np.empty((40, 1), bool)
        assert fused(tape, (x,), (), (y,), 1)
        on_cpu.step_by_step(tape, (x,), (), (z,))
        np.testing.assert_array_equal(y, getattr(np, name)(x != 0, axis=1, keepdims=True))
        np.testing.assert_array_equal(y, z)


@machine
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dtype", [*FLOATS, I32], ids=str)
@pytest.mark.parametrize("shape", [(4, 1), (3, 70), (2, 3, 40)])
def test_the_first_largest(shape: tuple[int, ...], dtype: np.dtype, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction of two states that asks for places: of ties the first, NaN before all."""
    if not native:
        monkeypatch.setattr(compiler, "refusal", lambda: "for this test")
        forget()
    x = np.random.default_rng(0).integers(-5, 5, shape).astype(dtype)
    if dtype.kind != "i" and x[0].size > 1:
        x[0].reshape(-1)[[17, 30]] = np.nan
    functions = reduction.ReductionFunctions(
        extrema._with_index, extrema._first_larger, extrema._value_and_index, extrema._lowest, extrema._walk_larger
    )
    states = (*extrema.compared_in(dtype), I64)
    tape, reduced = Tape((dtype,), (), (Fold(functions, (0,), (), (), states, (dtype, I64)),), (1, 2)), len(shape) - 1
    top, place = (np.empty((shape[0], *[1] * reduced), d) for d in (dtype, I64))
    try:
        assert fused(tape, (x,), (), (top, place), reduced) == native
        on_cpu.run(tape, (x,), (), (top, place), reduced)
    finally:
        forget()
    rows = x.reshape(shape[0], -1).astype(np.float64)
    np.testing.assert_array_equal(place.reshape(-1), rows.argmax(1))
    np.testing.assert_array_equal(top.astype(np.float64).reshape(-1), rows.max(1))


@machine
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_variance(dtype: np.dtype) -> None:
    """By merged moments about the first element, whose states are three."""
    functions = reduction.ReductionFunctions(sums._moments, moments.merged, sums._variance, reduction.zero, moments.walked)
    x = (values(np.random.default_rng(3), (6, 300), F32) + 3).astype(dtype)
    tape = Tape((dtype, dtype), (F64,), (Fold(functions, (0, 1), (2,), (), (kept(dtype),) * 3, (dtype,)),), (3,))
    y, z = np.empty((6, 1), dtype), np.empty((6, 1), dtype)
    assert fused(tape, (x, x[:, :1]), (299.0,), (y,), 1)
    on_cpu.step_by_step(tape, (x, x[:, :1]), (299.0,), (z,))
    assert same_bits(y, z)
    want = x.astype(np.float64).var(1, ddof=1, keepdims=True)
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=4 * ROUNDING[dtype])
