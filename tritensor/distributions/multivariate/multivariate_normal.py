"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.multivariate.matrix_products import CovarianceForms, half_log_det, mahalanobis, matrix_vector
from tritensor.distributions.parameters import draw_standard_normal, require_dims
from tritensor.tensor.core import Tensor


class MultivariateNormal(CovarianceForms, Distribution):
    """Normal vectors of mean `loc` (..., n), their covariance given by itself, its inverse, or its lower Cholesky factor, each (..., n, n)."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {
        "loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "_unbroadcasted_scale_tril": None,
    }  # fmt: skip

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        require_dims("MultivariateNormal", "loc", loc, 1)
        given, matrix = self._choose_matrix(
            "MultivariateNormal", covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        batch = T.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.__dict__[given] = matrix.expand((*batch, -1, -1))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)  # first: cholesky's error names no parameter
        self._keep_factor(given, matrix)

    mean = mode = delegate("loc")

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand((*self._batch_shape, *self._event_shape))

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        z = draw_standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + matrix_vector(self._unbroadcasted_scale_tril, z)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)  # solved, never inverted
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        found = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det(self._unbroadcasted_scale_tril)
        return found.expand(self._batch_shape)
