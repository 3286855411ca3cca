"""Sums and running sums in machine code beside float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritensor.llvm import compiler
from tritensor.llvm.passes import rows, sums

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
_TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", _TYPES[:2])
@pytest.mark.parametrize("n", [511, 512, 513, 100_000])
def test_sums_of_16_bit_floats(dtype: type, n: int) -> None:
    x = np.random.default_rng(0).standard_normal(n).astype(dtype)
    found, done = sums.total(x)
    assert done == n // 512 * 512
    wide = x[:done].astype(np.float64)
    assert abs(found - wide.sum()) <= 4 * np.finfo(np.float32).eps * np.abs(wide).sum()


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_sums_keep_infinity_and_nan(value: float) -> None:
    x = np.ones(1024, np.float16)
    x[700] = value
    np.testing.assert_equal(sums.total(x)[0], value)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("shape", [(5000,), (3, 1001), (700, 3), (300, 16), (100, 33), (2, 40, 31)])
def test_running_sums_are_those_of_float64(dtype: type, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    found = rows.running_sums(x)
    assert found is not None
    assert found.dtype == x.dtype
    want = np.cumsum(x.astype(np.float64), -1)
    if dtype is np.float64:
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)
    else:  # the order of additions in float64 shows in at most the last place
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-12)


def test_running_sums_from_an_infinity_on() -> None:
    x = np.ones((2, 2000), np.float32)
    x[0, 37], x[0, 900], x[1, 5] = np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        want = np.cumsum(x, 1)
    np.testing.assert_array_equal(rows.running_sums(x), want)


def test_what_running_sums_leave() -> None:
    assert rows.running_sums(np.ones(100, np.float32)) is None
    assert rows.running_sums(np.ones(5000, np.int64)) is None
    assert rows.running_sums(np.ones((100, 100), np.float32)[:, ::2]) is None


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("shape", [(3, 1001), (700, 3), (300, 64), (100, 130), (1, 5000)])
def test_products_of_rows(dtype: type, shape: tuple[int, ...]) -> None:
    x = (1 + 0.01 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    found = rows.products(x)
    assert found is not None
    want = x.astype(np.float64).prod(1)
    np.testing.assert_allclose(
        found.astype(np.float64),
        want,
        rtol=max(float(ml_dtypes.finfo(dtype).eps), 300 * np.finfo(np.float32 if x.itemsize < 8 else dtype).eps),
    )


def test_products_keep_zeros_and_nan() -> None:
    x = np.full((3, 1000), 1.0, np.float32)
    x[0, 7], x[1, 999], x[2, 3], x[2, 500] = 0.0, np.nan, 0.0, np.inf
    np.testing.assert_array_equal(rows.products(x), [0.0, np.nan, np.nan])
    assert rows.products(np.ones((2, 100), np.float32)) is None
