"""Programs over rows in machine code: sums, the largest, what is written and added, of whole rows and of parts, in every type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler
from tritensor.llvm.passes.row_programs import Operand, RowProgram

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
ROUNDING = {2: 1e-2, 4: 1e-5, 8: 1e-13}


def everything(p, x, w, v, y, onto, sums, peaks, scale):
    """y = (x - largest) w + v scale / sum x^2 / count; the sums of x and of x^2; x y is added to `onto`."""
    peak = p.largest(x)
    total, squares = p.sum(lambda x: (x, x * x), x)
    p.keep(sums, total)
    p.keep(peaks, peak)
    factor = scale * p.read(v) / squares / p.count

    def written(x, peak, w, factor):
        y = (x - peak) * w + factor
        return (y, x * y) if onto is not None else y

    p.each(written, x, peak, w, factor, into=(y,), onto=() if onto is None else (onto,))


PROGRAM = RowProgram(everything)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 7, 15, 16, 17, 63, 64, 65, 100, 256])
def test_rows(dtype, n):
    rng = np.random.default_rng(n)
    rows, kept = 5, np.float64 if dtype is np.float64 else np.float32
    x, w = rng.standard_normal((rows, n)).astype(dtype), rng.standard_normal(n).astype(dtype)
    v = rng.standard_normal(rows).astype(kept)
    room = np.full((rows * n + 64,), 7, dtype)  # what lies behind the last row stays as it is
    y, onto, sums, peaks = room[: rows * n].reshape(rows, n), np.ones(n), np.empty(rows, kept), np.empty(rows, kept)
    operands = [Operand(x, n), Operand(w, 0), Operand(v, 1, one="row"), Operand(y, n), Operand(onto, 0)]
    assert PROGRAM((rows, 1, n), [*operands, Operand(sums, 1, one="row"), Operand(peaks, 1, one="row")], (2.5,))
    wide, tolerance = x.astype(np.float64), ROUNDING[np.dtype(dtype).itemsize]
    want = (wide - wide.max(1, keepdims=True)) * w.astype(np.float64) + (2.5 * v / (wide**2).sum(1) / n)[:, None]
    np.testing.assert_allclose(sums, wide.sum(1), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(peaks, x.max(1).astype(kept))
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(onto, 1 + (wide * want).sum(0), rtol=1e-4, atol=1e-4)
    assert (room[rows * n :] == 7).all()


def by_parts(p, x, w, y, sums):
    total = p.sum(lambda x, w: x * w, x, w)
    p.keep(sums, total)
    p.each(lambda x, w, t: x * w - t, x, w, total / p.count, into=(y,))


@pytest.mark.parametrize("n", [3, 16, 70])
def test_parts_of_a_row_lie_apart_and_have_numbers_of_their_own(n):
    """Planes of channels: a row is a channel, its parts are images."""
    rng = np.random.default_rng(n)
    images, channels = 4, 3
    x = rng.standard_normal((images, channels, n)).astype(np.float32)
    w = rng.standard_normal((images, channels)).astype(np.float32)
    y, sums = np.empty_like(x), np.empty(channels)
    operands = [Operand(x, n, channels * n), Operand(w, 1, channels, one="part"), Operand(y, n, channels * n), Operand(sums, 1, one="row")]
    assert RowProgram(by_parts)((channels, images, n), operands)
    product = x * w[:, :, None]
    np.testing.assert_allclose(sums, product.sum((0, 2), dtype=np.float64), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y, product - product.mean((0, 2), keepdims=True), rtol=1e-5, atol=1e-5)


def test_a_long_sum_keeps_its_digits():
    x = np.full((1, 10_000_019), 0.1, np.float32)
    out = np.empty(1)
    assert RowProgram(lambda p, x, y: p.keep(y, p.sum(lambda x: x, x)))((1, 1, x.size), [Operand(x, 0), Operand(out, 1, one="row")])
    np.testing.assert_allclose(out[0], float(np.float32(0.1)) * x.size, rtol=2e-7)
