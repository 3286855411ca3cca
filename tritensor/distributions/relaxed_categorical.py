"""Relaxed one-hot distributions: vectors on the simplex, near a corner at a low temperature, differentiable in the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.transformed import TransformedDistribution
from tritensor.distributions.discrete.categorical import Categorical
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import clamp_probs, float_limits
from tritensor.distributions.transforms import ExpTransform
from tritensor.tensor.core import Tensor


class ExpRelaxedCategorical(Distribution):
    """The logarithms of relaxed one-hot vectors: log softmax((logits + Gumbel noise) / temperature).

    Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"_categorical": 0, "temperature": None}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    param_shape = delegate("_categorical.param_shape", "The parameter's shape.")
    logits = delegate("_categorical.logits", "Logarithms of the probabilities.")
    probs = delegate("_categorical.probs", "The probabilities.")

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # Gumbel noise -log(-log u) is infinite at 0 and 1
        u = clamp_probs(T.rand(tuple(shape), dtype=self.logits.dtype, device=self.logits.device))
        return ((self.logits.expand(shape) - (-u.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self._categorical._num_events
        temperature = self.temperature if isinstance(self.temperature, Tensor) else T.as_tensor(float(self.temperature), dtype=value.dtype)
        scale = T.full_like(temperature, float(n)).lgamma() + (n - 1) * temperature.log()
        return (self.logits - value * self.temperature).log_softmax(-1).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Relaxed one-hot vectors of a temperature and probabilities or logits."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def _move_inside_support(self, drawn: Tensor) -> Tensor:
        return drawn.clamp(min=float_limits(drawn.dtype).above_zero)  # log_prob takes logarithms of all

    temperature = delegate("base_dist.temperature", "How far from the corners the vectors are.")
    logits = delegate("base_dist.logits", "Logarithms of the probabilities.")
    probs = delegate("base_dist.probs", "The probabilities.")
