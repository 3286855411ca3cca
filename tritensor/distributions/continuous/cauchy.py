"""The Cauchy distribution and the half-Cauchy distribution of its absolute value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all, clamp_finite, fill_like, log1p_square
from tritensor.distributions.transforms import AbsTransform
from tritensor.tensor.core import Tensor


class Cauchy(Distribution):
    """1 / (pi scale (1 + ((x - loc) / scale)^2)): the quotient of two normal numbers. It has no mean."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return fill_like(math.nan, self.loc, self._extended_shape())  # its integral diverges

    mode = delegate("loc")

    @property
    def variance(self) -> Tensor:
        return fill_like(math.inf, self.loc, self._extended_shape())  # PyTorch's answer, though there is no mean

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        z = T.draw_cauchy(tuple(self._extended_shape(sample_shape)), self.loc.dtype.numpy, self.loc.device, None)
        return self.loc + self.scale * z

    _move_inside_support = staticmethod(clamp_finite)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - log1p_square((value - self.loc) / self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (self.loc - value) / self.scale
        return T.ones_like(z).atan2(z) / math.pi  # an angle, which keeps its digits in the lower tail

    def icdf(self, value: Tensor) -> Tensor:
        """tan(pi (u - 1/2)), near the ends as the cotangent of what is left to them."""
        rising = value > 0.5
        left = T.where(rising, 1 - value, value)  # what is left to the nearer end keeps its digits
        far = left < 0.25
        # 0.25 and 0.5 keep the form that is not taken finite, also in its gradient
        z = T.where(far, (math.pi * T.where(far, left, 0.25)).tan().reciprocal(), (math.pi * (0.5 - T.where(far, 0.5, left))).tan())
        return T.where(rising, z, -z) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(TransformedDistribution):
    """|x| of a Cauchy number x around 0."""

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        # scale is checked as this class's own, so that the message names this class
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    _move_inside_support = staticmethod(clamp_finite)

    scale = delegate("base_dist.scale", "The median.")

    @property
    def mean(self) -> Tensor:
        return fill_like(math.inf, self.scale, self._extended_shape())

    @property
    def mode(self) -> Tensor:
        return T.zeros_like(self.scale)

    variance = delegate("base_dist.variance")

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = math.log(2 / math.pi) - self.scale.log() - log1p_square(value / self.scale)
        return T.where(value >= 0, inside, -math.inf)  # of values that nobody has checked

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, prob: Tensor) -> Tensor:
        upper = prob > 0.5
        # from the nearer end: the tangent has no digits left at pi / 2
        left = (T.where(upper, 1 - prob, prob) * (math.pi / 2)).tan()
        return self.scale * T.where(upper, T.where(upper, left, 1.0).reciprocal(), left)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)  # type: ignore[no-any-return]
