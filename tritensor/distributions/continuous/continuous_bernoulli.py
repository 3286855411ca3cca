"""The continuous Bernoulli distribution on the unit interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.lazy import lazy_property
from tritensor.distributions.parameters import broadcast_all, clamp_probs, logits_to_probs, one_of, probs_to_logits
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class ContinuousBernoulli(ExponentialFamily):
    """C(p) p^x (1 - p)^(1 - x) of x in [0, 1] (Loaiza-Ganem and Cunningham, "The continuous Bernoulli", NeurIPS 2019).

    Args:
        probs, logits: p, or log(p / (1 - p)); one of the two.
        lims: the p around 1/2 for which Taylor series stand in for formulas that are 0/0 there.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _fields: ClassVar[dict[str, int] | None] = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        given = one_of("ContinuousBernoulli", probs=probs, logits=logits)
        if given == "probs":
            (self.probs,) = broadcast_all(probs)
            if validate_args:
                self._need("the parameter probs", self.probs, constraints.unit_interval, "(or validate_args=False to skip the check)")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self.__dict__[given].shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """p."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return (self.probs if "probs" in self.__dict__ else self.logits).size()

    def _usual(self) -> Tensor:
        """Where p is far enough from 1/2 for the formulas."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _far(self) -> Tensor:
        """p, and some value far from 1/2 where the formulas do not serve."""
        return T.where(self._usual(), self.probs, self._lims[0])

    def _log_constant(self) -> Tensor:
        """log C(p) = log(2 artanh(1 - 2 p) / (1 - 2 p)), for p > 1/2 that of 1 - p."""
        p = self._far()
        p = T.where(p <= 0.5, p, 1 - p)
        exact = ((-p).log1p() - p.log()).abs().log() - (-2 * p).log1p()
        x = (self.probs - 0.5).square()
        return T.where(self._usual(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._far()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return T.where(self._usual(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._far()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p).square() + 1.0 / ((-p).log1p() - p.log()).square()
        x = (self.probs - 0.5).square()
        return T.where(self._usual(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(T.rand(tuple(self._extended_shape(sample_shape)), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._far()
        exact = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = T.where(self._usual(), exact, value)
        return T.where(value <= 0.0, T.zeros_like(inside), T.where(value >= 1.0, T.ones_like(inside), inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._far()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return T.where(self._usual(), exact, value)

    def entropy(self) -> Tensor:
        zero, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (zero - one) - self._log_constant() - zero

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x)."""
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = T.where(far, x, self._lims[0] - 0.5)
        return T.where(far, cut.expm1().abs().log() - cut.abs().log(), 0.5 * x + x.square() / 24.0 - x.pow(4) / 2880.0)
