"""MaxUnpool1d, MaxUnpool2d and MaxUnpool3d: every maximum at the position it came from, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import to_axes
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor

Sizes = int | Sequence[int]


class _MaxUnpoolNd(Module):
    """The settings of the pooling that is undone; a subclass says over how many axes.

    Args:
        kernel_size, stride, padding: those of the pooling.

    It is called as unpool(maxima, indices, output_size=None); without output_size a size is (n - 1) stride - 2 padding + kernel_size.
    """

    axes: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = to_axes(name, "kernel_size", kernel_size, self.axes)
        self.stride = to_axes(name, "stride", kernel_size if stride is None else stride, self.axes)
        self.padding = to_axes(name, "padding", padding, self.axes)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Any:
        unpool = getattr(F, f"max_unpool{self.axes}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Maxima of MaxPool1d back to their places, zeros elsewhere: (batch, c, w) -> (batch, c, w'), of output_size where that is given."""

    axes = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima of MaxPool2d back to their places, zeros elsewhere: (batch, c, h, w) -> (batch, c, h', w'), of output_size where that is given."""

    axes = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima of MaxPool3d back to their places, zeros elsewhere: (batch, c, d, h, w) -> (batch, c, d', h', w'), of output_size where that is given."""

    axes = 3
