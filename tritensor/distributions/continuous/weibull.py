"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.exponential import Exponential
from tritensor.distributions.continuous.gumbel import EULER
from tritensor.distributions.parameters import broadcast_all, clamp_positive
from tritensor.distributions.transforms import AffineTransform, PowerTransform
from tritensor.tensor.core import Tensor


class Weibull(TransformedDistribution):
    """scale e^(1 / concentration), e exponential of rate 1."""

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _fields: ClassVar[dict[str, int | None] | None] = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()  # an attribute of PyTorch's, too
        super().__init__(
            Exponential(T.ones_like(self.scale), validate_args=validate_args), self._make_transforms(), validate_args=validate_args
        )

    def _make_transforms(self, given: Any = None) -> list[Any]:
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    def _moment(self, k: int) -> Tensor:
        """E (x / scale)^k."""
        return (1 + k * self.concentration_reciprocal).lgamma().exp()

    _move_inside_support = staticmethod(clamp_positive)  # a power of a small draw rounds to 0

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) * self.concentration_reciprocal) ** self.concentration_reciprocal  # NaN below 1

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        return EULER * (1 - self.concentration_reciprocal) + (self.scale * self.concentration_reciprocal).log() + 1
