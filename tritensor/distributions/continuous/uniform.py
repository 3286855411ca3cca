"""The uniform distribution on an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.parameters import broadcast_all
from tritensor.tensor.core import Tensor


class Uniform(Distribution):
    """1 / (high - low) on [low, high)."""

    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property  # of an instance: each bound constrains the other
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        """Each bound beyond the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From low to high."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return float("nan") * self.high  # all values are as likely

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = T.rand(tuple(self._extended_shape(sample_shape)), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def _move_inside_support(self, drawn: Tensor) -> Tensor:
        return T.where(drawn < self.high, drawn, self.high.nextafter(self.low))  # the sum may round up to high

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()  # log 0 outside

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
