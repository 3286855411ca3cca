"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import is_given, lazy_property
from tritensor.distributions.parameters import (
    as_float_tensor,
    fill_like,
    float_limits,
    logits_to_probs,
    probs_to_logits,
    require_dims,
    require_exactly_one,
)
from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class Categorical(Distribution):
    """A number of 0 to n - 1, by probabilities (..., n), which need not sum to 1, or by their logarithms, logits."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _fields: ClassVar[dict[str, int | None] | None] = {"probs": 1, "logits": 1, "_num_events": None}

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        given = require_exactly_one("Categorical", probs=probs, logits=logits)
        param: Any = probs if probs is not None else logits
        require_dims("Categorical", given, param, 1)
        if probs is not None:
            self.probs = param / param.sum(-1, keepdim=True)  # PyTorch takes weights of any sum
        else:
            self.logits = as_float_tensor(param).log_softmax(-1)  # so that log_prob is a mere look-up
        shape = param.shape
        self._num_events = shape[-1]
        super().__init__(shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0 to n - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities, which sum to 1."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        return self.probs if is_given(self, "probs") else self.logits

    def _log_probs(self) -> Tensor:
        """log p, without the bound that keeps `logits` finite."""
        return self.probs.log() if is_given(self, "probs") else self.logits

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:  # categories are names: there is nothing between two of them
        return fill_like(math.nan, self.probs, self._extended_shape())

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return fill_like(math.nan, self.probs, self._extended_shape())

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.detach()
        if rows.ndim > 2:  # multinomial takes at most two dimensions
            rows = rows.reshape((-1, self._num_events))
        drawn = T.multinomial(rows, sample_shape.numel(), True)  # (batch, samples)
        return (drawn.T if sample_shape else drawn).reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        each, value = self._param, value.to(dtypes.int64)
        # gather does not broadcast
        if value.shape != self._batch_shape:
            batch = T.broadcast_shapes(tuple(value.shape), tuple(self._batch_shape))
            each, value = each.expand((*batch, -1)), value.expand(batch)
        chosen = each.gather(-1, value.unsqueeze(-1)).squeeze(-1)
        return chosen.log() if is_given(self, "probs") else chosen

    def entropy(self) -> Tensor:
        most = float_limits(self._param.dtype)
        # 0 log 0 is 0, and -infinity times 0 NaN
        logs = self.probs.clamp(min=most.tiny).log() if is_given(self, "probs") else self.logits.clamp(min=most.least)
        return -(logs * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = T.arange(self._num_events, device=self._param.device).reshape((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
