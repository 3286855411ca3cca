"""The Wishart distribution of positive definite matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.gamma_family.gamma import Chi2
from tritensor.distributions.multivariate.matrix_products import CovarianceForms, half_log_det
from tritensor.distributions.parameters import draw_standard_normal, float_limits
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class Wishart(CovarianceForms, ExponentialFamily):
    """Sums X^T X of `df` normal vectors of a covariance, given by itself, its inverse, or its lower Cholesky factor, (..., n, n); df > n - 1.

    Raises ValueError for a df of n - 1 or less.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None] | None] = {
        "df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "_unbroadcasted_scale_tril": None, "_dist_chi2": 1,
    }  # fmt: skip

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        """Those of the matrices, and df above n - 1."""
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self._event_shape[-1] - 1),
        }  # fmt: skip

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        given, matrix = self._choose_matrix(
            "Wishart", covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        df = df if isinstance(df, Tensor) else T.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = T.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        event = tuple(matrix.shape[-2:])
        if (df <= event[-1] - 1).any():
            raise ArgumentError(
                f"Wishart: df goes down to {df.min().item()}; for matrices of {event[-1]} rows it must be above {event[-1] - 1}"
            )
        self.df = df.expand(batch)
        self.__dict__[given] = matrix.expand((*batch, -1, -1))
        self._event_shape: Any = matrix.shape[-2:]  # which arg_constraints asks for
        super().__init__(batch, event, validate_args=validate_args)
        # PyTorch warns as well
        if (self.df < event[-1]).any():
            warnings.warn(f"Wishart: a df below {event[-1]} draws matrices that are nearly singular")
        self._keep_factor(given, matrix)
        self._dist_chi2 = Chi2(self._degrees(), validate_args=False)

    def _degrees(self) -> Tensor:
        """df, df - 1, ...: degrees of freedom of the squares on the diagonal of Bartlett's factor."""
        return self.df.unsqueeze(-1) - T.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)

    def _df(self) -> Tensor:
        return self.df.reshape((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) covariance, NaN where df is not above n + 1."""
        factor = self._df() - self.covariance_matrix.shape[-1] - 1
        return T.where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df() * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        """Bartlett's decomposition: (L A)(L A)^T, A lower triangular of normal numbers with roots of chi-squared ones on its diagonal.

        `max_try_correction` is accepted: that diagonal is above 0 in every draw, so that none is drawn anew.
        """
        return self._bartlett_sampling(sample_shape)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """One draw, under PyTorch's private name, by which samplers of other libraries call it."""
        n = self._event_shape[-1]
        # a zero on the diagonal would make the draw singular
        diagonal = self._dist_chi2.rsample(sample_shape).clamp(min=float_limits(self.df.dtype).tiny).sqrt()
        below = draw_standard_normal((*diagonal.shape[:-1], n, n), diagonal.dtype, diagonal.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + T.diag_embed(diagonal))
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, n = self.df, self._event_shape[-1]
        logdet = 2 * half_log_det(T.cholesky(value))
        inner = T.cholesky_inverse(self._unbroadcasted_scale_tril) @ value
        trace = inner.diagonal(dim1=-2, dim2=-1).sum(-1)
        norm = nu * (n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril)) + T.mvlgamma(nu / 2, n)
        return (nu - n - 1) / 2 * logdet - trace / 2 - norm

    def entropy(self) -> Tensor:
        nu, n = self.df, self._event_shape[-1]
        digammas = (self._degrees() / 2).digamma().sum(-1)
        return (
            (n + 1) * (n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + T.mvlgamma(nu / 2, n) - (nu - n - 1) / 2 * digammas + nu * n / 2
        )  # fmt: skip

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return 0.5 * self.df, -0.5 * self.precision_matrix

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        n = self._event_shape[-1]
        return x * (n * math.log(2) - 2 * half_log_det(T.cholesky(-2 * y))) + T.mvlgamma(x, n)
