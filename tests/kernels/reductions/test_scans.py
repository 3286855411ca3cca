"""Scans of shapes that take every road on the CPU: long rows, many rows, wide ones, tails, infinities, NaN; and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt

SHAPES = [
    ((3, 1003), 1),
    ((2, 67), 1),
    ((1, 200_001), 1),
    ((70, 40), 0),
    ((300, 257), 0),
    ((2, 90, 5), 1),
    ((700, 130), 1),
    ((40, 2100), 1),
]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def drawn(shape: tuple[int, ...], dtype: Any = np.float32, low: float = -1.0) -> np.ndarray:
    return np.random.default_rng(3).uniform(low, 1.0, size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_running_sums(shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    x = (100 * drawn(shape)).astype(dtype)
    wide = x.astype(np.float64)
    bound = np.cumsum(np.abs(wide), axis=dim) * 8 * (np.finfo(dtype).eps if x.dtype.kind == "f" else 0)
    assert (np.abs(tt.cumsum(tt.tensor(x), dim).numpy() - np.cumsum(wide, axis=dim)) <= bound).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_running_sums_before_an_infinity_are_finite(bad: float) -> None:
    x = drawn((2, 300))
    x[1, 200] = bad
    np.testing.assert_allclose(tt.cumsum(tt.tensor(x), 1).numpy(), np.cumsum(x.astype(np.float64), axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_running_products(shape: tuple[int, ...], dim: int) -> None:
    x = 1 + 1e-3 * drawn(shape)
    np.testing.assert_allclose(tt.cumprod(tt.tensor(x), dim).numpy(), np.cumprod(x.astype(np.float64), axis=dim), rtol=2e-7)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("values", ["drawn", "ties", "nan", "rising", "whole"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_running_extremes(shape: tuple[int, ...], dim: int, values: str, name: str) -> None:
    x = drawn(shape)
    if values == "ties":
        x = np.round(3 * x)
    elif values == "nan":
        x[drawn(shape, low=0.0) > 0.999] = np.nan
    elif values == "rising":
        x = np.sort(x, axis=dim)
    elif values == "whole":
        x = (100 * x).astype(np.int64)
    found = getattr(tt, name)(tt.tensor(x), dim)
    want = (np.maximum if name == "cummax" else np.minimum).accumulate(x, axis=dim)
    np.testing.assert_array_equal(found.values.numpy(), want)
    places = np.arange(shape[dim]).reshape([-1 if a == dim else 1 for a in range(len(shape))])
    sets = np.where((x == want) | (x != x), places, 0)  # the last place that set or equalled the record
    np.testing.assert_array_equal(found.indices.numpy(), np.maximum.accumulate(sets, axis=dim))


@pytest.mark.parametrize("scale", [1.0, 900.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), SHAPES[:6])
def test_running_log_sums(shape: tuple[int, ...], dim: int, dtype: Any, scale: float) -> None:
    x = (scale * drawn(shape)).astype(dtype)
    want = np.logaddexp.accumulate(x.astype(np.longdouble), axis=dim)  # float64 itself would lose digits on the way
    np.testing.assert_allclose(
        tt.logcumsumexp(tt.tensor(x), dim).numpy(), want, rtol=16 * np.finfo(dtype).eps, atol=16 * np.finfo(dtype).eps
    )


def test_log_sums_of_nothing_and_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf, 1.0, np.inf, 2.0, np.nan, 0.0]], np.float32)
    np.testing.assert_array_equal(tt.logcumsumexp(tt.tensor(x), 1).numpy(), [[-np.inf, -np.inf, 1.0, np.inf, np.inf, np.nan, np.nan]])


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    ("values", "slopes"),
    [
        ([np.inf, 0.5, 0.0], [np.nan, 0.0, 0.0]),
        ([0.5, np.inf, 0.0, 1.0], [1.0, np.nan, 0.0, 0.0]),
        ([np.inf, 0.5, np.inf], [np.nan, 0.0, np.nan]),
        ([-np.inf, 0.5, -np.inf], [0.0, 2.0, 0.0]),
    ],
)
def test_slopes_of_log_sums_beside_infinities(values: list[float], slopes: list[float], graph: bool, on: str) -> None:
    x = tt.tensor(values, device=on, requires_grad=True)
    (g,) = tt.autograd.grad(x.logcumsumexp(0).sum(), x, create_graph=graph)
    np.testing.assert_array_equal(g.detach().cpu().numpy(), slopes)


@pytest.mark.parametrize(("n", "width"), [(5, 3), (500, 1), (1001, 2), (60, 700), (2500, 7)])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(n: int, width: int, reverse: bool) -> None:
    a, b = drawn((n, width), np.float64), drawn((n, width), np.float64)[::-1].copy()
    want, before = np.empty_like(b), np.zeros(width)
    for i in reversed(range(n)) if reverse else range(n):
        want[i] = before = a[i] * before + b[i]
    np.testing.assert_allclose(tt.ops.linear_scan(tt.tensor(a), tt.tensor(b), dim=0, reverse=reverse).numpy(), want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("zeros", [(), (400,), (3, 5, 900)])
def test_the_gradient_of_a_running_product(zeros: tuple[int, ...]) -> None:
    """Beside finite differences' reach: each term g_j prod of the others up to j, in full, for some elements."""
    x = 1 + 1e-2 * drawn((1000,), np.float64)
    x[list(zeros)] = 0
    leaf = tt.tensor(x).requires_grad_()
    weights = drawn((1000,), np.float64)
    (tt.cumprod(leaf, 0) * tt.tensor(weights)).sum().backward()
    for i in (0, 3, 4, 399, 400, 999):
        others = x.copy()
        others[i] = 1
        np.testing.assert_allclose(leaf.grad.numpy()[i], (np.cumprod(others) * weights)[i:].sum(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("n", [1, 40, 5000, 9001])
@pytest.mark.parametrize("rows", [1, 3])
def test_long_products(n: int, rows: int) -> None:
    x = 1 + 1e-2 * drawn((rows, n), np.float64)
    np.testing.assert_allclose(tt.prod(tt.tensor(x), 1).numpy(), np.prod(x, axis=1), rtol=1e-12)
    np.testing.assert_allclose(tt.prod(tt.tensor(x)).item(), np.prod(x), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 7), (2, 384), (5, 1009), (4, 100, 3)])
def test_sums_of_squares(shape: tuple[int, ...]) -> None:
    x = drawn(shape)
    for dims in ((0,), (len(shape) - 1,), tuple(range(len(shape)))):
        want = np.sqrt((x.astype(np.float64) ** 2).sum(dims))
        np.testing.assert_allclose(tt.norm(tt.tensor(x), dim=dims).numpy(), want, rtol=1e-6)


def test_sums_of_exponentials_of_complex_numbers() -> None:
    z = np.random.default_rng(4).standard_normal((2, 9)).astype(np.complex64) + 1j
    found = tt.logcumsumexp(tt.tensor(z), 1)
    np.testing.assert_allclose(np.exp(found.numpy()), np.exp(z).cumsum(1), rtol=1e-5)
