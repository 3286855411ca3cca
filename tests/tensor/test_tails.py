"""Draws of tensors at their tails and at the ends of their supports, in every floating type, on both devices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tritensor as tt
from tests.distributions.tails import CHANCE, wrong_counts
from tritensor.ground import dtypes
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.tensor.functions.creation import distributions, random

FLOATS = (tt.float16, tt.bfloat16, tt.float32, tt.float64)


def _of(fill: Callable[[Any], Any]) -> Callable[[int, tt.dtype], Any]:
    return lambda n, dtype: fill(tt.empty(n, dtype=dtype))


# name: (n numbers of a type, scipy's distribution, the ends of the support that no number may reach)
SAMPLERS: dict[str, tuple[Callable[[int, tt.dtype], Any], Any, tuple[float, float]]] = {
    "rand": (lambda n, dtype: tt.rand(n, dtype=dtype), stats.uniform(), (-math.inf, 1)),
    "uniform_": (_of(lambda x: x.uniform_(-1, 3)), stats.uniform(-1, 4), (-math.inf, 3)),
    "uniform_ above 1": (_of(lambda x: x.uniform_(1, 2)), stats.uniform(1, 1), (-math.inf, 2)),
    "randn": (lambda n, dtype: tt.randn(n, dtype=dtype), stats.norm(), (-math.inf, math.inf)),
    "normal_": (_of(lambda x: x.normal_(3, 0.5)), stats.norm(3, 0.5), (-math.inf, math.inf)),
    "normal of tensors": (_of(lambda x: tt.normal(tt.full_like(x, 3), tt.full_like(x, 0.5))), stats.norm(3, 0.5), (-math.inf, math.inf)),
    "exponential_": (_of(lambda x: x.exponential_()), stats.expon(), (0, math.inf)),
    "exponential_ of rate 2000": (_of(lambda x: x.exponential_(2000)), stats.expon(scale=1 / 2000), (0, math.inf)),
    "cauchy_": (_of(lambda x: x.cauchy_(1, 2)), stats.cauchy(1, 2), (-math.inf, math.inf)),
    "log_normal_": (_of(lambda x: x.log_normal_(0.5, 1)), stats.lognorm(1, scale=math.exp(0.5)), (0, math.inf)),
    "geometric_": (_of(lambda x: x.geometric_(0.3)), stats.geom(0.3), (0, math.inf)),
    "poisson": (_of(lambda x: tt.poisson(tt.full_like(x, 3))), stats.poisson(3), (-1, math.inf)),
    "poisson of many": (_of(lambda x: tt.poisson(tt.full_like(x, 40))), stats.poisson(40), (-1, math.inf)),
    "binomial": (_of(lambda x: tt.binomial(tt.full_like(x, 100), tt.full_like(x, 0.5))), stats.binom(100, 0.5), (-1, 101)),
    "trunc_normal_": (_of(lambda x: init.trunc_normal_(x, 0, 1, -4, 4)), stats.truncnorm(-4, 4), (-4.01, 4.01)),
    "rrelu": (_of(lambda x: -F.rrelu(x.fill_(-1), 0.25, 0.5, training=True)), stats.uniform(0.25, 0.25), (0, 0.5)),
}


def _held(name: str, n: int, dtype: tt.dtype) -> None:
    draw, theirs, (low, high) = SAMPLERS[name]
    tt.manual_seed(3)
    x = draw(n, dtype)
    assert x.dtype is dtype
    assert wrong_counts(x, theirs, down=name == "rand", below=high) == []
    assert x.min().item() > low or low == -math.inf
    assert x.max().item() < high or high == math.inf


DRAWS = pytest.mark.parametrize("n", [1 << 18, pytest.param(1 << 22, marks=[pytest.mark.slow, pytest.mark.full])])


@DRAWS
@pytest.mark.parametrize("name", SAMPLERS)
def test_as_many_as_their_distribution_says(name: str, n: int) -> None:
    for dtype in FLOATS:
        _held(name, n, dtype)


# name: (n numbers of a type, of which those that are not 0 have this probability)
CHANCES: dict[str, tuple[Callable[[int, tt.dtype, float], Any], tuple[float, ...]]] = {
    "bernoulli": (lambda n, dtype, p: tt.bernoulli(tt.full((n,), p, dtype=dtype)), (1e-4, 1e-3, 0.1, 0.75)),
    "bernoulli_ of a number": (lambda n, dtype, p: tt.empty(n, dtype=dtype).bernoulli_(p), (1e-9, 1e-4, 0.1, 0.75)),
    "bernoulli_ of a tensor": (lambda n, dtype, p: tt.empty(n, dtype=dtype).bernoulli_(tt.full((n,), p, dtype=dtype)), (1e-4, 0.1)),
    "dropout": (lambda n, dtype, p: F.dropout(tt.ones(n, dtype=dtype), p) == 0, (1e-4, 0.1, 0.9999)),
    "multinomial": (lambda n, dtype, p: tt.multinomial(tt.tensor([1 - p, p], dtype=dtype), n, True), (1e-4, 0.1)),
    "Bernoulli": (lambda n, dtype, p: tt.distributions.Bernoulli(tt.tensor(p, dtype=dtype)).sample((n,)), (1e-4, 0.1, 0.75)),
}


def _as_often(name: str, n: int, dtype: tt.dtype) -> None:
    draw, chances = CHANCES[name]
    for p in chances:
        tt.manual_seed(3)
        count = int((draw(n, dtype, p) != 0).sum())
        weights = tt.tensor([1 - p, p], dtype=dtype).double()
        given = {"dropout": p, "bernoulli_ of a number": p, "multinomial": (weights[1] / weights.sum()).item()}.get(name, weights[1].item())
        low, high = (stats.binom.ppf(CHANCE, n, max(given - 2.0**-24, 0)), stats.binom.isf(CHANCE, n, given + 2.0**-24))
        assert low <= count <= high, (p, count, n * given)


@DRAWS
@pytest.mark.parametrize("name", CHANCES)
def test_chances_that_are_small(name: str, n: int) -> None:
    for dtype in FLOATS:
        _as_often(name, n, dtype)


def test_what_a_word_of_zeros_becomes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends of the uniform numbers themselves, which come once in 2^24 draws."""
    for dtype in FLOATS:
        kind = random.compute_type(dtype.numpy)
        ends = [0.0, 1 - 2.0**-53 if kind == np.float64 else 1 - 2.0**-24]
        for module in (random, distributions):
            monkeypatch.setattr(module, "draw_uniform", lambda s, k, on, g, ends=ends: tt.tensor(ends, dtype=dtypes.of(k)))
        x = tt.empty(2, dtype=dtype)
        small, large = x.exponential_().tolist()
        assert 0 < small <= 2.0**-24
        assert large == pytest.approx(53 * math.log(2) if kind == np.float64 else 24 * math.log(2), rel=0.01)
        low, high = x.double().copy_(x.cauchy_()).tolist()
        assert low == -high
        if dtype is not tt.float16:  # which ends at 65504
            assert high == pytest.approx((2.0**54 if kind == np.float64 else 2.0**25) / math.pi, rel=0.01)
        assert x.uniform_(1, 2).max().item() < 2
        assert x.uniform_(-3, -1).max().item() < -1
        assert x.geometric_(0.5)[0].item() == 1
        noise = F.gumbel_softmax(tt.zeros(2, dtype=dtype))
        assert noise.isfinite().all()


def test_gumbel_noise_of_16_bits() -> None:
    """The difference of two Gumbel numbers is logistic: the odds of a class, whose tail a noise drawn in 8 bits lacks."""
    for dtype in FLOATS:
        tt.manual_seed(4)
        odds = F.gumbel_softmax(tt.zeros(1 << 18, 2, dtype=dtype), tau=4.0).double().log()
        if dtype.itemsize > 2:
            assert wrong_counts(4 * (odds[:, 0] - odds[:, 1]), stats.logistic()) == []
        beyond = ((4 * (odds[:, 0] - odds[:, 1])).abs() > 9).sum().item()
        assert beyond == pytest.approx(2 * (1 << 18) * stats.logistic.sf(9), rel=0.35)


def test_the_largest_of_16_bits_stay_below_one() -> None:
    for dtype in (tt.float16, tt.bfloat16):
        for on in ("cpu", "cuda"):
            tt.manual_seed(1)
            x = tt.rand(1 << 13, dtype=dtype, device=on)
            assert x.max().item() < 1
            assert (x == 0).sum().item() <= 1
