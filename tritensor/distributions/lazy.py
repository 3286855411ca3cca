"""Attributes of a distribution that are computed from its parameters when they are first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import enable_grad
from tritensor.distributions.parameters import logits_to_probs, probs_to_logits
from tritensor.tensor.core import Tensor


class lazy_property:
    """A method without arguments as an attribute: computed once for each instance, with gradients recorded, and kept under its name."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        vars(instance)[self.__name__] = value
        return value


class ProbsAndLogits:
    """What distributions of successes share: of `probs` and `logits` the one that was not given is computed from the other."""

    @lazy_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """p."""
        return logits_to_probs(self.logits, is_binary=True)
