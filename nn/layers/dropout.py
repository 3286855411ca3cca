"""Dropout of single elements, of channels, and in the form that keeps mean and variance: in training only."""

from __future__ import annotations

from tritensor.nn import functional as F
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class _DropoutNd(Module):
    """What all have: the probability p, and whether the input is overwritten."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:  # asked here as well: a function would say so in the first training step only
            raise ValueError(f"{type(self).__name__}: dropout probability has to be between 0 and 1, but got {p}; give such a p")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zero each element with probability p and scale the rest by 1 / (1 - p); in evaluation, nothing.

    >>> layer = nn.Dropout(0.5)
    >>> sorted(set(layer(tt.ones(100)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(tt.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """dropout of whole channels of (batch, channels, length) or (channels, length)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """dropout of whole channels of (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """dropout of whole channels of (batch, channels, depth, height, width), or of one without a batch."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean 0 and variance 1, to go with SELU."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
