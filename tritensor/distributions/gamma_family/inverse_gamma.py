"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import clamp_positive, fill_like
from tritensor.distributions.transforms import PowerTransform
from tritensor.tensor.core import Tensor


class InverseGamma(TransformedDistribution):
    """1 / x of a gamma number x."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        # the exponent has the rate's type: a plain -1 would have the default one, and promote what it meets
        super().__init__(base, PowerTransform(fill_like(-1.0, base.rate, ())), validate_args=validate_args)

    concentration = delegate("base_dist.concentration", "The gamma number's concentration.")
    rate = delegate("base_dist.rate", "The gamma number's rate.")

    _move_inside_support = staticmethod(clamp_positive)

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return T.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return T.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
