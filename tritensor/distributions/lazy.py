"""lazy_property, an attribute computed at its first use and kept; delegate; ProbsAndLogits, the base class of distributions that take either."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from tritensor.autograd.modes import enable_grad
from tritensor.distributions import functions as T
from tritensor.distributions.parameters import (
    as_float_tensor,
    broadcast_all,
    float_limits,
    log1p_exp,
    log_sigmoid,
    logits_to_probs,
    probs_to_logits,
    require_exactly_one,
)
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
        # the value is kept: computed under no_grad it would cut all later gradients off
        with enable_grad():
            value = self.wrapped(instance)
        vars(instance)[self.__name__] = value
        vars(instance).setdefault("_computed", set()).add(self.__name__)  # see is_given
        return value


def delegate(path: str, doc: str | None = None) -> Any:
    """A property that reads an attribute of a part: `scale = delegate("base_dist.scale", "The median.")`."""
    read = attrgetter(path)
    return property(lambda self: read(self), doc=doc)  # a property of `read` itself would show attrgetter's own doc in help()


def is_given(instance: Any, name: str) -> bool:
    """Whether a parameter was given, not computed from others."""
    return name in vars(instance) and name not in vars(instance).get("_computed", ())


class ProbsAndLogits:
    """What distributions of successes share: of `probs` and `logits` the one that was not given is computed from the other.

    `logits` of a probability of 0 or 1 are finite, as in PyTorch; formulas ask for logarithms of what was given.
    """

    @lazy_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """p."""
        return logits_to_probs(self.logits, is_binary=True)

    def _set_given(self, name: str, probs: Any, logits: Any) -> Tensor:
        """Keep the one of both that was given, as a tensor, which is returned. Raises ValueError for none or both."""
        if require_exactly_one(name, probs=probs, logits=logits) == "probs":
            (self.probs,) = broadcast_all(probs)
        else:
            self.logits = as_float_tensor(logits)
        return self._param

    @property
    def _param(self) -> Tensor:
        """What was given."""
        return self.probs if is_given(self, "probs") else self.logits

    @property
    def _failure_probs(self) -> Tensor:
        """1 - p, with its digits where p is nearly 1."""
        return 1 - self.probs if is_given(self, "probs") else (-self.logits).sigmoid()

    def _log_likelihood(self, successes: Any, failures: Any) -> Tensor:
        """successes log p + failures log(1 - p), where 0 log 0 is 0."""
        if not is_given(self, "probs"):
            return successes * log_sigmoid(self.logits) + failures * log_sigmoid(-self.logits)
        p = self.probs
        # the logarithm is replaced before it is taken: infinity times 0 is NaN, in the gradient too
        certain = T.where((failures == 0) & (p == 1), 0.0, p)
        return successes * T.where((successes == 0) & (p == 0), 1.0, p).log() + failures * (-certain).log1p()

    def _binary_entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)."""
        if not is_given(self, "probs"):
            low = T.where(self.logits > 0, -self.logits, self.logits)  # of either sign the same
            return log1p_exp(low) - T.where(low == -math.inf, 0.0, low) * low.sigmoid()
        most = float_limits(self.probs.dtype)
        # 0 log 0 is 0: the ends are moved off so that neither logarithm is infinite
        ends = self.probs.clamp(max=1 - most.eps / 2)
        return -self.probs * self.probs.clamp(min=most.tiny).log() - (1 - self.probs) * (-ends).log1p()
