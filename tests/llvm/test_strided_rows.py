"""Formulas over windows of matrices in machine code: rows with gaps, windows that move, ends of rows, 16-bit floats, results written over inputs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler, simd_functions
from tritensor.llvm.simd import NotVectorizableError
from tritensor.llvm.strided_rows import WindowLoop

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
_two = WindowLoop(lambda a, b: (a + b, simd_functions.tanh(a)))


@pytest.mark.parametrize("n", [1, 7, 16, 33, 64, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_rows_and_nothing_beside_them(n: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((6, 3 * n)).astype(dtype)
    a, b = wide[:, :n], rng.standard_normal((3, n)).astype(dtype)
    room = np.full((6, 2 * n + 1), -7, dtype)
    out = np.full((3, n), -7, dtype)
    run = _two.bind([room[:, n : 2 * n], out], [a, b], [True, False, True, False])
    assert run is not None
    run(2, 3)
    kind = np.float64 if dtype is np.float64 else np.float32
    sums = a[2:5].astype(kind) + b.astype(kind)
    np.testing.assert_array_equal(room[2:5, n : 2 * n], sums.astype(dtype))
    np.testing.assert_allclose(out.astype(kind), np.tanh(a[2:5].astype(kind)), rtol=4 * float(ml_dtypes.finfo(dtype).eps))
    room[2:5, n : 2 * n] = -7
    assert (room == -7).all()
    run(0, 0)
    assert (room == -7).all()


def test_over_an_input() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    run = WindowLoop(lambda a: (a + 1.0,)).bind([x], [x], [False, False])
    assert run is not None
    run(5, 2)
    np.testing.assert_array_equal(x, np.arange(12).reshape(3, 4) + [[1], [1], [0]])


def test_what_is_left_to_numpy() -> None:
    def bent(a):
        raise NotVectorizableError("no")

    x = np.ones((2, 3), np.float32)
    assert WindowLoop(bent).bind([x], [x], [True, True]) is None
    assert _two.bind([x, x], [x.T.copy().T, x], [True] * 4) is None
    assert _two.bind([x, x], [x.astype(np.int8), x], [True] * 4) is None
