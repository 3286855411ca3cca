"""AdaptiveAvgPool and AdaptiveMaxPool over one, two and three axes, to a given size."""

from __future__ import annotations

from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over windows that divide each axis evenly, to output_size (None keeps a size): (batch, c, w) -> (batch, c, *output_size)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over windows that divide each axis evenly, to output_size (None keeps a size): (batch, c, h, w) -> (batch, c, *output_size)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over windows that divide each axis evenly, to output_size (None keeps a size): (batch, c, d, h, w) -> (batch, c, *output_size)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over windows that divide each axis evenly, to output_size, and where they stood if return_indices:
    (batch, c, w) -> (batch, c, *output_size)."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over windows that divide each axis evenly, to output_size, and where they stood if return_indices:
    (batch, c, h, w) -> (batch, c, *output_size)."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over windows that divide each axis evenly, to output_size, and where they stood if return_indices:
    (batch, c, d, h, w) -> (batch, c, *output_size)."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
