"""poisson, binomial, cauchy_, geometric_, log_normal_, complex draws: means and variances, the same numbers on both devices, what is refused."""

from __future__ import annotations

import math

import pytest

import tritensor as tt

N = 20000


def moments(x: tt.Tensor) -> tuple[float, float]:
    return x.double().mean().item(), x.double().var().item()


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.9, 10.1, 60.0, 1e4])
def test_poisson_has_the_rate_as_mean_and_variance(rate: float) -> None:
    tt.manual_seed(1)
    mean, variance = moments(tt.poisson(tt.full((N,), rate, dtype=tt.float64)))
    assert abs(mean - rate) < 5 * math.sqrt(rate / N)
    assert abs(variance / rate - 1) < 5 * math.sqrt((2 + 1 / rate) / N)


@pytest.mark.parametrize(("count", "p"), [(5, 0.3), (5, 0.9), (100, 0.05), (100, 0.5), (1000, 0.97), (10**6, 0.2)])
def test_binomial_has_its_mean_and_variance(count: int, p: float) -> None:
    tt.manual_seed(2)
    x = tt.binomial(tt.full((N,), float(count), dtype=tt.float64), tt.full((N,), p, dtype=tt.float64))
    mean, variance = moments(x)
    spread = count * p * (1 - p)
    assert x.min().item() >= 0
    assert x.max().item() <= count
    assert abs(mean - count * p) < 5 * math.sqrt(spread / N)
    assert abs(variance / spread - 1) < 5 * math.sqrt((2 + 1 / spread) / N)


def test_counts_follow_the_probabilities() -> None:
    """Chi-square of Poisson counts around the border between the two algorithms, 5 deviations wide."""
    for rate in (3.0, 12.0):
        tt.manual_seed(3)
        x = tt.poisson(tt.full((N,), rate)).tolist()
        chi = cells = 0
        for k in range(30):
            expected = N * math.exp(k * math.log(rate) - rate - math.lgamma(k + 1))
            if expected > 10:
                chi += (x.count(k) - expected) ** 2 / expected
                cells += 1
        assert chi < cells + 5 * math.sqrt(2 * cells)


def test_both_devices_draw_the_same() -> None:
    rates = tt.tensor([0.0, 0.5, 8.0, 30.0, 1e6])
    for draw in (
        lambda r: tt.poisson(r), lambda r: tt.binomial(tt.floor(r), (r + 1) / (r + 3)), lambda r: r.clone().geometric_(0.2), lambda r: tt.multinomial(r + 1, 3),
        lambda r: tt.multinomial(r + 1, 9, True),
    ):  # fmt: skip
        found = []
        for on in ("cpu", "cuda"):
            tt.manual_seed(4)
            found.append(draw(rates.to(on)).tolist())
        assert found[0] == found[1]


def test_moments_of_draws_in_place() -> None:
    tt.manual_seed(5)
    x = tt.empty(N, dtype=tt.float64)
    mean, variance = moments(x.geometric_(0.25))
    assert abs(mean - 4) < 5 * math.sqrt(12 / N)
    assert abs(variance - 12) < 1.2
    assert x.min().item() == 1
    mean, variance = moments(x.log_normal_(0.5, 0.2).log())
    assert abs(mean - 0.5) < 0.01
    assert abs(variance - 0.04) < 0.004
    quartiles = sorted(x.cauchy_(3.0, 2.0).tolist())
    assert abs(quartiles[N // 2] - 3) < 0.1
    assert abs(quartiles[N // 4] - 1) < 0.15
    assert abs(quartiles[3 * N // 4] - 5) < 0.15


def test_complex_draws() -> None:
    tt.manual_seed(6)
    z = tt.randn(N, dtype=tt.complex128).numpy()
    assert abs((abs(z) ** 2).mean() - 1) < 0.05
    assert abs(z.real.var() - 0.5) < 0.03
    u = tt.rand(N, dtype=tt.complex64).numpy()
    assert abs(u.real.mean() - 0.5) < 0.02
    assert abs(u.imag.mean() - 0.5) < 0.02


def test_rows_of_multinomial_follow_their_own_weights() -> None:
    tt.manual_seed(7)
    weights = tt.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 3.0]])
    drawn = tt.multinomial(weights, N, True)
    assert drawn[0].eq(1).all()
    assert not drawn[1].eq(1).any()
    assert abs(drawn[1].eq(2).double().mean().item() - 0.75) < 0.02


def test_gradients_of_drawn_counts_are_zero() -> None:
    rate = tt.full((3,), 2.0, requires_grad=True)
    tt.poisson(rate).sum().backward()
    assert rate.grad is not None
    assert rate.grad.tolist() == [0, 0, 0]


def test_refused() -> None:
    with pytest.raises(tt.ArgumentError, match="rates must be 0 or more"):
        tt.poisson(tt.tensor([1.0, -1.0]))
    with pytest.raises(tt.DTypeError, match="poisson: input is int64"):
        tt.poisson(tt.tensor([1]))
    with pytest.raises(tt.ArgumentError, match="probabilities between 0 and 1"):
        tt.binomial(tt.ones(2), tt.full((2,), 1.5))
    with pytest.raises(tt.DTypeError, match="count is float32, prob float64"):
        tt.binomial(tt.ones(2), tt.ones(2).double())
    with pytest.raises(tt.ArgumentError, match="sigma is 0"):
        tt.ones(2).cauchy_(0, 0)
    with pytest.raises(tt.ArgumentError, match="std is -1"):
        tt.ones(2).log_normal_(0, -1)
    with pytest.raises(tt.ArgumentError, match="std is 0"):
        tt.ones(2).log_normal_(0, 0)
    with pytest.raises(tt.ArgumentError, match="p is 1"):
        tt.ones(2).geometric_(1.5)
    with pytest.raises(tt.DTypeError, match="out is float32"):
        tt.multinomial(tt.ones(3), 2, out=tt.empty(2))
