"""Stochastic depth (Huang et al. 2016): a branch that is left out at random while training."""

from __future__ import annotations

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import empty


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """The input, zeroed with probability p: all of it (`mode` "batch") or each sample for itself ("row"); what is kept is scaled by 1 / (1 - p).

    Raises ValueError for a p outside 0 to 1, and another mode.
    """
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"stochastic_depth: drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ArgumentError(f"stochastic_depth: mode has to be either 'batch' or 'row', but got {mode!r}")
    if not training or p == 0.0:
        return input
    survival = 1.0 - p
    rows = input.shape[0] if mode == "row" else 1
    noise = empty((rows, *(1,) * (input.ndim - 1)), dtype=input.dtype, device=input.device).bernoulli_(survival)
    return input * (noise.div_(survival) if survival > 0.0 else noise)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a layer."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"
