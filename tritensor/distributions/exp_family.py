"""ExponentialFamily: densities of the form h(x) exp(theta . t(x) - F(theta))."""

from __future__ import annotations

from typing import Any

from tritensor import autograd
from tritensor.autograd.modes import is_grad_enabled
from tritensor.distributions.constraints import flatten_last_dims
from tritensor.distributions.distribution import Distribution
from tritensor.tensor.core import Tensor


class ExponentialFamily(Distribution):
    """A distribution whose density is h(x) exp(<t(x), theta> - F(theta)), theta the natural parameters, F the log normalizer, h the carrier measure."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        self._raise_missing("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """F(theta)."""
        self._raise_missing("log normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        """E log h(x)."""
        self._raise_missing("mean carrier measure")

    def entropy(self) -> Tensor:
        """F(theta) - <theta, dF/dtheta> - E log h(x), by differentiation of the log normalizer (Nielsen and Nock, ICIP 2010)."""
        given = self._natural_params
        wanted = any(p.requires_grad for p in given)
        # the normalizer is differentiated here in any case; `wanted` says whether the user differentiates as well
        params = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
        with autograd.enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = autograd.grad(normalizer.sum(), params, create_graph=True)  # the sum: rows do not mix
            entropy = normalizer - self._mean_carrier_measure
            for p, g in zip(params, gradients, strict=True):
                entropy = entropy - flatten_last_dims(p * g, len(self._batch_shape)).sum(-1)
        return entropy if wanted and is_grad_enabled() else entropy.detach()
