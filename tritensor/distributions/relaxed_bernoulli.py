"""Relaxed Bernoulli distributions: numbers in (0, 1), near 0 or 1 at a low temperature, differentiable in the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import ProbsAndLogits, delegate
from tritensor.distributions.parameters import broadcast_all, clamp_probs, log1p_exp
from tritensor.distributions.transforms import SigmoidTransform
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class LogitRelaxedBernoulli(ProbsAndLogits, Distribution):
    """The logits of relaxed Bernoulli numbers: (logit(probs) + logit(u)) / temperature, u uniform.

    Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"temperature": None, "probs": 0, "logits": 0}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self.temperature = temperature
        super().__init__(self._set_given(type(self).__name__, probs, logits).shape, validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return self._param.size()

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # 0 and 1 have infinite logits
        u = clamp_probs(T.rand(tuple(self._extended_shape(sample_shape)), dtype=self._param.dtype, device=self._param.device))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        off = logits - value * self.temperature  # the density is that of a logistic number
        temperature = self.temperature if isinstance(self.temperature, Tensor) else T.as_tensor(float(self.temperature), dtype=logits.dtype)
        return temperature.log() + off - 2 * log1p_exp(off)


class RelaxedBernoulli(TransformedDistribution):
    """Relaxed Bernoulli numbers of a temperature and probabilities or logits."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)

    temperature = delegate("base_dist.temperature", "How far from 0 and 1 the numbers are.")
    logits = delegate("base_dist.logits", "log(p / (1 - p)).")
    probs = delegate("base_dist.probs", "p.")
