"""The multinomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.discrete.binomial import Binomial
from tritensor.distributions.discrete.categorical import Categorical
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import delegate
from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


class Multinomial(Distribution):
    """How often each of n categories comes in `total_count` draws, by probabilities (..., n) or their logarithms, logits."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _fields: ClassVar[dict[str, int | None] | None] = {"total_count": None, "_categorical": 0, "_binomial": 1}

    def __init__(
        self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(f"Multinomial: total_count is {total_count!r}; give one int, the same for the whole batch")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)  # each count by itself, for the entropy
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum to total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    logits = delegate("_categorical.logits", "Logarithms of the probabilities.")
    probs = delegate("_categorical.probs", "The probabilities, which sum to 1.")
    param_shape = delegate("_categorical.param_shape", "The parameter's shape.")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape))  # (total_count, samples, batch)
            drawn = drawn.permute((*range(1, drawn.dim()), 0))
            kind = dtypes.float64  # in which counting does not stop, as it does at 2048 in float16
            counts = T.zeros(tuple(self._extended_shape(sample_shape)), dtype=kind, device=self.probs.device)
            return counts.scatter_add(-1, drawn, T.ones(tuple(drawn.shape), dtype=kind, device=self.probs.device)).to(self.probs.dtype)

    def entropy(self) -> Tensor:
        n = T.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        counts = self._binomial.enumerate_support(expand=False)[1:]  # log 0! is 0
        orders = (self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (n + 1).lgamma() + orders

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = T.broadcast_tensors(self._categorical._log_probs(), value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        # 0 log 0 is 0: what cannot come has not come
        logits = T.where((value == 0) & (logits == -float("inf")), 0.0, logits)
        return ways + (logits * value).sum(-1)
