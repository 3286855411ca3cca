"""The gamma distribution and the chi-squared distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.parameters import broadcast_all, clamp_positive
from tritensor.tensor.core import Tensor


class Gamma(ExponentialFamily):
    """rate^a x^(a - 1) exp(-rate x) / gamma(a) of x > 0; a is the concentration."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None] | None] = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)  # below 1 the density falls from infinity at 0

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Gradients by implicit differentiation: dx/da = -(dF/da) / (dF/dx), F the cdf (Figurnov, Mohamed, Mnih 2018)."""
        shape = self._extended_shape(sample_shape)
        return T.standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)

    _move_inside_support = staticmethod(clamp_positive)  # small concentrations round to 0, where log_prob is infinite

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        return T.xlogy(a, self.rate) + T.xlogy(a - 1, value) - self.rate * value - a.lgamma()

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return (x + 1).lgamma() - (x + 1) * (-y).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        a, x = broadcast_all(self.concentration, self.rate * value)
        return T.igamma(a, x)


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal numbers."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df": constraints.positive}
    _fields: ClassVar[dict[str, int | None] | None] = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)  # a square of a normal number is gamma(1/2, 1/2)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2
