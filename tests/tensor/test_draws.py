"""Draws refuse arguments that make no distribution, naming them, before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt


def x() -> Any:
    return tt.zeros(3)


def byte() -> Any:
    return tt.zeros(3, dtype=tt.uint8)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tt.normal(0.0, -1.0, (2,)), ValueError, "normal: std is -1.0"),
    (lambda: tt.normal(x(), math.nan), ValueError, "normal: std is nan"),
    (lambda: tt.normal(x(), tt.tensor([1.0, -1.0, 0.0])), ValueError, "normal: all elements of std must be 0 or more; the least is -1"),
    (lambda: tt.normal(0.0, tt.tensor([math.nan])), ValueError, "normal: all elements of std"),
    (lambda: tt.normal(byte(), 1.0), TypeError, "normal: uint8"),
    (lambda: x().normal_(0, -1), ValueError, "normal_: std is -1"),
    (lambda: x().normal_(0, math.nan), ValueError, "normal_: std is nan"),
    (lambda: x().uniform_(2, 1), ValueError, r"uniform_: \[2, 1\)"),
    (lambda: x().uniform_(0, math.inf), ValueError, r"uniform_: \[0, inf\)"),
    (lambda: x().uniform_(-3e38, 3e38), ValueError, "no range of float32"),
    (lambda: x().half().uniform_(0, 70000), ValueError, "no range of float16"),
    (lambda: x().exponential_(0), ValueError, "exponential_: lambd is 0"),
    (lambda: x().exponential_(math.nan), ValueError, "exponential_: lambd is nan"),
    (lambda: x().bernoulli_(2), ValueError, "bernoulli_: p is 2"),
    (lambda: x().bernoulli_(math.nan), ValueError, "bernoulli_: p is nan"),
    (
        lambda: x().bernoulli_(tt.tensor([0.0, 2.0, 1.0])),
        ValueError,
        "bernoulli_: a probability is not between 0 and 1: they go from 0.0 to 2.0",
    ),
    (lambda: tt.bernoulli(tt.tensor([-0.5])), ValueError, "bernoulli: a probability"),
    (lambda: tt.bernoulli(tt.tensor([math.nan])), ValueError, "bernoulli: a probability"),
    (lambda: tt.bernoulli(x(), -0.1), ValueError, "bernoulli: p is -0.1"),
    (lambda: x().random_(0), ValueError, "random_: low 0 is not below high 0"),
    (lambda: x().random_(3, 2), ValueError, "random_: low 3 is not below high 2"),
    (lambda: byte().random_(0, 300), ValueError, "random_: 0 to 299 does not fit uint8"),
    (lambda: byte().random_(-1, 3), ValueError, "random_: -1 to 2 does not fit uint8"),
    (lambda: x().bool().random_(0, 3), ValueError, "does not fit bool"),
    (lambda: x().random_(1.5), TypeError, "bounds and counts are integers"),
    (lambda: tt.randint(0, 70000, (2,), dtype=tt.float16), ValueError, "does not fit float16"),
    (lambda: tt.randint(0, 9, (2,), dtype=tt.complex64), TypeError, "complex64 is not drawn"),
    (lambda: tt.randint(1.5, (2,)), TypeError, "bounds and counts are integers"),
    (lambda: tt.randint_like(byte(), 300), ValueError, "randint_like: 0 to 299 does not fit uint8"),
    (lambda: tt.randperm(300, dtype=tt.uint8), ValueError, "uint8 cannot tell 300 integers apart"),
    (lambda: tt.randperm(2050, dtype=tt.float16), ValueError, "float16 cannot tell 2050 integers apart"),
    (lambda: tt.randperm(3, dtype=tt.bool), TypeError, "randperm: bool"),
    (lambda: tt.randperm(3.5), TypeError, "randperm: 3.5"),
    (lambda: tt.multinomial(tt.tensor([1, 1]), 1), TypeError, "multinomial: int64"),
    (lambda: tt.multinomial(tt.ones(2, 2, 2), 1), ValueError, "multinomial: input has 3 dimensions"),
    (lambda: tt.multinomial(tt.ones(2), 0), ValueError, "multinomial: 0 draws from 2"),
    (lambda: tt.multinomial(tt.ones(2), 3), ValueError, "multinomial: 3 draws from 2"),
]


@pytest.mark.parametrize(("draw", "error", "message"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_before_anything_is_drawn(draw: Callable[[], Any], error: type[Exception], message: str) -> None:
    before = tt.get_rng_state().tolist()
    with pytest.raises(error, match=message):
        draw()
    assert tt.get_rng_state().tolist() == before


def test_bounds_that_just_fit() -> None:
    tt.manual_seed(0)
    assert int(byte().random_(256).max()) <= 255
    assert set(tt.zeros(100, dtype=tt.bool).random_(0, 2).tolist()) == {False, True}
    assert sorted(tt.randperm(256, dtype=tt.uint8).tolist()) == list(range(256))
    assert len(set(tt.randperm(2049, dtype=tt.float16).tolist())) == 2049
    assert tt.zeros(50, dtype=tt.int8).random_(100, None).min().item() >= 100
    assert x().uniform_(1, 1).tolist() == [1, 1, 1]
    assert x().normal_(3, 0).tolist() == [3, 3, 3]
    assert x().exponential_(math.inf).tolist() == [0, 0, 0]
    assert tt.multinomial(tt.tensor([0.0, 1.0]), 2).tolist() == [1, 0]  # weight 0 comes last
    assert tuple(tt.multinomial(tt.ones(0, 2), 1).shape) == (0, 1)


def test_normal_has_the_means_type() -> None:
    for mean, std, dtype in [
        (tt.zeros(2), tt.ones(2, dtype=tt.float64), tt.float32),
        (tt.zeros(2, dtype=tt.float64), tt.ones(2), tt.float64),
        (0.0, tt.ones(2, dtype=tt.float64), tt.float64),
        (tt.zeros(2, dtype=tt.float16), 1, tt.float16),
    ]:
        assert tt.normal(mean, std).dtype is dtype


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0), (-3.0, 1.0), (0.0, 0.5), (2.0, 2.0)])
def test_uniform_numbers_fill_their_range(a: float, b: float, on: str) -> None:
    tt.manual_seed(0)
    x = tt.empty(4000, device=on).uniform_(a, b)
    assert x.min().item() >= a
    assert x.max().item() <= b
    assert x.min().item() == pytest.approx(a, abs=0.01 * (b - a))
    assert x.max().item() == pytest.approx(b, abs=0.01 * (b - a))
    assert x.mean().item() == pytest.approx((a + b) / 2, abs=0.03 * (b - a))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.0, 2.0), (1.0, 1.0), (-3.0, 0.5), (2.0, 0.0)])
def test_normal_numbers_have_their_mean_and_deviation(mean: float, std: float, on: str) -> None:
    tt.manual_seed(0)
    for x in (tt.empty(4000, device=on).normal_(mean, std), tt.normal(mean, std, (4000,), device=on)):
        assert x.mean().item() == pytest.approx(mean, abs=0.06 * std)
        assert x.std().item() == pytest.approx(std, rel=0.06)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_complex_draw_is_a_tensor_of_any_shape(shape: tuple[int, ...]) -> None:
    x = tt.randn(shape, dtype=tt.complex64)
    assert (x * x - x.square()).abs().max().item() < 1e-6
    assert (x.dtype, x.shape) == (tt.complex64, shape)
