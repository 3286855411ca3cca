"""The Gumbel distribution, the limit of the largest of many numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.continuous.uniform import Uniform
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all, draw_standard_exponential, fill_like, float_limits
from tritensor.distributions.transforms import AffineTransform, ExpTransform
from tritensor.tensor.core import Tensor

EULER = 0.57721566490153286060


class Gumbel(TransformedDistribution):
    """loc - scale log(-log u), u uniform."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _fields: ClassVar[dict[str, int | None] | None] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        most = float_limits(self.loc.dtype)
        # PyTorch's base, for who reads base_dist and transforms: this class draws and counts past its ends
        low, high = (fill_like(v, self.loc, self.loc.shape) for v in (most.tiny, 1 - most.eps))
        negated = AffineTransform(0, -1)
        super().__init__(
            Uniform(low, high, validate_args=validate_args), [ExpTransform().inv, negated, ExpTransform().inv, AffineTransform(self.loc, -self.scale)],
            validate_args=validate_args,
        )  # fmt: skip

    def _make_transforms(self, given: list[Any]) -> list[Any]:
        return [*given[:-1], AffineTransform(self.loc, -self.scale)]

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return (
            self.loc - self.scale * draw_standard_exponential(self._extended_shape(sample_shape), self.loc).log()
        )  # -log u itself: u has no digits near 1

    sample = Distribution.sample  # by rsample above, not by the transforms

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (self.loc - value) / self.scale  # not by the transforms, whose inverse overflows in both tails
        return z - z.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    mode = delegate("loc")

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
