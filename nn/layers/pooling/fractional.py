"""FractionalMaxPool2d and FractionalMaxPool3d: windows whose steps are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.pooling.fractional import output_sizes
from tritensor.nn.functional.window_arguments import to_axes
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor

Sizes = int | Sequence[int]
Ratios = float | Sequence[float]


class _FractionalMaxPoolNd(Module):
    """Windows of kernel_size whose steps are drawn anew in every call, so that each axis comes out as output_size, or output_ratio times as large.

    Raises ValueError unless one of the two is given, or for a ratio that is not between 0 and 1.
    """

    axes: int

    def __init__(
        self, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Ratios | None = None, return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"{name}: only one of output_size and output_ratio may be specified")
        output_sizes(name, self.axes, (0,) * self.axes, output_size, output_ratio)
        self.kernel_size, self.return_indices = to_axes(name, "kernel_size", kernel_size, self.axes), return_indices
        self.output_size = None if output_size is None else to_axes(name, "output_size", output_size, self.axes)
        self.output_ratio = (output_ratio,) * self.axes if isinstance(output_ratio, int | float) else output_ratio
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self.axes}d")
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows at drawn steps: (batch, c, h, w) -> (batch, c, *output_size), or output_ratio times each size; with return_indices also where
    each stood."""

    axes = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of windows at drawn steps: (batch, c, d, h, w) -> (batch, c, *output_size), or output_ratio times each size; with return_indices also where
    each stood."""

    axes = 3
