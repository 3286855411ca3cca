"""The one-hot categorical distribution, also with the straight-through gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.discrete.categorical import Categorical
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import delegate
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class OneHotCategorical(Distribution):
    """A one-hot vector of n elements, by probabilities (..., n) or their logarithms, logits."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _fields: ClassVar[dict[str, int | None] | None] = {"_categorical": 0}

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    _param = delegate("_categorical._param")
    probs = delegate("_categorical.probs", "The probabilities, which sum to 1.")
    logits = delegate("_categorical.logits", "Logarithms of the probabilities.")
    mean = delegate("_categorical.probs")

    def _one_hot(self, indices: Tensor) -> Tensor:
        return F.one_hot(indices, self._categorical._num_events).to(self.probs.dtype)  # of int64, as F.one_hot gives it

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(dim=-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    param_shape = delegate("_categorical.param_shape", "The parameter's shape.")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(Size(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(dim=-1))  # the place of its one 1

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = T.eye(n, dtype=self._param.dtype, device=self._param.device).reshape((n, *[1] * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is passed to the probabilities as it is (Bengio, Léonard, Courville 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn, probs = self.sample(sample_shape), self._categorical.probs
        return drawn + (probs - probs.detach())  # adds 0, whose gradient is that of probs
