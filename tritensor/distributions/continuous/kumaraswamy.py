"""The Kumaraswamy distribution on the unit interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.gumbel import EULER
from tritensor.distributions.continuous.uniform import Uniform
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.parameters import broadcast_all, clamp_open_unit, draw_standard_exponential, log1m_exp
from tritensor.distributions.transforms import AffineTransform, PowerTransform
from tritensor.tensor.core import Tensor


class Kumaraswamy(TransformedDistribution):
    """(1 - (1 - u)^(1/b))^(1/a), u uniform: near Beta(a, b), with a cdf in closed form (Kumaraswamy 1980); a is concentration1, b concentration0."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(T.zeros_like(self.concentration0), T.ones_like(self.concentration0), validate_args=validate_args)
        super().__init__(base, self._make_transforms(), validate_args=validate_args)

    def _make_transforms(self, given: Any = None) -> list[Any]:
        inner, outer = PowerTransform(self.concentration0.reciprocal()), PowerTransform(self.concentration1.reciprocal())
        return [inner, AffineTransform(1.0, -1.0), outer]

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The same of -log u, which is exponential."""
        e = draw_standard_exponential(self._extended_shape(sample_shape), self.concentration0)
        return (-(-e / self.concentration0).expm1()) ** self.concentration1.reciprocal()

    sample = Distribution.sample  # by rsample above, not by the transforms

    _move_inside_support = staticmethod(clamp_open_unit)  # small concentrations crowd draws at the ends

    def log_prob(self, value: Tensor) -> Tensor:
        """log(a b) + (a - 1) log x + (b - 1) log(1 - x^a)."""
        self._check(value)
        a, b = self.concentration1, self.concentration0
        below = log1m_exp(a * value.log())
        below = T.where((b == 1) & (below == -math.inf), 0.0, below)  # at the upper end, where 0 times it is 0
        return a.log() + b.log() + T.xlogy(a - 1, value) + (b - 1) * below

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(self.concentration0 * log1m_exp(self.concentration1 * value.log())).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return (-((-value).log1p() / self.concentration0).expm1()) ** self.concentration1.reciprocal()

    def _moment(self, k: int) -> Tensor:
        """E x^k = b B(1 + k / a, b)."""
        a, b = 1 + k / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()  # gamma itself overflows from 172 on

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1))^(1/a) where a and b are 1 or more and not both 1; NaN elsewhere."""
        a, b = self.concentration1, self.concentration0
        return T.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** a.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
