"""The Dirichlet distribution on the simplex and the beta distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.parameters import broadcast_all, clamp_open_unit, require_dims
from tritensor.tensor.core import Tensor


class Dirichlet(ExponentialFamily):
    """prod x_i^(a_i - 1) / B(a) of x on the simplex; a is the concentration."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        require_dims("Dirichlet", "concentration", concentration, 1)
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Gradients by implicit differentiation of the components' beta distributions."""
        return T.sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    # the density is 0 or infinite at the ends, where small concentrations round to
    _move_inside_support = staticmethod(clamp_open_unit)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        # xlogy: at a corner the concentrations of 1 count nothing, and 0 log 0 would be NaN
        return T.xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """(a_i - 1) / sum (a_j - 1), those below 1 left out; the first corner where all are below 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        corner = T.eye(above.shape[-1], dtype=above.dtype, device=above.device)[0]
        return T.where((self.concentration < 1).all(-1, True), corner, above / above.sum(-1, True))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def entropy(self) -> Tensor:
        a = self.concentration
        n, total = a.shape[-1], a.sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (n - total) * total.digamma() - ((a - 1.0) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b) of x in (0, 1); a is concentration1, b concentration0."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"_dirichlet": 0}  # concentrations are views of its own

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = T.stack(broadcast_all(concentration1, concentration0), -1)
        # Beta(1, 1) is written with whole numbers, which gamma functions do not take
        self._dirichlet = Dirichlet(both if both.is_floating_point() else both.float(), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    _move_inside_support = staticmethod(clamp_open_unit)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = self.concentration1, self.concentration0
        return T.xlogy(a - 1.0, value) + T.xlog1py(b - 1.0, -value) + (a + b).lgamma() - a.lgamma() - b.lgamma()

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def concentration1(self) -> Tensor:
        """a."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """b."""
        return self._dirichlet.concentration[..., 1]

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
