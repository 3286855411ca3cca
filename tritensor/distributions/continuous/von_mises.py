"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all
from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor


class VonMises(Distribution):
    """exp(concentration cos(x - loc)) / (2 pi I0(concentration)) of angles in [-pi, pi)."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _fields: ClassVar[dict[str, int | None] | None] = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self.concentration
        # log I0(k) = k + log(exp(-k) I0(k)), which does not overflow
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - T.i0e(k).log()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """By rejection from a wrapped Cauchy distribution (Best and Fisher, "Efficient simulation of the von Mises distribution", 1979), in float64."""
        shape = tuple(self._extended_shape(sample_shape))
        with no_grad():
            # in float32 the proposal's r cancels at small concentrations; PyTorch draws in float64 as well
            k = self.concentration.to(dtypes.float64).expand(shape)
            loc = self.loc.to(dtypes.float64).expand(shape)
            r = _proposal(k)
            x, open_ = T.zeros_like(k), T.ones_like(k) > 0
            while open_.any():
                u = T.rand((3, *shape), dtype=dtypes.float64, device=k.device)
                z = (math.pi * u[0]).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                fine = open_ & ((c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 - c >= 0))
                x = T.where(fine, (u[2] - 0.5).sign() * f.clamp(min=-1, max=1).acos(), x)
                open_ = open_ & ~fine
            # angles are brought to [-pi, pi), as PyTorch gives them
            turned = (x + math.pi + loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    mean = delegate("loc", "The circular mean.")
    mode = delegate("loc")

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        return 1 - T.i1e(self.concentration) / T.i0e(self.concentration)


def _proposal(k: Tensor) -> Tensor:
    """The parameter r of the wrapped Cauchy distribution above; 1 / k + k is its limit at small k."""
    tau = 1 + (1 + 4 * k * k).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * k)
    return T.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
