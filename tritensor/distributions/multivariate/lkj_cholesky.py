"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.autograd.modes import no_grad
from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.distribution import Distribution
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.gamma_family.dirichlet import Beta
from tritensor.distributions.parameters import broadcast_all, draw_standard_normal, float_limits
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` x `dim` correlation matrices M with density proportional to det(M)^(concentration - 1).

    Source: Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and extended onion method", 2009, section 3.2.
    Raises ValueError for a dim below 2.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _fields: ClassVar[dict[str, int | None] | None] = {"dim": None, "concentration": 0, "_beta": 1}

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: dim is {dim}; give 2 or more")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        k = T.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        # the squared lengths of what rows 2, 3, ... hold before the diagonal
        self._beta = Beta(0.5 * k + 0.5, self.concentration.unsqueeze(-1) + 0.5 * (dim - 2 - k), validate_args=False)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    @draw_in_float32
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The onion method: each row is a point of a ball, its direction uniform, its squared length a beta number."""
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)  # (..., dim - 1, 1)
            z = draw_standard_normal(self._extended_shape(sample_shape), y.dtype, y.device).tril(-1)[..., 1:, :]
            z = z / z.square().sum(-1, True).sqrt()  # a direction in as many dimensions as the row has places
            below = T.cat([T.zeros((*y.shape[:-2], 1, self.dim), dtype=y.dtype, device=y.device), y.sqrt() * z], -2)
            # rounding may leave less than nothing of the row's length
            rest = (1 - below.square().sum(-1)).clamp(min=float_limits(y.dtype).tiny)
            return below + T.diag_embed(rest.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        rows = T.arange(2, self.dim + 1, dtype=self.concentration.dtype, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + T.mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n
        return (powers * diagonal.log()).sum(-1) - norm
