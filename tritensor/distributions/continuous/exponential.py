"""The exponential distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.parameters import broadcast_all, clamp_positive, draw_standard_exponential
from tritensor.tensor.core import Tensor


class Exponential(ExponentialFamily):
    """rate exp(-rate x) of x >= 0."""

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None] | None] = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return T.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return draw_standard_exponential(self._extended_shape(sample_shape), self.rate) / self.rate

    _move_inside_support = staticmethod(clamp_positive)  # a large rate rounds draws to 0

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(-self.rate * value).expm1()  # 1 - exp would lose small probabilities

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate  # likewise

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()
