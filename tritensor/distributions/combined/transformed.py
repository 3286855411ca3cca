"""TransformedDistribution: the distribution of another one's draws under transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.combined.independent import Independent
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import sum_rightmost
from tritensor.distributions.transforms import ComposeTransform, Transform
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class TransformedDistribution(Distribution):
    """The distribution of t(x), x drawn from a base distribution: log p(t(x)) = log p(x) - log |det dt/dx|.

    Args:
        base_distribution: where x is drawn.
        transforms: a Transform, or a list of them, the first applied first.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _fields: ClassVar[dict[str, int | None] | None] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        given = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(given, list) or not all(isinstance(t, Transform) for t in given):
            raise ArgumentError(f"TransformedDistribution: transforms is {transforms!r}; give a Transform or a list of Transforms")
        self.transforms: list[Any] = given
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_dims = len(base_distribution.event_shape)
        together = ComposeTransform(self.transforms)
        # a transform of vectors cannot take scalars: without this the first draw would fail, far from the mistake
        if len(base_shape) < together.domain.event_dim:
            raise ArgumentError(
                f"TransformedDistribution: its transforms take events of {together.domain.event_dim} dimensions, the base distribution has shape "
                f"{base_shape}; expand it"
            )
        shape = together.forward_shape(base_shape)
        wanted = tuple(together.inverse_shape(shape))
        # a transform may broadcast, so the base draws as many numbers as the result has
        if base_shape != wanted:
            base_distribution = base_distribution.expand(wanted[: len(wanted) - base_dims])
        more = together.domain.event_dim - base_dims
        self.base_dist: Any = Independent(base_distribution, more) if more > 0 else base_distribution
        event = together.codomain.event_dim + max(base_dims - together.domain.event_dim, 0)
        cut = len(shape) - event
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.transforms = new._make_transforms(self.transforms)  # of the copy's own, expanded parameters
        shape: Any = (*batch_shape, *self.event_shape)
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(tuple(shape)[: len(shape) - len(self.base_dist.event_shape)])
        return new

    def _make_transforms(self, given: list[Any]) -> list[Any]:
        """The transforms of an expanded copy: where they hold parameters, the copy's own."""
        return given

    has_rsample = delegate("base_dist.has_rsample")

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """What the last transform leads to."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def _apply_transforms(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    @draw_in_float32
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._apply_transforms(self.base_dist.sample(sample_shape))

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._apply_transforms(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        dims, total, y = len(self.event_shape), 0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _flip_if_decreasing(self, probability: Tensor) -> Tensor:
        """The probability counted from the other end where the transforms fall together."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        # a sign that is a plain 1 costs no op
        if isinstance(sign, int) and sign == 1:
            return probability
        return T.where(T.as_tensor(sign) > 0, probability, 1 - probability)

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            t.sign  # noqa: B018  there is no cdf of what neither rises nor falls
        self._check(value)
        for t in reversed(self.transforms):
            value = t.inv(value)
        # PyTorch checks the inverted value here as well
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(value)
        return self._flip_if_decreasing(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._apply_transforms(self.base_dist.icdf(self._flip_if_decreasing(value)))
