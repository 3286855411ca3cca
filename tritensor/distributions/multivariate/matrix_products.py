"""Products with and solutions by triangular matrices of smaller batches than the vectors'; CovarianceForms, the base class of who takes these."""

from __future__ import annotations

from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.lazy import lazy_property
from tritensor.distributions.parameters import require_dims, require_exactly_one
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class CovarianceForms:
    """What distributions by a covariance, its inverse or its lower Cholesky factor share: the two that were not given are computed of the factor."""

    _batch_shape: Size
    _unbroadcasted_scale_tril: Tensor  # of the matrix as it was given: one factor for all of the batch that shares it

    @staticmethod
    def _choose_matrix(name: str, **matrices: Any) -> tuple[str, Any]:
        """The name and the value of the one that was given. Raises ValueError for none, several, or a vector."""
        given = require_exactly_one(name, **matrices)
        require_dims(name, given, matrices[given], 2)
        return given, matrices[given]

    def _keep_factor(self, given: str, matrix: Tensor) -> None:
        factors = {"covariance_matrix": T.cholesky, "precision_matrix": factor_of_inverse}
        self._unbroadcasted_scale_tril = factors[given](matrix) if given in factors else matrix

    def _expand_to_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The covariance's lower Cholesky factor."""
        return self._expand_to_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._expand_to_batch(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The covariance's inverse."""
        return self._expand_to_batch(T.cholesky_inverse(self._unbroadcasted_scale_tril))


def matrix_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    """matrix (..., n, m) times vector (..., m), batches broadcast."""
    if matrix.dim() == 2:
        return vector @ matrix.mT  # one matrix product for all vectors
    return T.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """|L^-1 x|^2 for lower triangular L (..., n, n) and vectors x (..., n): each factor is solved once for all vectors that share it."""
    n, batch = x.shape[-1], tuple(factor.shape[:-2])
    lead = x.dim() - 1 - len(batch)  # dimensions of samples before the batch
    if lead >= 0 and tuple(x.shape[lead:-1]) == batch:
        columns = x.reshape((-1, *batch, n)).permute((*range(1, len(batch) + 2), 0))  # (batch, n, vectors)
        squares = T.solve_triangular(factor, columns, upper=False).square().sum(-2)  # (batch, vectors)
        return squares.permute((len(batch), *range(len(batch)))).reshape(tuple(x.shape[:-1]))
    shape = T.broadcast_shapes(batch, tuple(x.shape[:-1]))
    columns = x.expand((*shape, n)).unsqueeze(-1)
    return T.solve_triangular(factor.expand((*shape, n, n)), columns, upper=False).squeeze(-1).square().sum(-1)


def factor_of_inverse(precision: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of a positive definite matrix P.

    The factor M of P with rows and columns reversed, J P J = M M^T, gives P^-1 = (J M^-T J)(J M^-T J)^T, and J M^-T J is lower triangular.
    """
    reversed_ = T.cholesky(precision.flip((-2, -1)))
    upper = reversed_.flip((-2, -1)).mT
    identity = T.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return T.solve_triangular(upper, identity.expand(tuple(precision.shape)), upper=False)


def half_log_det(factor: Tensor) -> Tensor:
    """log of the product of the diagonal: half the log determinant of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
