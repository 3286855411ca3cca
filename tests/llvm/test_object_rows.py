"""Programs over rows as functions of array objects: the same numbers as by addresses, every shape of operand, and what is handed on."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler
from tritensor.llvm.loops import SHARED
from tritensor.llvm.objects.rows import NEW_ROW, NEW_ROWS, NEW_SUMS, ROW, ROWS, VECTOR
from tritensor.llvm.passes.row_programs import Operand, RowProgram

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
HANDED_ON = object()
RNG = np.random.default_rng(5)


def everything(p: Any, x: Any, w: Any, v: Any, y: Any, peaks: Any, sums: Any, scale: Any) -> None:
    """y = (x - largest) w + scale v / sum x^2, of every row; peaks are the largest, the x y of all rows are added to sums."""
    peak = p.largest(x)
    p.keep(peaks, peak)
    factor = scale / p.sum(lambda x: x * x, x)
    factor = factor if v is None else factor * p.read(v)
    weights = [] if w is None else [w]

    def written(x: Any, peak: Any, factor: Any, *w: Any) -> Any:
        y = (x - peak) * w[0] + factor if w else x - peak + factor
        return (y, x * y) if sums is not None else y

    p.each(written, x, peak, factor, *weights, into=(y,), onto=() if sums is None else (sums,))


PROGRAM = RowProgram(everything, (ROWS, VECTOR, ROW, NEW_ROWS, NEW_ROW, NEW_SUMS), axes=True)
ALL = PROGRAM.as_function("everything", lambda *arguments: HANDED_ON)
SOME = PROGRAM.as_function("some", lambda *arguments: HANDED_ON, (True, False, False))


def by_addresses(x: np.ndarray, w: Any, v: Any, scale: float, axes: int, new: tuple[bool, bool] = (True, True)) -> tuple[Any, Any, Any]:
    n, lead = int(np.prod(x.shape[x.ndim - axes :])), x.shape[: x.ndim - axes]
    rows, kept = x.size // n, np.float64 if x.dtype == np.float64 else np.float32
    y, peaks, sums = np.empty(x.shape, x.dtype), np.empty(lead, kept), np.zeros(n)
    operands = [Operand(x, n), w if w is None else Operand(w, 0), v if v is None else Operand(v, 1, one="row"), Operand(y, n)]
    operands += [Operand(peaks, 1, one="row") if new[0] else None, Operand(sums, 0) if new[1] else None]
    assert PROGRAM((rows, 1, n), operands, (scale,))
    return y, peaks if new[0] else None, sums.astype(x.dtype).reshape(x.shape[x.ndim - axes :]) if new[1] else None


def draw(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


def same(found: tuple[Any, ...], want: tuple[Any, ...]) -> bool:
    return all(
        a is b is None or (a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes() and a.flags.c_contiguous)
        for a, b in zip(found, want, strict=True)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 5), 1), ((4,), 1), ((2, 3, 70), 1), ((2, 3, 4, 5), 2), ((1, 1), 1), ((6, 4), 2), ((30, 1000), 1)]
)
def test_the_same_numbers_as_by_addresses(shape: tuple[int, ...], axes: int, dtype: type) -> None:
    x, w, v = draw(*shape, dtype=dtype), draw(*shape[len(shape) - axes :], dtype=dtype), draw(*shape[: len(shape) - axes], dtype=dtype)
    assert same(ALL.call(x, w, v, 1.5, axes), by_addresses(x, w, v, 1.5, axes))
    assert same(ALL.call(x, None, v, 2, axes), by_addresses(x, None, v, 2.0, axes))
    assert same(ALL.call(x, w, None, 2, axes), by_addresses(x, w, None, 2.0, axes))
    assert same(SOME.call(x, w, None, -0.5, axes), by_addresses(x, w, None, -0.5, axes, (False, False)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves(dtype: type) -> None:
    x, w = draw(3, 20, dtype=dtype), draw(20)
    assert same(SOME.call(x, w, None, 1.0, 1), by_addresses(x, w, None, 1.0, 1, (False, False)))
    assert ALL.call(x, w, None, 1.0, 1) is HANDED_ON  # sums that would have to be rounded to 16 bits


class Subclass(np.ndarray):
    pass


def test_what_is_handed_on() -> None:
    x, w, v = draw(4, 6), draw(6), draw(4)
    assert ALL.call(x, w, v, 1.0, 1) is not HANDED_ON
    for given in (
        (x.T.copy().T, w, v, 1.0, 1), (x[:, ::2], draw(3), v, 1.0, 1), (x, draw(5), v, 1.0, 1), (x, w, draw(5), 1.0, 1), (x, draw(12)[::2], v, 1.0, 1),
        (x, w, v, 1.0, 3), (x, w, v, 1.0, 0), (x, w, v, 1.0, -1), (x, w, v, 1.0, 2**40), (x, w, v, 1.0, 2**70), (x, w, v, 1.0, True), (x, w, v, None, 1),
        (x, w, v, 1.0), (x, w, v, 1.0, 1.0), (x.view(Subclass), w, v, 1.0, 1), (x, w, v.view(Subclass), 1.0, 1), (x.astype(np.int64), w, v, 1.0, 1),
        (x.astype(">f4"), w, v, 1.0, 1), (None, w, v, 1.0, 1), (x[:0], w, v[:0], 1.0, 1), (x[:, :0], w[:0], v, 1.0, 1), (np.array(1, np.float32), w, v, 1.0, 1),
        (draw(2, SHARED // 2), draw(SHARED // 2), draw(2), 1.0, 1), (draw(2, 5000), draw(5000), draw(2), 1.0, 1), (x, w.astype(np.float64), v, 1.0, 1),
    ):  # fmt: skip
        assert ALL.call(*given) is HANDED_ON, given
    unaligned = np.zeros(97, np.uint8)[1:].view(np.float32).reshape(4, 6)
    assert ALL.call(unaligned, w, v, 1.0, 1) is HANDED_ON
    assert SOME.call(draw(2, 5000), None, None, 1.0, 1) is not HANDED_ON  # sums alone need room


def test_one_result_is_no_tuple() -> None:
    program = RowProgram(lambda p, x, y: p.each(lambda x, s: x / s, x, p.sum(lambda x: x, x), into=(y,)), (ROWS, NEW_ROWS))
    x = np.abs(draw(3, 9))
    made = program.as_function("shares", lambda x: HANDED_ON).call(x)
    np.testing.assert_allclose(made, x / x.sum(1, keepdims=True), rtol=1e-6)
