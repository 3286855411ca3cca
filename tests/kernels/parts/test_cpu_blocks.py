"""Elementwise ops that numpy has as well, but element by element: the same numbers over several blocks, zeros, infinities and NaN among them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.parts.formula_llvm import to_common_layout

ODD = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, 1e-38, 2.5, -2.5, 6, 3, -3, 0.125, 1e7, 16777216, 0.5, -0.5])


def pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the odd values, pairs of near sizes, pairs of any size, whole numbers."""
    rng = np.random.default_rng(0)
    grid = [v.reshape(-1) for v in np.meshgrid(ODD, ODD)]
    made = [
        np.concatenate(
            [
                odd,
                rng.standard_normal(40_000),
                10.0 ** rng.uniform(-30, 30, 40_000) * rng.choice([-1, 1], 40_000),
                rng.integers(-50, 50, 20_000),
            ]
        )
        for odd in grid
    ]
    with np.errstate(all="ignore"):
        return made[0].astype(dtype), made[1].astype(dtype)


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r = np.remainder(a, b)
    return np.where(r == 0, np.copysign(r, a), r)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "numpys"), [("fmod", np.fmod), ("remainder", _remainder), ("floor_divide", np.floor_divide), ("nextafter", np.nextafter)]
)
def test_bits_are_numpys(name: str, numpys: Callable[..., np.ndarray], dtype: type) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        want = numpys(a, b)
    got = getattr(tt, name)(tt.from_numpy(a), tt.from_numpy(b)).numpy()
    bits = np.int32 if dtype is np.float32 else np.int64
    wrong = (got.view(bits) != want.view(bits)) & ~(np.isnan(got) & np.isnan(want))
    assert not wrong.any(), [(a[i], b[i], got[i], want[i]) for i in np.flatnonzero(wrong)[:5]]


@pytest.mark.parametrize(("name", "numpys"), [("pow", np.power), ("hypot", np.hypot)])
def test_numbers_are_numpys(name: str, numpys: Callable[..., np.ndarray]) -> None:
    a, b = pairs(np.float32)
    with np.errstate(all="ignore"):
        want = numpys(a, b)
    got = getattr(tt, name)(tt.from_numpy(a), tt.from_numpy(b)).numpy()
    np.testing.assert_array_max_ulp(got[np.isfinite(want)], want[np.isfinite(want)], 2)
    np.testing.assert_array_equal(got[~np.isfinite(want)], want[~np.isfinite(want)])
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


def test_what_is_exact_at_its_ends() -> None:
    x = tt.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan")] * 1000)
    for t in (x, x.double()):
        np.testing.assert_array_equal(tt.erfc(t).numpy()[:5], [1.0, 1.0, 0.0, 2.0, np.nan])
        np.testing.assert_array_equal(tt.erf(t).numpy()[:5], [0.0, 0.0, 1.0, -1.0, np.nan])
        np.testing.assert_array_equal(tt.special.ndtr(t).numpy()[:5], [0.5, 0.5, 1.0, 0.0, np.nan])
    np.testing.assert_array_equal(tt.sin(x.double()).numpy()[:5], [0.0, -0.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(tt.erf(tt.tensor([5.9, 5.95, 10.0], dtype=tt.float64)).numpy()[1:], [1.0, 1.0])


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
def test_relu_of_16_bits(dtype: tt.dtype) -> None:
    x = tt.tensor([0.0, -0.0, 1.5, -1.5, float("inf"), -float("inf")]).to(dtype)
    np.testing.assert_array_equal(tt.relu(x).float().numpy(), [0.0, 0.0, 1.5, 0.0, np.inf, 0.0])
    strange = tt.tensor([float("nan"), -float("nan"), -2.0, 3.0]).to(dtype)
    np.testing.assert_array_equal(tt.relu(strange).float().numpy(), [np.nan, np.nan, 0.0, 3.0])


def test_one_element_has_no_say_in_the_order_of_memory() -> None:
    number, turned = np.ones((1, 1)), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    given, shape, order = to_common_layout([number, turned])
    assert given[1] is turned
    assert (shape, order) == ((2, 3), "F")
