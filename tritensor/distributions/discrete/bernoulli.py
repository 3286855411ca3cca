"""The Bernoulli distribution and the geometric distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.lazy import ProbsAndLogits, delegate, is_given
from tritensor.distributions.parameters import broadcast_all, float_limits, log1p_exp, log_sigmoid
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class Bernoulli(ProbsAndLogits, ExponentialFamily):
    """1 with probability `probs`, else 0. Give probs or logits, log(p / (1 - p))."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None] | None] = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._set_given("Bernoulli", probs, logits).shape, validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return Size(self._batch_shape)

    mean = delegate("probs")

    @property
    def mode(self) -> Tensor:
        # of a fair coin neither value is the likelier
        return T.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * self._failure_probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return T.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        if is_given(self, "probs"):
            return self._log_likelihood(value, 1 - value)  # computed logits are clamped, which a density would show
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return self._binary_entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = T.arange(2, dtype=self._param.dtype, device=self._param.device).reshape((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return log1p_exp(x)


class Geometric(ProbsAndLogits, Distribution):
    """How many trials of probability `probs` fail before the first that succeeds: p (1 - p)^k of k = 0, 1, ..."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _fields: ClassVar[dict[str, int | None] | None] = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._set_given("Geometric", probs, logits).shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ArgumentError("Geometric: probs has a 0, and no trial would ever succeed; give probabilities above 0")

    @property
    def mean(self) -> Tensor:
        return self._failure_probs / self.probs

    @property
    def mode(self) -> Tensor:
        return T.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return self._failure_probs / self.probs.square()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            double = dtypes.float64  # float32 has too few numbers near 1, of which small probabilities make many failures
            u = T.rand(tuple(self._extended_shape(sample_shape)), dtype=double, device=self._param.device)
            log_failing = (-self.probs.to(double)).log1p() if is_given(self, "probs") else log_sigmoid(-self.logits.to(double))
            return ((-u).log1p() / log_failing).floor().to(self._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._log_likelihood(1.0, value)

    def entropy(self) -> Tensor:
        if is_given(self, "probs"):
            return self._binary_entropy() / self.probs
        # -log p - (1 - p) / p log(1 - p), the second log(1 + e^l) e^-l: neither factor of it is asked for where it overflows
        low, high = self.logits.clamp(max=0.0), self.logits.clamp(min=0.0)
        odds = low.exp().clamp(min=float_limits(low.dtype).tiny)
        rest = T.where(self.logits < 0, odds.log1p() / odds, log1p_exp(high) * (-high).exp())
        return log1p_exp(-self.logits) + rest
