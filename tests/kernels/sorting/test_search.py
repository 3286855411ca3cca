"""Searches: long rows with every place sought, NaN in rows, positions across blocks."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.sorting import search


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 1000])
def test_rows_are_searched_as_numpy_does(n: int, right: bool) -> None:
    rng = np.random.default_rng(n)
    rows = np.sort(np.round(rng.normal(size=(3, n)) * 20), 1)
    values = np.concatenate([rows, rows + 0.5, np.full((3, 1), -1e9), np.full((3, 1), np.inf)], 1)
    side = "right" if right else "left"
    want = np.stack([np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)])
    assert np.array_equal(search._searchsorted(rows, values, right=right), want)
    assert np.array_equal(search._bisected(rows, values, None, right), want)
    assert np.array_equal(search._searchsorted(rows[0], values[0], right=right), want[0])


def test_chunks_of_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CHUNK", 7)
    rows = np.sort(np.random.default_rng(0).normal(size=(4, 30)), 1)
    want = np.stack([np.searchsorted(r, r[::3]) for r in rows])
    assert np.array_equal(search._searchsorted(rows, np.ascontiguousarray(rows[:, ::3])), want)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_devices_agree_where_nan_stands_in_a_row(on: str) -> None:
    nan = float("nan")
    rows = tt.tensor([[1.0, nan], [nan, nan], [1.0, 5.0]], device=on)
    sought = tt.tensor([[2.0, nan, 0.0]] * 3, device=on)
    assert tt.searchsorted(rows, sought).tolist() == [[2, 2, 2], [2, 2, 2], [1, 2, 0]]
    assert tt.searchsorted(rows[0], sought[0], right=True).tolist() == [2, 2, 2]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_positions_across_blocks(on: str) -> None:
    flags = np.random.default_rng(1).random(5000) < 0.3
    x = tt.from_numpy(flags).to(on)
    assert x.nonzero(as_tuple=True)[0].tolist() == np.flatnonzero(flags).tolist()
    wide = x.reshape(50, 100)
    assert wide.nonzero().tolist() == np.argwhere(flags.reshape(50, 100)).tolist()
    assert wide.nonzero().stride() == (1, int(flags.sum()))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_distinct_rows_of_many_columns(on: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (40, 5)).astype(np.float32)
    values, where, how_many = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    found = tt.unique(tt.from_numpy(x).to(on), dim=0, return_inverse=True, return_counts=True)
    assert [t.tolist() for t in found] == [values.tolist(), where.reshape(-1).tolist(), how_many.tolist()]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_second_derivatives_go_through_a_sort(on: str) -> None:
    x = tt.tensor([3.0, 1.0, 2.0], device=on, requires_grad=True)
    weights = tt.tensor([1.0, 10.0, 100.0], device=on)
    (first,) = tt.autograd.grad((tt.sort(x)[0] ** 3 * weights).sum(), x, create_graph=True)
    assert first.tolist() == [2700.0, 3.0, 120.0]
    (second,) = tt.autograd.grad(first.sum(), x)
    assert second.tolist() == [1800.0, 6.0, 120.0]
    (shared,) = tt.autograd.grad(tt.tensor([2.0, 1.0, 2.0, 5.0, 2.0], device=on, requires_grad=True).median() * 0 + x.median(), x)
    assert shared.tolist() == [0.0, 0.0, 1.0]


def test_the_median_of_equals_shares_its_gradient() -> None:
    x = tt.tensor([2.0, 1.0, 2.0, 5.0, float("-inf")], requires_grad=True)
    x.median().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0.0, 0.5, 0.0, 0.0]
    low = tt.tensor([float("-inf"), float("-inf"), 1.0], requires_grad=True)
    low.median().backward()
    assert low.grad is not None
    assert low.grad.tolist() == [0.5, 0.5, 0.0]
