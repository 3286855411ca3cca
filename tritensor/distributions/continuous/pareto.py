"""The Pareto distribution and the generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.exponential import Exponential
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all, clamp_finite, log1m_exp
from tritensor.distributions.transforms import AffineTransform, ExpTransform
from tritensor.tensor.core import Tensor


class Pareto(TransformedDistribution):
    """alpha scale^alpha / x^(alpha + 1) of x >= scale."""

    arg_constraints: ClassVar[dict[str, Any]] = {"alpha": constraints.positive, "scale": constraints.positive}
    _fields: ClassVar[dict[str, int | None] | None] = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, self._make_transforms(), validate_args=validate_args)

    def _make_transforms(self, given: Any = None) -> list[Any]:
        return [ExpTransform(), AffineTransform(0, self.scale)]

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From scale on."""
        return constraints.greater_than_eq(self.scale)

    _move_inside_support = staticmethod(clamp_finite)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite from 1 down
        return a * self.scale / (a - 1)

    mode = delegate("scale")

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)  # infinite from 2 down
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold: P(x > loc + scale z) = (1 + c z)^(-1 / c), exp(-z) where c, the concentration, is 0 (Pickands 1975)."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From loc on, to loc - scale / concentration where the concentration is negative."""
        upper = T.where(self.concentration < 0, self.loc - self.scale / self._nonzero_concentration(), math.inf)
        return constraints.interval(self.loc, upper)

    def _is_exponential(self) -> Tensor:
        """Where the concentration is 0, but for roundings."""
        return T.isclose(self.concentration, T.zeros_like(self.concentration))

    def _nonzero_concentration(self) -> Tensor:
        """The concentration, and 1 where it is 0."""
        return T.where(self._is_exponential(), T.ones_like(self.concentration), self.concentration)

    def _standardize(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(T.rand(tuple(self._extended_shape(sample_shape)), dtype=self.loc.dtype, device=self.loc.device))

    def _move_inside_support(self, drawn: Tensor) -> Tensor:
        # the density is 0 from the end of a bounded support on, where rounding may put a draw
        end = self.loc - self.scale / self._nonzero_concentration()
        return clamp_finite(T.where((self.concentration < 0) & (drawn >= end), end.nextafter(self.loc), drawn))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(x > value)."""
        self._check(value)
        z, c = self._standardize(value), self._nonzero_concentration()
        return T.where(self._is_exponential(), -z, -(c * z).log1p() / c)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z, c = self._standardize(value), self._nonzero_concentration()
        return -self.scale.log() + T.where(self._is_exponential(), -z, -(1 + 1 / c) * (c * z).log1p())

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(x <= value)."""
        self._check(value)
        return log1m_exp(self.log_survival_function(value))

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()  # small probabilities keep their digits

    def icdf(self, value: Tensor) -> Tensor:
        left, c = (-value).log1p(), self._nonzero_concentration()  # 1 - value would round to 1
        return self.loc + self.scale * T.where(self._is_exponential(), -left, (-c * left).expm1() / c)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return T.where(c < 1, self.loc + self.scale / (1 - c), math.inf)  # too heavy a tail for a mean

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return T.where(c < 0.5, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), math.inf)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    mode = delegate("loc")
