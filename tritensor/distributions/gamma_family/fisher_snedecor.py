"""The Fisher-Snedecor distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.distributions.parameters import broadcast_all, clamp_positive, float_limits
from tritensor.tensor.core import Tensor


class FisherSnedecor(Distribution):
    """(c1 / df1) / (c2 / df2) of two chi-squared numbers."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"df1": 0, "df2": 0, "_gamma1": 0, "_gamma2": 0}

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        # halves of c / df, which cancel in the quotient
        self._gamma1, self._gamma2 = (Gamma(df * 0.5, df, validate_args=False) for df in (self.df1, self.df2))
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return T.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)  # else the integral diverges

    @property
    def mode(self) -> Tensor:
        return T.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return T.where(b > 4, 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4)), math.nan)

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        below = self._gamma2.rsample(sample_shape)
        # PyTorch keeps the divisor off 0 here as well
        return self._gamma1.rsample(sample_shape) / below.clamp(min=float_limits(below.dtype).tiny)

    _move_inside_support = staticmethod(clamp_positive)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
