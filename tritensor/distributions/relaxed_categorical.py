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
from tritensor.distributions.parameters import clamp_probs, float_limits
from tritensor.distributions.transforms import ExpTransform
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class ExpRelaxedCategorical(Distribution):
    """The logarithms of relaxed one-hot vectors: log softmax((logits + Gumbel noise) / temperature).

    Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int] | None] = {}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
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
    _fields: ClassVar[dict[str, int] | None] = {}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def _move_inside_support(self, drawn: Tensor) -> Tensor:
        return drawn.clamp(min=float_limits(drawn.dtype).above_zero)

    @property
    def temperature(self) -> Any:
        """How far from the corners the vectors are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self.base_dist.logits  # type: ignore[no-any-return]

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs  # type: ignore[no-any-return]
