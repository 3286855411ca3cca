"""Rows named by numbers in machine code: every width, 16-bit floats, runs, rows that are left out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler
from tritensor.llvm.passes.gather_rows import add_rows, max_rows

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")


@pytest.mark.parametrize("n", [1, 5, 16, 64, 151])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_rows_are_added_and_compared(n: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    kind = np.float64 if dtype is np.float64 else np.float32
    x, scale = rng.integers(-4, 5, (9, n)).astype(dtype), rng.integers(1, 4, 40).astype(dtype)
    to, places = np.sort(rng.integers(0, 6, 40)), rng.integers(0, 9, 40)
    rng.shuffle(to[20:])  # runs first, then any order
    for skip in ((-1, -1), (2, -1), (-1, 3)):
        kept = (to != skip[0]) & (places != skip[1])
        want = np.ones((6, n), kind)
        np.add.at(want, to[kept], scale[kept, None].astype(kind) * x[places[kept]].astype(kind))
        room = np.ones((8, n), kind)
        assert add_rows(room[1:7], x, scale, to, places, skip)
        np.testing.assert_array_equal(room, np.concatenate([room[:1] * 0 + 1, want, room[:1] * 0 + 1]))  # small whole numbers: exact
        best, which = np.zeros((6, n), kind), np.full((6, n), -1)
        assert max_rows(best, which, x, to, places, skip)
        for row in range(6):
            mine = places[kept & (to == row)]
            expected = mine[x[mine].argmax(0)] if mine.size else np.full(n, -1)
            np.testing.assert_array_equal(which[row], expected)
            if mine.size:
                np.testing.assert_array_equal(best[row], x[mine].astype(kind).max(0))


def test_what_numpy_has_to_do() -> None:
    at = np.zeros(1, np.int64)
    assert not add_rows(np.zeros((1, 3)), np.ones((3, 4)).T[:, :3], None, at, at, (-1, -1))  # rows that do not lie in one piece
    assert not add_rows(np.zeros((1, 3), np.int64), np.ones((1, 3), np.int64), None, at, at, (-1, -1))
