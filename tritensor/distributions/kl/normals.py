"""Divergences between multivariate normal distributions, of full and of low rank.

KL = (log |S_q| - log |S_p| + tr(S_q^-1 S_p) + (m_q - m_p)^T S_q^-1 (m_q - m_p) - n) / 2.
"""

from __future__ import annotations

from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.kl.registry import register_kl
from tritensor.distributions.multivariate.lowrank_multivariate_normal import LowRankMultivariateNormal
from tritensor.distributions.multivariate.matrix_products import half_log_det, mahalanobis, matrix_vector
from tritensor.distributions.multivariate.multivariate_normal import MultivariateNormal
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor


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
