"""The logistic-normal distribution on the simplex."""

from __future__ import annotations

from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.lazy import delegate
from tritensor.distributions.transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Stick breaking of normal vectors of means `loc` and deviations `scale`, (..., n): points of the simplex of n + 1."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        # stick breaking takes vectors: a single number is one of length 1
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args=validate_args)

    loc = delegate("base_dist.base_dist.loc", "The means.")
    scale = delegate("base_dist.base_dist.scale", "The deviations.")
