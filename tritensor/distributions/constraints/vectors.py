"""Constraints on vectors and matrices: simplex, one-hot, counts, triangles, positive definite matrices."""

from __future__ import annotations

from typing import Any

from tritensor.distributions import functions as T
from tritensor.distributions.constraints.base import Constraint
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.types.limits import finfo

TOLERANCE = 1e-6  # how far from 1 a simplex may sum, how far from symmetric a matrix may be


class _Simplex(Constraint):
    """Numbers of 0 or more that sum to 1 along the last dimension."""

    event_dim = 1
    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < TOLERANCE)


class _OneHot(Constraint):
    """A single 1 among zeros, along the last dimension."""

    is_discrete = True
    event_dim = 1
    on_arrays = True

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Numbers of 0 or more that sum to `upper_bound` at most, along the last dimension."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Matrix(Constraint):
    event_dim = 2


def _all_of_matrix(fine: Tensor) -> Tensor:
    return fine.all(-1).all(-1)


class _LowerTriangular(_Matrix):
    """Matrices with zeros above the diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return _all_of_matrix(value.tril() == value)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Such matrices with rows of length 1: the factors of correlation matrices."""

    def check(self, value: Tensor) -> Tensor:
        near = float(finfo(value.dtype).eps) * value.shape[-1] * 10  # what rounding makes of a row's length
        length = (value.detach() * value.detach()).sum(-1).sqrt()
        return ((length - 1).abs() <= near).all(-1) & super().check(value)


class _Square(_Matrix):
    """Square matrices."""

    def check(self, value: Tensor) -> Tensor:
        return T.full(tuple(value.shape[:-2]), value.shape[-2] == value.shape[-1], dtype=bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        return square if value.shape[-2] != value.shape[-1] else _all_of_matrix(T.isclose(value, value.mT, atol=TOLERANCE))


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else (T.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices of positive eigenvalues: those that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else T.cholesky_ex(value).info == 0


simplex, one_hot, lower_triangular, lower_cholesky, corr_cholesky = (
    _Simplex(),
    _OneHot(),
    _LowerTriangular(),
    _LowerCholesky(),
    _CorrCholesky(),
)
square, symmetric, positive_semidefinite, positive_definite = _Square(), _Symmetric(), _PositiveSemidefinite(), _PositiveDefinite()
multinomial = _Multinomial
