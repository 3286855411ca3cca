"""Divergences between families, and within three of them: cross-entropies -E log q(x) under p less entropies, infinite where q's support does not hold p's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.continuous.continuous_bernoulli import ContinuousBernoulli, log_constant
from tritensor.distributions.continuous.exponential import Exponential
from tritensor.distributions.continuous.gumbel import EULER, Gumbel
from tritensor.distributions.continuous.laplace import Laplace
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.continuous.pareto import Pareto
from tritensor.distributions.continuous.uniform import Uniform
from tritensor.distributions.discrete.bernoulli import Bernoulli
from tritensor.distributions.discrete.binomial import Binomial
from tritensor.distributions.discrete.poisson import Poisson
from tritensor.distributions.gamma_family.dirichlet import Beta
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.distributions.kl.registry import register_kl
from tritensor.distributions.parameters import fill_like
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
    return (T.xlogy(high, high) - T.xlogy(low, low)) / (high - low) - 1  # 0 log 0 is 0: an interval may begin at 0


def mean_log1m(p: Any) -> Tensor:
    """E log(1 - x)."""
    if isinstance(p, Beta):
        return p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma()
    assert isinstance(p, Uniform)
    return _mean_log_between(1 - p.high, 1 - p.low)


def mean_exp_decay(p: Any, t: Tensor) -> Tensor:
    """E exp(-t x)."""
    if isinstance(p, Gamma):
        return (1 + t / p.rate).pow(-p.concentration)  # the moment generating function, as in all cases here
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
    t = q.scale.reciprocal()  # E exp(-z) = exp(m t) E exp(-t x)
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


# {q: what -E log q(x) is, as a function of p and q}
CROSS_ENTROPIES: dict[type, Callable[[Any, Any], Tensor]] = {
    Exponential: cross_entropy_to_exponential,
    Gamma: cross_entropy_to_gamma,
    Gumbel: cross_entropy_to_gumbel,
    Normal: cross_entropy_to_normal,
    Beta: cross_entropy_to_beta,
    ContinuousBernoulli: cross_entropy_to_continuous_bernoulli,
    Pareto: cross_entropy_to_pareto,
    Uniform: cross_entropy_to_uniform,
}
# {p: the q whose support holds all of p's}
FINITE: dict[type, tuple[type, ...]] = {
    Beta: (Beta, ContinuousBernoulli, Exponential, Gamma, Normal),
    ContinuousBernoulli: (ContinuousBernoulli, Exponential, Normal),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Gumbel, Normal),
    Laplace: (Normal,),
    Normal: (Gumbel,),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Gumbel, Normal),
}
# {p: the q whose support lacks some of p's}
# Pairs of all three tables are PyTorch's; what it has no formula for raises here as well.
INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
# {(p, q): whether q's support holds p's, which is up to an interval's ends}
DECIDED: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {
    **dict.fromkeys([(Beta, Uniform), (ContinuousBernoulli, Uniform)], lambda p, q: (q.low <= 0) & (q.high >= 1)),
    **dict.fromkeys([(Uniform, Beta), (Uniform, ContinuousBernoulli)], lambda p, q: (p.low >= 0) & (p.high <= 1)),
    **dict.fromkeys([(Uniform, Exponential), (Uniform, Gamma)], lambda p, q: p.low >= 0),
    (Uniform, Pareto): lambda p, q: p.low >= q.scale,
}


def _subtract_entropy(under: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    # KL(p, q) = E_p[-log q] - H(p)
    return lambda p, q: under(p, q) - p.entropy()


def _finite_where(holds: Callable[[Any, Any], Tensor], under: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    return lambda p, q: T.where(holds(p, q), under(p, q) - p.entropy(), math.inf)


def _infinite(p: Any, q: Any) -> Tensor:
    """Infinite: p draws what q never does."""
    return fill_like(math.inf, p.mean, T.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape)))


for _p, _held in FINITE.items():
    for _q in _held:
        register_kl(_p, _q)(_subtract_entropy(CROSS_ENTROPIES[_q]))
for _p, _held in INFINITE.items():
    for _q in _held:
        register_kl(_p, _q)(_infinite)
for (_p, _q), _holds in DECIDED.items():
    register_kl(_p, _q)(_finite_where(_holds, CROSS_ENTROPIES[_q]))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """-H(p) + log(2 b) + E |x - m| / b; |x - m| is a folded normal number."""
    off = p.loc - q.loc
    folded = p.scale * math.sqrt(2 / math.pi) * (-0.5 * (off / p.scale).square()).exp() + off * (off / (math.sqrt(2) * p.scale)).erf()
    return (2 * q.scale).log() + folded / q.scale - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    """-H(p) - p log rate + rate: the factorials of 0 and 1 are 1."""
    return q.rate - T.xlogy(p.probs, q.rate) - p.entropy()
