"""The binomial distribution and the negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.gamma_family.gamma import Gamma
from tritensor.distributions.lazy import ProbsAndLogits, is_given, lazy_property
from tritensor.distributions.parameters import broadcast_all, float_limits, require_exactly_one
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class _Counts(ProbsAndLogits, Distribution):
    """Numbers of successes: `total_count`, and the probability of one as probs or logits."""

    _fields: ClassVar[dict[str, int | None] | None] = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = require_exactly_one(type(self).__name__, probs=probs, logits=logits)
        if given == "probs":
            total_count, self.probs = broadcast_all(total_count, probs)
        else:
            total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = total_count.to(self.__dict__[given].dtype)  # in PyTorch counts have the type of probabilities
        super().__init__(self.__dict__[given].shape, validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return Size(self._batch_shape)


class Binomial(_Counts):
    """How many of `total_count` trials of probability `probs` succeed. Give probs or logits, log(p / (1 - p))."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True
    _fields = _Counts._fields

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0 to total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return T.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * self._failure_probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return T.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + self._log_likelihood(value, n - value)

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support(False))
        # 0 times -infinity is NaN
        return -(log_prob.exp() * log_prob.clamp(min=float_limits(log_prob.dtype).least)).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max())
        # a batch of different counts has supports of different lengths, which are no tensor
        if int(self.total_count.min()) != most:
            raise NotImplementedError(
                f"Binomial: total_count goes from {int(self.total_count.min())} to {most}; only equal ones are enumerated together"
            )
        values = T.arange(1 + most, dtype=self.total_count.dtype, device=self.total_count.device).reshape(
            (-1, *[1] * len(self._batch_shape))
        )
        return values.expand((-1, *self._batch_shape)) if expand else values


class NegativeBinomial(_Counts):
    """How many trials of probability `probs` succeed before `total_count` have failed, which need not be whole."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer
    _fields = _Counts._fields

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self._odds()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self._odds()).floor().clamp(min=0.0)  # below one failure it would be negative

    @property
    def variance(self) -> Tensor:
        return self.mean / self._failure_probs

    def _odds(self) -> Tensor:
        """p / (1 - p)."""
        return self.probs / self._failure_probs if is_given(self, "probs") else self.logits.exp()

    @lazy_property
    def _gamma(self) -> Gamma:
        """The rates of Poisson numbers that are such numbers."""
        rate = (
            self._failure_probs / self.probs if is_given(self, "probs") else (-self.logits).exp()
        )  # whose last bits are not lost to an odds of inf
        return Gamma(self.total_count, rate, validate_args=False)

    @draw_in_float32
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return T.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        kernel = self._log_likelihood(value, n)
        norm = (1.0 + value).lgamma() + n.lgamma() - (n + value).lgamma()
        return kernel - T.where(n + value == 0.0, 0.0, norm)  # lgamma(0) - lgamma(0) is NaN; no trial is certain
