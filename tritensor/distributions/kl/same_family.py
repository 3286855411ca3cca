"""Divergences between two distributions of one family, in closed form; of normal vectors by factors of their covariances."""

from __future__ import annotations

import math
from typing import Any

from tritensor import autograd
from tritensor.autograd.modes import enable_grad, is_grad_enabled
from tritensor.distributions import functions as T
from tritensor.distributions.combined.independent import Independent
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.cauchy import Cauchy
from tritensor.distributions.continuous.exponential import Exponential
from tritensor.distributions.continuous.half_normal import HalfNormal
from tritensor.distributions.continuous.laplace import Laplace
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.continuous.pareto import Pareto
from tritensor.distributions.continuous.uniform import Uniform
from tritensor.distributions.discrete.bernoulli import Bernoulli, Geometric
from tritensor.distributions.discrete.binomial import Binomial
from tritensor.distributions.discrete.categorical import Categorical
from tritensor.distributions.discrete.one_hot_categorical import OneHotCategorical
from tritensor.distributions.discrete.poisson import Poisson
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.gamma_family.dirichlet import Dirichlet
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.distributions.kl.registry import kl_divergence, register_kl
from tritensor.distributions.multivariate.lowrank_multivariate_normal import LowRankMultivariateNormal
from tritensor.distributions.multivariate.matrix_products import half_log_det, mahalanobis, matrix_vector
from tritensor.distributions.multivariate.multivariate_normal import MultivariateNormal
from tritensor.distributions.parameters import sum_rightmost
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor


@register_kl(ExponentialFamily, ExponentialFamily)
def _expfamily(p: Any, q: Any) -> Tensor:
    """F(b) - F(a) - <b - a, dF/da>: the Bregman divergence of the log normalizer (Nielsen and Nock 2010)."""
    if type(p) is not type(q):  # two families have two normalizers, between which there is no such divergence
        raise NotImplementedError(f"kl_divergence: no formula for p {type(p).__name__} and q {type(q).__name__}; give one with register_kl")
    theirs = q._natural_params
    wanted = any(x.requires_grad for x in (*p._natural_params, *theirs)) and is_grad_enabled()
    ours = [x if x.requires_grad else x.detach().requires_grad_() for x in p._natural_params]
    with enable_grad():
        normalizer = p._log_normalizer(*ours)
        gradients = autograd.grad(normalizer.sum(), ours, create_graph=True)
        found = q._log_normalizer(*theirs) - normalizer
        for a, b, g in zip(ours, theirs, gradients, strict=True):
            found = found - sum_rightmost((b - a) * g, len(q.event_shape))
    return found if wanted else found.detach()


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    return -p._binary_entropy() - q._log_likelihood(p.probs, p._failure_probs)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    """Of equal counts n times that of one trial; of fewer trials than q's the binomial coefficients' expected ratio is added; of more it is infinite."""
    n = p.total_count
    found = -n * p._binary_entropy() - q._log_likelihood(n * p.probs, n * p._failure_probs + (q.total_count - n).clamp(min=0.0))
    if (n < q.total_count).any():
        found = found + _mean_log_coefficient_ratio(p, q)
    return T.where(n > q.total_count, math.inf, found)


def _mean_log_coefficient_ratio(p: Binomial, q: Binomial) -> Tensor:
    """E log(C(n, k) / C(m, k)) over k of p."""
    n, m = T.broadcast_tensors(p.total_count, q.total_count)
    most = int(n.max())
    k = T.arange(most + 1, dtype=n.dtype, device=n.device).reshape((-1, *[1] * n.dim()))
    inside = (k <= n) & (k <= m)
    k = T.where(inside, k, 0.0)
    ratio = (n + 1).lgamma() - (n - k + 1).lgamma() - (m + 1).lgamma() + (m - k + 1).lgamma()
    log_prob = (n + 1).lgamma() - (n - k + 1).lgamma() - (k + 1).lgamma() + p._log_likelihood(k, n - k)
    return T.where(inside, log_prob.exp() * ratio, 0.0).sum(0)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    # what p never draws counts nothing, also where q's logarithm is infinite
    ours, theirs = (T.where(p.probs == 0, 0.0, d._log_probs()) for d in (p, q))
    return (p.probs * (ours - theirs)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    norm = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norm + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return (-p._binary_entropy() - q._log_likelihood(p.probs, p._failure_probs)) / p.probs  # 1 / p trials on average


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)  # folding halves neither: both densities double


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    off = (p.loc - q.loc).abs()
    return -(p.scale / q.scale).log() + off / q.scale + p.scale / q.scale * (-off / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    square = (p.scale / q.scale).square()
    return 0.5 * (square + ((p.loc - q.loc) / q.scale).square() - 1 - square.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return T.where(p.scale < q.scale, math.inf, found)  # p draws below q's least value


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    # a rate of 0 draws 0 alone
    return T.xlogy(p.rate, p.rate) - T.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """That of the base distributions, under the same transforms."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"kl_divergence: {type(p).__name__} and {type(q).__name__} of other transforms or event_shape have no formula; give one with register_kl"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return T.where((q.low > p.low) | (q.high < p.high), math.inf, found)  # p draws outside of q


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"kl_divergence: Independent over {p.reinterpreted_batch_ndims} and over {q.reinterpreted_batch_ndims} have no formula; give both as many"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)  # type: ignore[no-any-return]


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """log(((s + t)^2 + (l - m)^2) / (4 s t)) (Chyzak and Nielsen 2019)."""
    above = ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log()
    return above - (4 * p.scale * q.scale).log()


def _log_det(p: Any) -> Tensor:
    return p._log_det() if isinstance(p, LowRankMultivariateNormal) else 2 * half_log_det(p._unbroadcasted_scale_tril)


def _covariance_factor(p: Any) -> Tensor:
    """A matrix A (..., n, m) with A A^T = S_p."""
    if isinstance(p, LowRankMultivariateNormal):
        w, root = T.broadcast_tensors(p._unbroadcasted_cov_factor[..., :1], p._unbroadcasted_cov_diag.sqrt().unsqueeze(-1))
        return T.cat([p._unbroadcasted_cov_factor.expand((*w.shape[:-1], -1)), T.diag_embed(root.squeeze(-1))], -1)
    return p._unbroadcasted_scale_tril


def _mahalanobis(q: Any, x: Tensor) -> Tensor:
    """x^T S_q^-1 x of vectors x (..., n)."""
    if isinstance(q, LowRankMultivariateNormal):
        # Woodbury's identity: an n x n factor of q is never made
        plain = (x.square() / q._unbroadcasted_cov_diag).sum(-1)
        return plain - mahalanobis(q._capacitance_tril, matrix_vector(q._factor_over_diagonal(), x))
    return mahalanobis(q._unbroadcasted_scale_tril, x)


def _trace_of_solution(q: Any, root: Tensor) -> Tensor:
    """tr(S_q^-1 A A^T): x^T S_q^-1 x summed over the columns of A."""
    if isinstance(q, LowRankMultivariateNormal):
        # Woodbury's identity, as above
        plain = (root.square() / q._unbroadcasted_cov_diag.unsqueeze(-1)).sum((-2, -1))
        over = q._factor_over_diagonal() @ root
        return plain - _solve_lower(q._capacitance_tril, over).square().sum((-2, -1))
    return _solve_lower(q._unbroadcasted_scale_tril, root).square().sum((-2, -1))


def _solve_lower(factor: Tensor, columns: Tensor) -> Tensor:
    batch = T.broadcast_shapes(tuple(factor.shape[:-2]), tuple(columns.shape[:-2]))
    return T.solve_triangular(factor.expand((*batch, -1, -1)), columns.expand((*batch, -1, -1)), upper=False)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _normals(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ShapeError(
            f"kl_divergence: p has event_shape {tuple(p.event_shape)}, q {tuple(q.event_shape)}; give normal vectors of one size"
        )
    found = _log_det(q) - _log_det(p) + _trace_of_solution(q, _covariance_factor(p)) + _mahalanobis(q, q.loc - p.loc) - p.event_shape[0]
    return 0.5 * found
