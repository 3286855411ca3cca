"""Normalisation by the neighbouring channels' squares."""

from __future__ import annotations

from tritensor.ground.errors import ShapeError
from tritensor.nn import functional as F
from tritensor.nn.functional.normalization import mean_of_neighbours
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.sequences import arange


class LocalResponseNorm(Module):
    """x / (k + alpha mean(x^2))^beta, the mean over the `size` channels around each (Krizhevsky et al. 2012)."""

    __constants__ = ["size", "alpha", "beta", "k"]  # noqa: RUF012  (PyTorch's is a list)

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """LocalResponseNorm of images as Torch 7 has it: (size - 1) // 2 channels on either side, their sum divided by size.

    The first channel counts for all channels whose window lies behind it, too, as in PyTorch, whose running sum never takes it off; the gradient is
    that of this formula, where PyTorch's is that of windows without it.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d: expected input to be 4D, got {input.ndim}D instead; give (batch, channels, h, w)")
        if not input.numel():
            return input * 1
        half = (self.size + 1) // 2 - 1
        squares = input * input
        total = mean_of_neighbours(squares, half, half) * (2 * half + 1)
        behind = (arange(input.shape[1], device=input.device) > half).to(input.dtype).reshape(-1, 1, 1)
        total = total + squares[:, :1] * behind
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
