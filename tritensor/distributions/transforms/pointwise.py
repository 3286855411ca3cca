"""Transforms of single numbers: exp, powers, sigmoid, softplus, tanh, abs, affine, and a distribution's cdf."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.parameters import broadcast_all, float_limits, log_sigmoid, sum_rightmost
from tritensor.distributions.transforms.base import Transform
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor


class _IncreasingTransform(Transform):
    """A bijection of numbers that has no parameters and rises."""

    bijective = True
    sign = 1  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)  # a subclass of the user's may be another function


class ExpTransform(_IncreasingTransform):
    """y = exp(x)."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent, of positive numbers."""

    domain, codomain = constraints.positive, constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        e = self.exponent
        known = (e.abs() > 1) & (y > 0) & (y < math.inf)  # then y's logarithm is the longer one, and (e - 1) log x is mostly x's rounding
        longer = (1 - 1 / e) * T.where(known, y, 1.0).log()
        return e.abs().log() + T.where(known, longer, (e - 1) * x.log())

    def forward_shape(self, shape: Any) -> Any:
        return T.broadcast_shapes(tuple(shape), tuple(self.exponent.shape))

    inverse_shape = forward_shape


def keep_off_ends(y: Tensor) -> Tensor:
    """Probabilities, none of them 0 or 1, as PyTorch's transforms bound them."""
    most = float_limits(y.dtype)
    return y.clamp(min=most.tiny, max=1.0 - most.eps)


def clipped_sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), a rounding away from 0 and 1."""
    return keep_off_ends(x.sigmoid())


class SigmoidTransform(_IncreasingTransform):
    """y = 1 / (1 + exp(-x)), a rounding away from 0 and 1."""

    domain, codomain = constraints.real, constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = keep_off_ends(y)
        return y.log() - (-y).log1p()  # logit, with the digits of small y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log_sigmoid(x) + log_sigmoid(-x)


class SoftplusTransform(_IncreasingTransform):
    """y = log(1 + exp(x)), linear above 20."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y  # log(exp(y) - 1), which would overflow

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return log_sigmoid(x)


class TanhTransform(_IncreasingTransform):
    """y = tanh(x)."""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh^2 x) = 2 (log 2 - x - log(1 + exp(-2x))), which cancels nothing
        return 2.0 * (math.log(2.0) - x + log_sigmoid(2.0 * x))


class AbsTransform(Transform):
    """y = |x|, which has no inverse; `inv` gives y itself."""

    domain, codomain = constraints.real, constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _equal_values(a: Any, b: Any) -> bool:
    # two numbers are compared without making tensors of them
    if isinstance(a, Number) and isinstance(b, Number):
        return a == b
    return bool((a == b).all())


class AffineTransform(Transform):
    """y = loc + scale * x; events have `event_dim` dimensions."""

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Real numbers, or tensors of them."""
        return constraints.real if self.event_dim == 0 else constraints.independent(constraints.real, self.event_dim)

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _equal_values(self.loc, other.loc) and _equal_values(self.scale, other.scale)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return 1 if self.scale > 0 else -1 if self.scale < 0 else 0

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            each = self.scale.abs().log().expand(T.broadcast_shapes(tuple(x.shape), tuple(self.scale.shape)))
        else:
            each = T.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(each, self.event_dim)  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> Any:
        return T.broadcast_shapes(tuple(shape), tuple(getattr(self.loc, "shape", ())), tuple(getattr(self.scale, "shape", ())))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution of single numbers, from its support to [0, 1]."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1  # type: ignore[assignment]
    _arguments = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        if not hasattr(distribution, "cdf"):
            raise ArgumentError(f"CumulativeDistributionTransform: {distribution!r} is no distribution; give one that has cdf and icdf")
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]
