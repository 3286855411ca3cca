"""Expectations under p, and cross-entropies E[-log q(x)] under p, for divergences between families."""

from __future__ import annotations

import math
from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.continuous.continuous_bernoulli import log_constant
from tritensor.distributions.continuous.exponential import Exponential
from tritensor.distributions.continuous.gumbel import EULER, Gumbel
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.continuous.pareto import Pareto
from tritensor.distributions.continuous.uniform import Uniform
from tritensor.distributions.gamma_family.dirichlet import Beta
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.tensor.core import Tensor


def mean_log(p: Any) -> Tensor:
    """E log x."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Exponential):
        return -EULER - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    assert isinstance(p, Uniform)
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log over [low, high]: (high log high - low log low) / (high - low) - 1."""
    return (T.xlogy(high, high) - T.xlogy(low, low)) / (high - low) - 1


def mean_log1m(p: Any) -> Tensor:
    """E log(1 - x)."""
    if isinstance(p, Beta):
        return p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma()
    assert isinstance(p, Uniform)
    return _mean_log_between(1 - p.high, 1 - p.low)


def mean_exp_decay(p: Any, t: Tensor) -> Tensor:
    """E exp(-t x)."""
    if isinstance(p, Gamma):
        return (1 + t / p.rate).pow(-p.concentration)
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    if isinstance(p, Normal):
        return (-t * p.loc + 0.5 * (t * p.scale).square()).exp()
    if isinstance(p, Gumbel):
        return (-t * p.loc + (1 + t * p.scale).lgamma()).exp()
    assert isinstance(p, Uniform)
    return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))


# -- -E log q(x)
def cross_entropy_to_exponential(p: Any, q: Any) -> Tensor:
    """q.rate E x - log q.rate."""
    return q.rate * p.mean - q.rate.log()


def cross_entropy_to_gamma(p: Any, q: Any) -> Tensor:
    """log gamma(a) - a log b - (a - 1) E log x + b E x."""
    a, b = q.concentration, q.rate
    return a.lgamma() - a * b.log() - (a - 1) * mean_log(p) + b * p.mean


def cross_entropy_to_gumbel(p: Any, q: Any) -> Tensor:
    """log s + E z + E exp(-z), z = (x - m) / s."""
    t = q.scale.reciprocal()
    return q.scale.log() + (p.mean - q.loc) * t + (q.loc * t).exp() * mean_exp_decay(p, t)


def cross_entropy_to_normal(p: Any, q: Any) -> Tensor:
    """log(2 pi s^2) / 2 + (var x + (E x - m)^2) / (2 s^2)."""
    return q.scale.log() + 0.5 * math.log(2 * math.pi) + 0.5 * (p.variance + (p.mean - q.loc).square()) / q.scale.square()


def cross_entropy_to_beta(p: Any, q: Any) -> Tensor:
    """log B(a, b) - (a - 1) E log x - (b - 1) E log(1 - x)."""
    a, b = q.concentration1, q.concentration0
    return a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * mean_log(p) - (b - 1) * mean_log1m(p)


def cross_entropy_to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    """|l| times the mean distance from the likelier end, less log(|l| / (1 - exp(-|l|))), l = logit(p)."""
    rate = q._rate()
    return rate * T.where(q._log_odds < 0, p.mean, 1 - p.mean) - log_constant(rate)


def cross_entropy_to_pareto(p: Any, q: Any) -> Tensor:
    """(alpha + 1) E log x - log alpha - alpha log scale."""
    return (q.alpha + 1) * mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()


def cross_entropy_to_uniform(p: Any, q: Any) -> Tensor:
    """log(high - low)."""
    return (q.high - q.low).log()
