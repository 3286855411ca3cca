"""Every op that the CPU runs as machine code, beside its numpy reference, in every type that goes that way."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler
from tritensor.llvm.loops import MANY
from tritensor.ops.table import Op, registry

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
_OPS = [op for op in registry.everything().values() if hasattr(op.cpu, "in_numpy")]
_ULP = {2: 1, 4: 6, 8: 6}  # both sides are within 4 of the truth, mostly 2; a rounding to 16 bits may fall to either side
# what cancels where the result is near 0, in numpy as here: compared in units of 1
_CANCELS = {"logaddexp", "logaddexp2", "lgamma"}
_OFF = {"lgamma": 20, "digamma": 16}  # left of 0 they are differences of numbers several, for digamma up to ten times, as large


def _many(x: Any, dtype: np.dtype) -> Any:
    """A sample's array, repeated until machine code takes it; numbers stay."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    with np.errstate(over="ignore"):  # beyond 16 bits: infinite in both
        return np.resize(np.asarray(x, np.float64).astype(dtype), (MANY + 7,))


def _cases() -> list[Any]:
    return [pytest.param(op, t, id=f"{op.name}-{t.name}") for op in _OPS for t in sorted(op.cpu.types, key=str)]


def test_most_elementwise_ops_are_there() -> None:
    assert len(_OPS) > 100


@pytest.mark.parametrize(("op", "dtype"), _cases())
def test_machine_code_is_numpy(op: Op, dtype: np.dtype) -> None:
    compared = 0
    for sample in op.samples(np.random.default_rng(3)):
        if not all(isinstance(x, float | int) or (isinstance(x, np.ndarray) and x.dtype.kind == "f") for x in sample.inputs):
            continue
        inputs = [_many(x, dtype) for x in sample.inputs]
        if not any(isinstance(x, np.ndarray) and x.size >= MANY for x in inputs):
            continue
        with np.errstate(all="ignore"):
            found, want = op.cpu(*inputs, **sample.attrs), op.cpu.in_numpy(*inputs, **sample.attrs)
        assert found.dtype == want.dtype
        compared += 1
        if found.dtype == np.bool_:
            np.testing.assert_array_equal(found, want)
            continue
        f, w = found.astype(np.float64), want.astype(np.float64)
        unknown = ~np.isfinite(w)
        np.testing.assert_array_equal(f[unknown], w[unknown])
        off = np.abs(f[~unknown] - w[~unknown]) / _unit(w[~unknown], want.dtype, op.name in _CANCELS)
        assert off.size == 0 or off.max() <= _OFF.get(op.name, _ULP[dtype.itemsize]), (
            inputs,
            off.max(),
            f[~unknown][off.argmax()],
            w[~unknown][off.argmax()],
        )
    assert compared


def _unit(values: np.ndarray, dtype: np.dtype, cancels: bool) -> np.ndarray:
    """One in the last place of each value."""
    size = np.maximum(np.abs(values), 1.0 if cancels else float(ml_dtypes.finfo(dtype).tiny))
    return 2.0 ** np.floor(np.log2(size)) * float(ml_dtypes.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_where(dtype: type) -> None:
    rng = np.random.default_rng(0)
    condition, a, b = rng.random((60, 70)) < 0.5, rng.standard_normal((60, 70)).astype(dtype), rng.standard_normal(70).astype(dtype)
    a[3, 5], b[7] = np.nan, np.inf
    where = registry["where"].cpu
    for given in ((condition, a, b), (condition[0], a, b), (condition.T.copy().T, a, b), (condition, a.T.copy().T, a)):
        np.testing.assert_array_equal(where(*given).astype(np.float64), np.where(*given).astype(np.float64))
    kept = a.copy()
    where(condition, a, b, out=a)
    np.testing.assert_array_equal(a.astype(np.float64), np.where(condition, kept, b).astype(np.float64))
