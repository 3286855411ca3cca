"""Reductions and scans of arrays that the CPU takes in several blocks: sums of float16 by their bits, products in stretches, running sums by rows."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt


@pytest.mark.parametrize("shape", [(40_001,), (7, 4099, 2)])
def test_a_long_sum_of_float16(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    x.flat[3], x.flat[5] = 6e-8, -65504  # subnormal, and the largest
    exact = x.astype(np.float64)
    found = tt.from_numpy(x).sum(dtype=tt.float32).item()
    assert abs(found - exact.sum()) <= 8 * 2.0**-23 * np.abs(exact).sum()
    for special in (np.inf, -np.inf, np.nan):
        y = x.copy()
        y.flat[9] = special
        np.testing.assert_equal(tt.from_numpy(y).sum().item(), special)


@pytest.mark.parametrize("shape", [(1000, 100), (7, 4099), (3, 17), (100_001,), (5, 1, 9000)])
def test_a_long_product(shape: tuple[int, ...]) -> None:
    x = 1 + 1e-3 * np.random.default_rng(0).standard_normal(shape)
    for dim in (None, -1):
        found = tt.from_numpy(x).prod() if dim is None else tt.from_numpy(x).prod(dim)
        exact = np.prod(x.astype(np.longdouble), axis=dim)
        np.testing.assert_allclose(found.numpy(), exact.astype(np.float64), rtol=1e-11)


@pytest.mark.parametrize("bad", [None, np.inf])
def test_running_sums_of_more_rows_than_a_block(bad: float | None) -> None:
    x = np.random.default_rng(0).standard_normal((700, 203))
    if bad is not None:
        x[650, 7] = bad  # not in the first block
    np.testing.assert_allclose(tt.from_numpy(x).cumsum(1).numpy(), np.cumsum(x, 1), rtol=1e-12, atol=1e-12)


def test_sums_over_runs_of_memory() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 20, 40))
    for part in (slice(None), slice(1, -1)):
        for dims in ((0, 2, 3), (2, 3), (1, 3), (0, 2)):
            found = tt.from_numpy(x)[..., part].sum(dims, keepdim=True).numpy()
            np.testing.assert_allclose(found, x[..., part].sum(axis=dims, keepdims=True), rtol=1e-12, atol=1e-12)


def test_softmax_where_rows_need_the_shift_and_where_not() -> None:
    x = np.random.default_rng(0).standard_normal((9, 200))
    for far in (0.0, 20.0, 900.0, -900.0):
        y = np.exp(x + far - (x + far).max(axis=1, keepdims=True))
        np.testing.assert_allclose(tt.from_numpy(x + far).softmax(1).numpy(), y / y.sum(axis=1, keepdims=True), rtol=1e-12)
