"""The Laplace distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import broadcast_all, float_limits
from tritensor.tensor.core import Tensor


class Laplace(Distribution):
    """exp(-|x - loc| / scale) / (2 scale)."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = delegate("loc")

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = T.rand(tuple(self._extended_shape(sample_shape)), dtype=self.loc.dtype, device=self.loc.device)
        v = (2 * u - 1).clamp(min=float_limits(u.dtype).eps - 1)  # (-1, 1): log1p(-1) is infinite
        return self.loc - self.scale * v.sign() * (-v.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        off = value - self.loc
        tail = 0.5 * (-off.abs() / self.scale).exp()  # of the nearer end: it neither overflows nor cancels
        return T.where(off < 0, tail, 1 - tail)

    def icdf(self, value: Tensor) -> Tensor:
        lower = value < 0.5
        left = (2 * T.where(lower, value, 1 - value)).log()  # of the nearer end, as in cdf
        return self.loc + self.scale * T.where(lower, left, -left)

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
