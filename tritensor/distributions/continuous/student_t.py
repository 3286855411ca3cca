"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.gamma_family.gamma import Chi2
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all, draw_standard_normal, log1p_square
from tritensor.tensor.core import Tensor


class StudentT(Distribution):
    """loc + scale z / sqrt(c / df): z normal, c of the chi-squared distribution of df degrees of freedom."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"df": 0, "loc": 0, "scale": 0, "_chi2": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)  # df is checked as this class's own
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return T.where(self.df > 1, self.loc, math.nan)

    mode = delegate("loc")

    @property
    def variance(self) -> Tensor:
        # up to 2 the integral diverges, and up to 1 there is no mean to vary around
        finite = self.scale.square() * self.df / (self.df - 2)
        return T.where(self.df > 2, finite, T.where(self.df > 1, T.full_like(self.df, math.inf), math.nan))

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        z = draw_standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * z * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        half = 0.5 * self.df
        z = (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - (half + 0.5).lgamma()
        return -(half + 0.5) * log1p_square(z / self.df.sqrt()) - norm  # z^2 would overflow in tails this heavy

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        beta = half.lgamma() + 0.5 * math.log(math.pi) - (half + 0.5).lgamma()
        return self.scale.log() + (half + 0.5) * ((half + 0.5).digamma() - half.digamma()) + 0.5 * self.df.log() + beta
