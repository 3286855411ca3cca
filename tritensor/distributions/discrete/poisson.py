"""The Poisson distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all
from tritensor.tensor.core import Tensor


class Poisson(ExponentialFamily):
    """rate^k exp(-rate) / k! of k = 0, 1, ..."""

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _fields: ClassVar[dict[str, int | None] | None] = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = delegate("rate")

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return T.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return T.xlogy(value, rate) - rate - (value + 1).lgamma()  # of a rate of 0 the value 0 is certain

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()
