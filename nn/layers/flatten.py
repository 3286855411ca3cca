"""Flatten and Unflatten."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class Flatten(Module):
    """Dimensions start_dim to end_dim as one; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension `dim` split into sizes `unflattened_size`, of which one may be -1."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(f"Unflatten: dim {dim!r} must be an integer and unflattened_size {unflattened_size!r} a tuple of integers")
        self.dim, self.unflattened_size = dim, unflattened_size if isinstance(unflattened_size, tuple) else tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
