"""Independent: a distribution whose last batch dimensions count as dimensions of the event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import sum_rightmost
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class Independent(Distribution):
    """The distribution of several independent draws together: log_prob is summed over the last `reinterpreted_batch_ndims` batch dimensions.

    Raises ValueError for more dimensions than the batch has.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _fields: ClassVar[dict[str, int | None] | None] = {"reinterpreted_batch_ndims": None}

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        whole = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ArgumentError(
                f"Independent: reinterpreted_batch_ndims is {reinterpreted_batch_ndims}, the batch_shape {tuple(base_distribution.batch_shape)} has "
                f"{len(base_distribution.batch_shape)} dimensions; give that many at most"
            )
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(whole[: len(whole) - event], whole[len(whole) - event :], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Independent, _instance)
        # First: a subclass may keep all that it has, its validation too, in its base.
        new.base_dist = self.base_dist.expand((*batch_shape, *self.event_shape[: self.reinterpreted_batch_ndims]))
        return super().expand(batch_shape, new)

    has_rsample = delegate("base_dist.has_rsample")

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        # values of several numbers are as many as the power of their number
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """The base distribution's, for all of an event."""
        base = self.base_dist.support
        return constraints.independent(base, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else base

    mean = delegate("base_dist.mean")
    mode = delegate("base_dist.mode")
    variance = delegate("base_dist.variance")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent: values of several dimensions are not enumerated together; enumerate base_dist")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
