"""Divergences between families: cross-entropy less entropy, infinite where q's support does not hold p's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.continuous.continuous_bernoulli import ContinuousBernoulli
from tritensor.distributions.continuous.exponential import Exponential
from tritensor.distributions.continuous.gumbel import Gumbel
from tritensor.distributions.continuous.laplace import Laplace
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.continuous.pareto import Pareto
from tritensor.distributions.continuous.uniform import Uniform
from tritensor.distributions.discrete.bernoulli import Bernoulli
from tritensor.distributions.discrete.binomial import Binomial
from tritensor.distributions.discrete.poisson import Poisson
from tritensor.distributions.gamma_family.dirichlet import Beta
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.distributions.kl import moments
from tritensor.distributions.kl.registry import register_kl
from tritensor.distributions.parameters import fill_like
from tritensor.tensor.core import Tensor

# {q: what -E log q(x) is, as a function of p and q}
CROSS_ENTROPIES: dict[type, Callable[[Any, Any], Tensor]] = {
    Exponential: moments.cross_entropy_to_exponential,
    Gamma: moments.cross_entropy_to_gamma,
    Gumbel: moments.cross_entropy_to_gumbel,
    Normal: moments.cross_entropy_to_normal,
    Beta: moments.cross_entropy_to_beta,
    ContinuousBernoulli: moments.cross_entropy_to_continuous_bernoulli,
    Pareto: moments.cross_entropy_to_pareto,
    Uniform: moments.cross_entropy_to_uniform,
}
# {p: the q whose support holds all of p's}
FINITE: dict[type, tuple[type, ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal),
    ContinuousBernoulli: (Exponential, Normal),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel,),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Gumbel, Normal),
}
# {p: the q whose support lacks some of p's}
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


def _subtract_entropy(under: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    # KL(p, q) = E_p[-log q] - H(p)
    return lambda p, q: under(p, q) - p.entropy()


def _infinite(p: Any, q: Any) -> Tensor:
    """Infinite: p draws what q never does."""
    like = p.rate if isinstance(p, Poisson) else p.mean
    return fill_like(math.inf, like, T.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape)))


for _p, _held in FINITE.items():
    for _q in _held:
        register_kl(_p, _q)(_subtract_entropy(CROSS_ENTROPIES[_q]))
for _p, _held in INFINITE.items():
    for _q in _held:
        register_kl(_p, _q)(_infinite)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Uniform) -> Tensor:
    """Finite where q covers [0, 1]."""
    return T.where((q.low <= 0) & (q.high >= 1), moments.cross_entropy_to_uniform(p, q) - p.entropy(), math.inf)


@register_kl(Uniform, Beta)
@register_kl(Uniform, ContinuousBernoulli)
def _uniform_unit(p: Uniform, q: Any) -> Tensor:
    """Finite where p lies within [0, 1]."""
    under = moments.cross_entropy_to_beta if isinstance(q, Beta) else moments.cross_entropy_to_continuous_bernoulli
    return T.where((p.low >= 0) & (p.high <= 1), under(p, q) - p.entropy(), math.inf)


@register_kl(Uniform, Exponential)
@register_kl(Uniform, Gamma)
def _uniform_positive(p: Uniform, q: Any) -> Tensor:
    """Finite where p lies above 0."""
    under = moments.cross_entropy_to_gamma if isinstance(q, Gamma) else moments.cross_entropy_to_exponential
    return T.where(p.low >= 0, under(p, q) - p.entropy(), math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """Finite where p lies above q's least value."""
    return T.where(p.low >= q.scale, moments.cross_entropy_to_pareto(p, q) - p.entropy(), math.inf)


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
