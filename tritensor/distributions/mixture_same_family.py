"""MixtureSameFamily: a mixture of distributions of one family, chosen by a Categorical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions.discrete.categorical import Categorical
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import delegate
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class MixtureSameFamily(Distribution):
    """Draws of the component that a Categorical chooses; components lie along the component distribution's last batch dimension.

    Raises ValueError for a mixture that is no Categorical, components that are none, batch shapes or numbers that do not fit.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _fields: ClassVar[dict[str, int | None] | None] = {
        "_mixture_distribution": 0, "_component_distribution": 1, "_num_component": None, "_event_ndims": None,
    }  # fmt: skip

    def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(f"MixtureSameFamily: mixture_distribution is a {type(mixture_distribution).__name__}; give a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ArgumentError(
                f"MixtureSameFamily: component_distribution is a {type(component_distribution).__name__}; give a Distribution"
            )
        batch = tuple(component_distribution.batch_shape)
        for size1, size2 in zip(reversed(mixture_distribution.batch_shape), reversed(batch[:-1]), strict=False):
            # broadcasting, as in PyTorch: an axis of 1 fits any other
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ArgumentError(
                    f"MixtureSameFamily: mixture batch_shape {tuple(mixture_distribution.batch_shape)} does not fit the components' {batch[:-1]}; "
                    "give shapes that broadcast"
                )
        km, kc = mixture_distribution.logits.shape[-1], batch[-1] if batch else None
        # gather would take the first components in silence
        if km is not None and kc is not None and km != kc:
            raise ArgumentError(f"MixtureSameFamily: {km} weights and {kc} components along batch_shape[-1]; give as many of each")
        self._num_component = km
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch[:-1], event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        """What all components allow."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = delegate("_mixture_distribution", "The Categorical that chooses.")
    component_distribution = delegate("_component_distribution", "The distributions among which it chooses.")

    def _weights(self) -> Tensor:
        """The components' probabilities, with dimensions of 1 for the event's."""
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * self._event_ndims))

    def _average_components(self, x: Tensor) -> Tensor:
        return (self._weights() * x).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average_components(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """That within components and that of their means (law of total variance)."""
        off = self.component_distribution.mean - self._add_component_axis(self.mean)
        return self._average_components(self.component_distribution.variance) + self._average_components(off * off)

    def _add_component_axis(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: Tensor) -> Tensor:
        each = self.component_distribution.cdf(self._add_component_axis(x))
        return (each * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        each = self.component_distribution.log_prob(self._add_component_axis(x))  # (samples, batch, components)
        return (each + self.mixture_distribution._log_probs()).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            chosen = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)  # (samples, batch)
            drawn = self.component_distribution.sample(sample_shape)  # (samples, batch, components, event)
            at = len(sample_shape) + len(self.batch_shape)
            places = chosen.reshape((*drawn.shape[:at], 1, *[1] * self._event_ndims))
            places = places.expand((*drawn.shape[:at], 1, *self.event_shape))
            return drawn.gather(at, places).squeeze(at)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
