"""The half-normal distribution: the absolute value of a normal number."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.lazy import delegate
from tritensor.distributions.transforms import AbsTransform
from tritensor.tensor.core import Tensor


class HalfNormal(TransformedDistribution):
    """|x| of a normal number x around 0 of deviation `scale`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        # scale is checked as this class's own, so that the message names this class
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = delegate("base_dist.scale", "The deviation of the normal number.")

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return T.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return T.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)  # the normal density is even

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return (value / self.scale * math.sqrt(0.5)).erf()

    def icdf(self, prob: Tensor) -> Tensor:
        return self.scale * math.sqrt(2) * prob.erfinv()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)  # type: ignore[no-any-return]
