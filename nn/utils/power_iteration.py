"""Power iteration: the largest singular value of a weight, for both spectral norms."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as (outputs, everything else)."""
    if dim:
        weight = weight.permute(dim, *[d for d in range(weight.ndim) if d != dim])
    return weight.reshape(weight.shape[0], -1)


def outputs_dim(module: Any) -> int:
    """The dimension of a layer's outputs in its weight: 1 of transposed convolutions."""
    return int(any(c.__name__.startswith("ConvTranspose") for c in type(module).__mro__))


def draw_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """A left and a right vector of length 1, drawn at random."""
    u, v = (matrix.new_empty(n).normal_(0, 1) for n in matrix.shape)
    return F.normalize(u, dim=0, eps=eps), F.normalize(v, dim=0, eps=eps)


@no_grad()
def iterate(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """u to matrix v, and v to matrix^H u, of length 1, in place."""
    for _ in range(times):
        u.copy_(F.normalize(matrix @ v, dim=0, eps=eps))
        v.copy_(F.normalize(matrix.mH @ u, dim=0, eps=eps))
