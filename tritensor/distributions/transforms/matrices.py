"""Transforms of square matrices: to Cholesky factors and to positive definite matrices."""

from __future__ import annotations

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.transforms.base import Transform
from tritensor.tensor.core import Tensor


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones with a positive diagonal: the part below the diagonal as it is, exp of the diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + T.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + T.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones, L L^T of the factor that LowerCholeskyTransform makes."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(T.cholesky(y))  # type: ignore[no-any-return]
