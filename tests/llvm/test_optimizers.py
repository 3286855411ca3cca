"""Steps of optimizers by machine code, over a table of arrays: what numpy computes in blocks, on all formulas, types and layouts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritensor import optim
from tritensor.kernels.optimizers import cpu_table
from tritensor.kernels.optimizers.cpu_table import CpuTable
from tritensor.kernels.optimizers.decay import COUPLED, DECOUPLED, NONE
from tritensor.kernels.optimizers.step_formula import StepFormula
from tritensor.llvm import address_table, compiler, threads
from tritensor.llvm.address_table import TableLoop
from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import load_formula

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")

FORMULAS = [
    f for c in vars(optim).values() if isinstance(c, type) and issubclass(c, FormulaOptimizer) for f in vars(c).get("_formulas", ())
]


def drawn(made: StepFormula, dtype: Any, *shapes: tuple[int, ...]) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    states = len(made.states)
    return [
        [np.array(x, dtype) for x in (*(rng.standard_normal(s) for _ in range(2)), *((rng.random(s) + 0.1) / 4**k for k in range(states)))]
        for s in shapes
    ]


def by_numpy(monkeypatch: pytest.MonkeyPatch, made: StepFormula, rows: Any, numbers: np.ndarray, variant: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(TableLoop, "of", lambda self, dtype: None)
        CpuTable(made, rows).run(None, numbers, variant)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FORMULAS)
def test_machine_code_is_numpys(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = load_formula(name)
    monkeypatch.setattr(cpu_table, "PART", 64)
    machine_is_numpys(made, dtype, monkeypatch)
    # three threads share the elements, two of the borders within rows
    monkeypatch.setattr(address_table, "SHARED", 1)
    monkeypatch.setattr(threads, "count", lambda: 3)
    shared: list[Any] = []
    call = threads.call
    monkeypatch.setattr(threads, "call", lambda *given: shared.append(given[1]) or call(*given))
    machine_is_numpys(made, dtype, monkeypatch)
    assert shared == [5, 5, 5]


def machine_is_numpys(made: StepFormula, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for maximize, decay in ((False, NONE), (True, COUPLED), (False, DECOUPLED)):
        variant = (maximize, decay, (False,) * len(made.flags))
        assert made.loop(variant).of(np.dtype(dtype)) is not None
        rows = drawn(made, dtype, (3, 5), (), (0,), (65,), (7, 31), (0,))
        own = [made.row([2.0 + i] + [0.5] * (len(made.scalars) - 1), made.example, 0.1, decay)[1] for i in range(len(rows))]
        copies = [[x.copy() for x in row] for row in rows]
        before = rows[0][0].copy()
        CpuTable(made, rows).run(None, np.array(own), variant)
        by_numpy(monkeypatch, made, copies, np.array(own), variant)
        assert (rows[0][0] != before).any()
        for row, copy in zip(rows, copies, strict=True):
            for x, y in zip(row, copy, strict=True):
                np.testing.assert_array_equal(x.astype(np.float64), y.astype(np.float64))


def test_where_arrays_lie_otherwise_numpy_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gradients the table holds where numpy keeps their addresses; a Python whose objects begin otherwise is noticed."""
    assert address_table.fields_work()
    monkeypatch.setattr(address_table, "FIELD", address_table.FIELD + 8)
    assert not address_table.fields_work()
    assert TableLoop(lambda p, g: p - g, 2, 0, (0,), through=1).of(np.dtype(np.float32)) is None


@pytest.mark.parametrize("machine", [True, False])
def test_other_layouts(machine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter in Fortran's order whose gradient is in C's, a window with gaps, and complex numbers as pairs: as C-ordered copies are stepped."""
    made, numbers, variant = load_formula("adam.ADAM"), np.array([[0.0, 0.1, 0.5, 0.1, 0.9, 0.1, 1e-8]]), (False, NONE, ())
    if not machine:
        monkeypatch.setattr(TableLoop, "of", lambda self, dtype: None)
    rng = np.random.default_rng(0)
    p, g, m, v = (rng.random((4, 6)) for _ in range(4))
    turned = [np.asfortranarray(p), g, np.asfortranarray(m), np.asfortranarray(v)]
    wide = np.zeros((4, 12))
    wide[:, ::2] = p
    gaps = [wide[:, ::2], g, m.copy(), v.copy()]
    plain = [p.copy(), g, m.copy(), v.copy()]
    for rows in ([plain], [turned, gaps]):
        CpuTable(made, rows).run(None, numbers, variant)
    for found in (turned, gaps):
        for x, y in zip(found, plain, strict=True):
            np.testing.assert_array_equal(x, y)
    assert (plain[0] != p).all()
    assert not wide[:, 1::2].any()
    pairs = [x.reshape(4, 3, 2).copy() for x in (p, g, m, v)]
    joined = [x.view(np.complex128)[..., 0].copy() for x in pairs]
    CpuTable(made, [pairs]).run(None, numbers, variant)
    CpuTable(made, [joined]).run(None, numbers, variant)
    for x, y in zip(pairs, joined, strict=True):
        np.testing.assert_array_equal(x.view(np.complex128)[..., 0], y)
