"""Tapes on the CPU: the fused machine function, the steps one by one, numpy alone, and the formulas' own loops say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tritensor
from tests.kernels.tapes.sample_tapes import (
    BF16,
    BINARY,
    BOOL,
    COMPARED,
    F16,
    F32,
    F64,
    FLOATS,
    FOLDS,
    GELU_NUMBERS,
    I32,
    I64,
    ROUNDING,
    UNARY,
    cross_entropy,
    fold,
    forget,
    fused,
    gelu,
    kept,
    layer_norm,
    machine,
    same_bits,
    step,
    values,
)
from tritensor.kernels.elementwise import arithmetic
from tritensor.kernels.parts import maths, reduction
from tritensor.kernels.parts.elementwise import unchanged
from tritensor.kernels.parts.formula_llvm import formula_loop
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.tapes import on_cpu
from tritensor.kernels.parts.tapes.cpu.arrangement import arrange, memory
from tritensor.kernels.parts.tapes.tape import Step, Tape
from tritensor.kernels.reductions import extrema
from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.loops import STORED
from tritensor.ops.table import ops


@machine
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [1, 7, 16, 33, 64, 65, 1000, 40000])
def test_gelu(dtype: np.dtype, n: int) -> None:
    x = values(np.random.default_rng(n), (n,), dtype)
    y, z = np.empty_like(x), np.empty_like(x)
    tape = gelu(dtype)
    assert fused(tape, (x,), GELU_NUMBERS, (y,))
    on_cpu.step_by_step(tape, (x,), GELU_NUMBERS, (z,))
    assert same_bits(y, z)
    wide = x.astype(np.float64)
    want = 0.5 * wide * (1 + np.tanh(GELU_NUMBERS[2] * (wide + GELU_NUMBERS[3] * wide**3)))
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=0, atol=8 * ROUNDING[dtype])


@machine
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 16, 50, 64, 100, 768])
def test_row_tapes(dtype: np.dtype, n: int) -> None:
    rng = np.random.default_rng(n)
    x, w, b = (values(rng, s, dtype) for s in ((5, n), (n,), (n,)))
    y, z = np.empty_like(x), np.empty_like(x)
    m, k = np.empty((5, 1), dtype), np.empty((5, 1), dtype)
    tape, numbers = layer_norm(dtype), (1e-5, float(n))
    assert n == 1 or fused(tape, (x, w, b), numbers, (y, m), 1)
    on_cpu.run(tape, (x, w, b), numbers, (y, m))
    on_cpu.step_by_step(tape, (x, w, b), numbers, (z, k))
    assert same_bits(y, z)
    assert same_bits(m, k)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w.astype(np.float64) + b.astype(np.float64)
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=0, atol=(64 if n > 2 else 1e4) * ROUNDING[dtype])
    onehot = np.eye(n, dtype=bool)[rng.integers(0, n, 5)].astype(dtype)
    tape = cross_entropy(dtype)
    assert fused(tape, (x, onehot), (), (m,), 1)
    on_cpu.step_by_step(tape, (x, onehot), (), (k,))
    assert same_bits(m, k)
    top = wide - wide.max(1, keepdims=True)
    want = ((top - np.log(np.exp(top).sum(1, keepdims=True))) * onehot.astype(np.float64)).sum(1, keepdims=True)
    np.testing.assert_allclose(m.astype(np.float64), want, rtol=0, atol=32 * ROUNDING[dtype])


@machine
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "formula", [*UNARY, *BINARY, *COMPARED, maths.div, maths.pow, activations.gelu, activations.gelu_grad], ids=lambda f: f.fn.__name__
)
def test_a_step_is_its_formulas_own_loop(formula: Any, dtype: np.dtype) -> None:
    """Bit for bit, with arrays and with a number, where that loop takes it; and what numpy makes of the formula but for rounding."""
    rng = np.random.default_rng(0)
    count = formula.fn.__code__.co_argcount
    result = BOOL if formula in COMPARED else dtype
    arrays = [values(rng, (1000,), dtype) for _ in range(count)]
    out, want = np.empty(1000, result), np.empty(1000, result)
    with_number = Tape((dtype,), (kept(dtype),), (Step(formula, (0, 1), result, dtype == F64),), (2,))
    on_cpu.run(Tape((dtype,) * count, (), (Step(formula, tuple(range(count)), result, dtype == F64),), (count,)), arrays, (), (out,))
    loop = formula_loop(formula)
    if loop(arrays, want):
        assert same_bits(out, want)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "refusal", lambda: "for this test")
        forget()
        on_cpu.run(Tape((dtype,) * count, (), (Step(formula, tuple(range(count)), result, dtype == F64),), (count,)), arrays, (), (want,))
    forget()
    np.testing.assert_allclose(out.astype(np.float64), want.astype(np.float64), rtol=4 * ROUNDING[dtype], atol=4 * ROUNDING[dtype])
    if count == 2:
        on_cpu.run(with_number, arrays[:1], (0.7,), (out,))
        if loop((arrays[0], 0.7), want):
            assert same_bits(out, want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_without_machine_code(dtype: np.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """On processors that have none numpy computes everything, as near to the mathematics."""
    monkeypatch.setattr(compiler, "refusal", lambda: "for this test")
    forget()
    try:
        assert on_cpu.machine_code(gelu(dtype), ("tile", "tile")) is None
        rng = np.random.default_rng(0)
        x, w, b = (values(rng, s, dtype) for s in ((5, 100), (100,), (100,)))
        y, m = np.empty_like(x), np.empty((5, 1), dtype)
        on_cpu.run(gelu(dtype), (x,), GELU_NUMBERS, (y,))
        wide = x.astype(np.float64)
        want = 0.5 * wide * (1 + np.tanh(GELU_NUMBERS[2] * (wide + GELU_NUMBERS[3] * wide**3)))
        np.testing.assert_allclose(y.astype(np.float64), want, rtol=0, atol=8 * ROUNDING[dtype])
        on_cpu.run(layer_norm(dtype), (x, w, b), (1e-5, 100.0), (y, m))
        want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w.astype(np.float64) + b.astype(
            np.float64
        )
        np.testing.assert_allclose(y.astype(np.float64), want, rtol=0, atol=64 * ROUNDING[dtype])
        for name, (combine, map_, finish, identity, numpy) in FOLDS.items():
            on_cpu.run(Tape((dtype,), (), (fold(dtype, combine, 0, map_, finish, (), identity),), (1,)), (x[:, :9],), (), (m,))
            np.testing.assert_allclose(
                m.astype(np.float64),
                numpy(wide[:, :9], axis=1, keepdims=True),
                rtol=32 * ROUNDING[dtype],
                atol=ROUNDING[dtype],
                err_msg=name,
            )
    finally:
        forget()


@machine
@pytest.mark.parametrize("level", compiler.lesser_levels())
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_lesser_processors(level: str, dtype: np.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code for a processor of the same kind that knows less gives the same bits."""
    rng = np.random.default_rng(0)
    x, w, b = (values(rng, s, dtype) for s in ((5, 100), (100,), (100,)))
    found, lesser = ([np.empty_like(x), np.empty((5, 1), dtype), np.empty_like(x)] for _ in range(2))
    try:
        for y, m, g in (found, lesser):
            assert fused(layer_norm(dtype), (x, w, b), (1e-5, 100.0), (y, m), 1)
            assert fused(gelu(dtype), (x,), GELU_NUMBERS, (g,))
            forget()
            monkeypatch.setattr(compiler, "processor", lambda: level)
    finally:
        forget()
    for a, b in zip(found, lesser, strict=True):
        assert same_bits(a, b)


@machine
def test_in_place_and_beside() -> None:
    tape, x = gelu(F32), np.random.default_rng(0).standard_normal((8, 50)).astype(F32)
    want = np.empty_like(x)
    on_cpu.run(tape, (x,), GELU_NUMBERS, (want,))
    kept = x.copy()
    assert fused(tape, (x,), GELU_NUMBERS, (x,))
    assert same_bits(x, want)
    # a result that lies over an input otherwise is made beside it
    room = np.concatenate([kept.reshape(-1), np.zeros(50, F32)])
    y, x = room[50:].reshape(8, 50), room[:-50].reshape(8, 50)
    assert not fused(tape, (x,), GELU_NUMBERS, (y,))
    on_cpu.run(tape, (x,), GELU_NUMBERS, (y,))
    assert same_bits(y, want)
    # the halves of rows, each written by the other's place
    both = kept.copy()
    halves = both[:, :25], both[:, 25:]
    on_cpu.run(Tape((F32, F32), (), (step(arithmetic._sub, F32, 0, 1), step(arithmetic._add, F32, 0, 1)), (2, 3)), halves, (), halves)
    assert same_bits(both[:, :25], kept[:, :25] - kept[:, 25:])
    assert same_bits(both[:, 25:], kept[:, :25] + kept[:, 25:])


@machine
@pytest.mark.parametrize("rows", [False, True])
def test_a_result_over_an_input_that_another_needs(rows: bool) -> None:
    """Everything is read before anything is written, of elements and of numbers of rows."""
    x, y = np.random.default_rng(0).standard_normal((2, 6, 70)).astype(F32)
    x, y = (x[:, :1].copy(), y[:, :1].copy()) if rows else (x, y)
    tile = np.ones((6, 70), F32)
    steps = (step(maths.neg, F32, 1), step(arithmetic._add, F32, 0, 0), step(arithmetic._mul, F32, 2, 0))
    for stores in ((3, 4), (4, 3)):
        a, b, c = x.copy(), y.copy(), tile.copy()
        swapped = (a, b) if stores == (3, 4) else (b, a)
        assert fused(Tape((F32,) * 3, (), steps, (*stores, 5)), (a, b, c), (), (*swapped, c), int(rows))
        assert same_bits(a, -y)
        assert same_bits(b, x + x)
        assert same_bits(c, tile * x)


@machine
@pytest.mark.parametrize("n", [3, 16, 100])
def test_values_that_are_too_hard(n: int) -> None:
    """Arguments too large for the machine's sine are numpy's, in place too; what lies behind the last element is nobody's."""
    tape = Tape((F32,), (F32,), (step(arithmetic._mul, F32, 0, 1), step(maths.sin, F32, 2), step(arithmetic._add, F32, 3, 0)), (4,))
    x = np.linspace(1, 2, n, dtype=F32)
    y = np.empty_like(x)
    assert fused(tape, (x,), (3.0,), (y,))
    assert not fused(tape, (x,), (1e9,), (y,))
    on_cpu.run(tape, (x,), (1e9,), (y,))
    np.testing.assert_allclose(y, np.sin(x * F32.type(1e9)) + x, rtol=1e-6)
    given = x.copy()
    on_cpu.run(tape, (given,), (1e9,), (given,))
    assert same_bits(given, y)


@machine
@pytest.mark.parametrize("n", [5, 64, 70])
def test_what_lies_behind_a_row_is_never_too_hard(n: int) -> None:
    """There stand zeros, and of 0 / 0 machine code has no remainder."""
    a, b = (np.random.default_rng(k).uniform(1, 9, (3, 2 * n)).astype(F32)[:, :n] for k in (0, 1))
    y = np.empty((3, n), F32)
    tape = Tape((F32, F32), (), (step(maths.fmod, F32, 0, 1),), (2,))
    assert fused(tape, (a, b), (), (y,))
    np.testing.assert_array_equal(y, np.fmod(a, b))
    b[2, n - 1] = 0
    assert not fused(tape, (a, b), (), (y,))


@machine
def test_what_walks_keep() -> None:
    """The exponentials of a softmax, which two walks ask for, and no difference to a mean, which is as soon computed."""
    largest = fold(F32, extrema._larger, 0, identity=extrema._lowest)
    steps = (largest, step(arithmetic._sub, F32, 0, 1), step(maths.exp, F32, 2), fold(F32, reduction.add, 3), step(maths.div, F32, 3, 4))
    softmax = on_cpu.machine_code(Tape((F32,), (), steps, (5,)), ("tile", "tile"))
    assert softmax.kept == (4,)
    assert on_cpu.machine_code(layer_norm(F32), ("tile", "row", "tile", "tile", "tile")).kept == ()


@machine
@pytest.mark.parametrize("source", [F16, BF16, F32, F64, I32, I64, BOOL], ids=str)
@pytest.mark.parametrize("target", [F16, BF16, F32, F64, I32, I64, BOOL], ids=str)
def test_conversions_are_the_ops(source: np.dtype, target: np.dtype) -> None:
    """A step that only converts gives the bits of the op `cast`: float64 to float16 is rounded once, what an integer does not hold is the least one."""
    rng = np.random.default_rng(0)
    ties = [
        1 + 2.0**-11 + 2.0**-40,
        1 + 2.0**-8 + 2.0**-40,
        2.0**-25 * (1 + 2.0**-30),
        65519.999999999,
        65520.0,
        -65519.9999,
        1e300,
        -1e-300,
        0.0,
        -0.0,
    ]
    numbers = np.array([*ties, np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19], np.float64)
    with np.errstate(all="ignore"):
        x = numbers.astype(source) if source.kind in "fV" else rng.integers(-(2**31), 2**31, 40).astype(source)
        want = ops.cast(tritensor.from_numpy(x), dtype=target).numpy()
    out, step_out = np.empty(x.shape, target), np.empty(x.shape, target)
    tape = Tape((source,), (), (Step(unchanged, (0,), target, source == F64),), (1,))
    assert fused(tape, (x,), (), (out,))
    assert same_bits(out, want)
    on_cpu.step_by_step(tape, (x,), (), (step_out,))
    assert same_bits(step_out, want)


@machine
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (2, 1, 3), (2, 3, 4, 5, 6), (0, 3), (3, 0, 2)], ids=str)
def test_layouts_of_one_array(shape: tuple[int, ...]) -> None:
    """As it is, backwards, with axes in other orders; results that lie like it and that do not."""
    x = np.asarray(values(np.random.default_rng(0), shape, F32))
    for lying in (x, x[::-1] if x.ndim else x, x.T, np.moveaxis(x, 0, -1) if x.ndim else x):
        want, alike, steps = np.empty(lying.shape, F32), np.empty_like(lying), np.empty_like(lying)
        on_cpu.run(gelu(F32), (np.ascontiguousarray(lying),), GELU_NUMBERS, (want,))
        on_cpu.run(gelu(F32), (lying,), GELU_NUMBERS, (alike,))
        on_cpu.step_by_step(gelu(F32), (lying,), GELU_NUMBERS, (steps,))
        assert same_bits(alike, want)
        assert same_bits(steps, want)


@machine
def test_layouts_that_are_copied() -> None:
    """More axes than loops have, results with gaps, columns as rows of a view."""
    rng = np.random.default_rng(0)
    x, v, w = (values(rng, s, F32) for s in ((3, 4, 5, 6, 7), (3, 1, 5, 1, 7), (4, 1, 6, 1)))
    tape = Tape((F32,) * 3, (), (step(arithmetic._add, F32, 0, 1), step(arithmetic._mul, F32, 3, 2)), (4,))
    gaps, steps = np.empty((3, 4, 5, 6, 14), F32)[..., ::2], np.empty_like(x)
    assert not fused(tape, (x, v, w), (), (gaps,))
    on_cpu.run(tape, (x, v, w), (), (gaps,))
    on_cpu.step_by_step(tape, (x, v, w), (), (steps,))
    np.testing.assert_array_equal(gaps, (x + v) * w)
    np.testing.assert_array_equal(steps, gaps)
    columns = np.empty((7, 1), F32)
    on_cpu.run(Tape((F32,), (), (fold(F32, reduction.add, 0),), (1,)), (x.reshape(-1, 7).T,), (), (columns,))
    np.testing.assert_allclose(columns[:, 0], x.reshape(-1, 7).sum(0), rtol=1e-5, atol=1e-5)


@machine
@pytest.mark.parametrize("shape", [(200_000,), (5, 9, 7000), (3, 100_000), (64, 1000)])
def test_shared_by_threads(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(F32)
    rows = len(shape) > 1
    tape, numbers = (layer_norm(F32), (1e-5, float(shape[-1]))) if rows else (gelu(F32), GELU_NUMBERS)
    inputs = (x, x.reshape(-1, shape[-1])[0].copy(), x.reshape(-1, shape[-1])[1].copy()) if rows else (x,)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        outs = [np.zeros_like(x), *([np.zeros((*shape[:-1], 1), F32)] if rows else [])]
        assert fused(tape, inputs, numbers, outs, int(rows))
        found.append(outs)
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            assert same_bits(a, b)


@machine
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("shape", [(3, 100), (64, 1000)])
def test_a_table_of_calls(shape: tuple[int, int], count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call for two tapes, of which the second reads what the first writes; then for arrays that lie elsewhere, and another number."""
    monkeypatch.setattr(threads, "count", lambda: count)
    rng = np.random.default_rng(0)
    x, w, b = (values(rng, s, F32) for s in (shape, shape[1:], shape[1:]))
    y, z, m = np.empty_like(x), np.empty_like(x), np.empty((shape[0], 1), F32)
    tapes = gelu(F32), layer_norm(F32)
    bound = []
    for tape, arrays, numbers, results, reduced in (
        (tapes[0], (y, x), GELU_NUMBERS, 1, 0),
        (tapes[1], (z, m, y, w, b), (1e-5, float(shape[1])), 2, 1),
    ):
        arranged = arrange(shape, tuple([memory(a) for a in arrays]), results, reduced)
        program = on_cpu.machine_code(tape, arranged.kinds)
        bound.append(program.bind(arranged, arrays, numbers))
    calls = [(call.address, word) for call in bound for word in call.words]
    table = np.zeros((len(calls), 1 + workers.ARGUMENTS), np.int64)
    table[:, :2] = calls

    def expected(x: np.ndarray, numbers: tuple[float, ...]) -> np.ndarray:
        made, normal, means = np.empty_like(x), np.empty_like(x), np.empty((shape[0], 1), F32)
        on_cpu.run(tapes[0], (x,), numbers, (made,))
        on_cpu.run(tapes[1], (made, w, b), (1e-5, float(shape[1])), (normal, means))
        return normal

    assert workers.call_all(table.ctypes.data, len(table)) == 0
    assert same_bits(z, expected(x, GELU_NUMBERS))
    other, elsewhere = values(rng, shape, F32), np.empty_like(x)
    bound[0].move(1, other.ctypes.data)
    bound[0].tell(0, 2.0)
    bound[1].move(0, elsewhere.ctypes.data)
    assert workers.call_all(table.ctypes.data, len(table)) == 0
    assert same_bits(elsewhere, expected(other, (2.0, *GELU_NUMBERS[1:])))


@machine
def test_empty_arrays() -> None:
    y = np.empty((0, 5), F32)
    on_cpu.run(gelu(F32), (y,), GELU_NUMBERS, (y.copy(),))
    total = np.empty((3, 1), F32)
    on_cpu.run(Tape((F32,), (), (fold(F32, reduction.add, 0),), (1,)), (np.empty((3, 0), F32),), (), (total,))
    assert (total == 0).all()


_SECOND = """
import sys
from tritensor.llvm import compiler
import tests.kernels.tapes.sample_tapes as page
import numpy as np
made = []
assembled = compiler._backend
def counting():
    made.append(1)
    return assembled()
compiler._backend = counting
x, m = np.ones((3, 40), np.float32), np.empty((3, 1), np.float32)
page.on_cpu.run(page.layer_norm(page.F32), (x, x[0], x[0]), (1e-5, 40.0), (x.copy(), m))
assert page.fused(page.cross_entropy(page.F32), (x, x.copy()), (), (m,), 1)
page.on_cpu.step_by_step(page.gelu(page.F32), (x,), page.GELU_NUMBERS, (x.copy(),))
print(len(made), "triton" in sys.modules)
"""


@machine
def test_a_second_process_compiles_nothing(tmp_path: Any) -> None:
    env = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("TRITON_INTERPRET", None)  # as users' processes are, in which Triton itself is not imported before something is compiled
    first, second = (
        subprocess.run([sys.executable, "-c", _SECOND], env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert int(first[0]) > 3
    assert second == ["0", "False"]


@machine
def test_what_there_is_no_machine_code_for() -> None:
    """Types that loops do not store and formulas beyond `maths` on vectors: numpy's, with the same roundings."""
    whole = np.dtype(np.uint8)
    assert whole not in STORED
    tape = Tape(
        (whole,), (), (Step(arithmetic._add, (0, 0), whole, False), Step(unchanged, (1,), F32, False), step(maths.asin, F32, 2)), (1, 3)
    )
    x = np.array([0, 200, 3], whole)
    a, b = np.empty(3, whole), np.empty(3, F32)
    assert on_cpu.machine_code(tape, ("tile",) * 3) is None
    on_cpu.run(tape, (x,), (), (a, b))
    np.testing.assert_array_equal(a, x + x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(b, np.arcsin((x + x).astype(F32)))
