"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.normal import Normal
from tritensor.distributions.parameters import clamp_positive
from tritensor.distributions.transforms import ExpTransform
from tritensor.tensor.core import Tensor


class LogNormal(TransformedDistribution):
    """exp(x) of a normal number x of mean `loc` and deviation `scale`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int] | None] = {}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The logarithm's mean."""
        return self.base_dist.loc  # type: ignore[no-any-return]

    @property
    def scale(self) -> Tensor:
        """The logarithm's deviation."""
        return self.base_dist.scale  # type: ignore[no-any-return]

    def _move_inside_support(self, drawn: Tensor) -> Tensor:
        return clamp_positive(drawn)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]
