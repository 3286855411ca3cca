"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all, draw_standard_normal
from tritensor.tensor.core import Tensor


class Normal(ExponentialFamily):
    """exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi)).

    >>> d = tt.distributions.Normal(0.0, 2.0)
    >>> d.log_prob(tt.tensor(0.0)), d.sample((3,)).shape
    (tensor(-1.6121), tritensor.Size([3]))
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None] | None] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = delegate("loc")
    stddev = delegate("scale")

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return T.normal(self.loc.expand(shape), self.scale.expand(shape))  # one op in place of three

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        z = draw_standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + z * self.scale

    def _standardize(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -0.5 * self._standardize(value).square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (self._standardize(value) * -math.sqrt(0.5)).erfc()  # which keeps its digits in the lower tail

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * T.ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.square(), -0.5 / self.scale.square()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
