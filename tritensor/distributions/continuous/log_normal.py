"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import clamp_positive
from tritensor.distributions.transforms import ExpTransform
from tritensor.tensor.core import Tensor


class LogNormal(TransformedDistribution):
    """exp(x) of a normal number x of mean `loc` and deviation `scale`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = delegate("base_dist.loc", "The logarithm's mean.")
    scale = delegate("base_dist.scale", "The logarithm's deviation.")

    _move_inside_support = staticmethod(clamp_positive)  # exp overflows, and underflows to 0

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()  # exp - 1 would cancel at small scales

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]
