"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import delegate, lazy_property
from tritensor.distributions.multivariate.matrix_products import half_log_det, mahalanobis, matrix_vector
from tritensor.distributions.parameters import draw_standard_normal, require_dims
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean `loc` (..., n) and covariance W W^T + D: W `cov_factor` (..., n, m), D the diagonal `cov_diag` (..., n).

    Nothing of n x n is factored: the inverse by Woodbury's identity, the determinant by the matrix determinant lemma, with the m x m matrix
    C = 1 + W^T D^-1 W.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {
        "loc": 1, "cov_factor": 2, "cov_diag": 1,
        # as they were given, so that products and factors stay as small as those
        "_unbroadcasted_cov_factor": None, "_unbroadcasted_cov_diag": None, "_capacitance_tril": None,
    }  # fmt: skip

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        name = type(self).__name__
        require_dims(name, "loc", loc, 1)
        n = loc.shape[-1]
        require_dims(name, "cov_factor", cov_factor, 2)
        if cov_factor.shape[-2] != n:
            raise ShapeError(f"{name}: cov_factor {tuple(cov_factor.shape)} must be (..., {n}, m) for a loc of {n} elements")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ShapeError(f"{name}: cov_diag {tuple(cov_diag.shape)} must be (..., {n}) for a loc of {n} elements")
        batch = T.broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc = loc.expand((*batch, n))
        self.cov_diag = cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        # the lower Cholesky factor of C, made once: log_prob and entropy both solve with it
        identity = T.eye(cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = T.cholesky(self._factor_over_diagonal() @ cov_factor + identity)
        super().__init__(batch, (n,), validate_args=validate_args)

    def _factor_over_diagonal(self) -> Tensor:
        """W^T D^-1: (..., m, n)."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _expand_to_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    mean = mode = delegate("loc")

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The covariance's diagonal."""
        found = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return found.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The covariance's lower Cholesky factor: that of 1 + S S^T with S = D^(-1/2) W, its rows scaled."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root  # 1 + S S^T has no eigenvalue below 1, so the factor exists
        identity = T.eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return self._expand_to_batch(root * T.cholesky(scaled @ scaled.mT + identity))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + D."""
        w = self._unbroadcasted_cov_factor
        return self._expand_to_batch(w @ w.mT + T.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """D^-1 - D^-1 W C^-1 W^T D^-1."""
        half = T.solve_triangular(self._capacitance_tril, self._factor_over_diagonal(), upper=False)
        return self._expand_to_batch(T.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - half.mT @ half)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        low = draw_standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype, self.loc.device)
        z = draw_standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + matrix_vector(self._unbroadcasted_cov_factor, low) + self._unbroadcasted_cov_diag.sqrt() * z

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = value - self.loc
        distance = (off.square() / self._unbroadcasted_cov_diag).sum(-1)
        distance = distance - mahalanobis(self._capacitance_tril, matrix_vector(self._factor_over_diagonal(), off))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self) -> Tensor:
        """log |W W^T + D| = log |C| + log |D|."""
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        found = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return found.expand(self._batch_shape)
