"""MaxPool, AvgPool and LPPool over one, two and three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import to_axes
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor

Sizes = int | Sequence[int]


class _MaxPoolNd(Module):
    """The settings of max pooling.

    Args:
        kernel_size: the window's size: one number, or one for each axis; so stride, padding and dilation.
        stride: from one window to the next; the window's size unless given.
        padding: cells added at both ends of an axis, at most half a window; they never are the maximum.
        dilation: from one element of a window to the next.
        return_indices: give (maxima, indices): where each stood, as MaxUnpool takes it.
        ceil_mode: round sizes up: a last window may end outside.

    An axis of n becomes (n + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down.
    """

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPoolNd):
    """Maximum of each window, `stride` apart (default: the window): (batch, c, w) -> (batch, c, w'); with return_indices also their places."""

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class MaxPool2d(_MaxPoolNd):
    """Maximum of each window, `stride` apart (default: the window): (batch, c, h, w) -> (batch, c, h', w'); with return_indices also their places."""

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class MaxPool3d(_MaxPoolNd):
    """Maximum of each window, `stride` apart (default: the window): (batch, c, d, h, w) -> (batch, c, d', h', w'); with return_indices also their places."""

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class _AvgPoolNd(Module):
    """The settings of mean pooling.

    Args:
        kernel_size: the window's size: one number, or one for each axis; so stride and padding.
        stride: from one window to the next; the window's size unless given.
        padding: zeros added at both ends of an axis, at most half a window.
        ceil_mode: round sizes up: a last window may end outside.
        count_include_pad: divide by all cells of a window; False counts those of the input alone.
        divisor_override: divide by this number instead (over two and three axes).

    An axis of n becomes (n + 2 padding - kernel_size) / stride + 1, rounded down.
    """

    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Mean of each window, `stride` apart (default: the window): (batch, c, w) -> (batch, c, w')."""

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size = to_axes("AvgPool1d", "kernel_size", kernel_size, 1)
        self.stride = to_axes("AvgPool1d", "stride", kernel_size if stride is None else stride, 1)
        self.padding = to_axes("AvgPool1d", "padding", padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOverAxes(_AvgPoolNd):
    """What AvgPool2d and AvgPool3d take."""

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class AvgPool2d(_AvgPoolOverAxes):
    """Mean of each window, `stride` apart (default: the window): (batch, c, h, w) -> (batch, c, h', w')."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )


class AvgPool3d(_AvgPoolOverAxes):
    """Mean of each window, `stride` apart (default: the window): (batch, c, d, h, w) -> (batch, c, d', h', w')."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )


class _LPPoolNd(Module):
    """The settings of power-average pooling."""

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """(sum of x^p)^(1/p) of each window, p = norm_type, `stride` apart (default: the window): (batch, c, w) -> (batch, c, w')."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """(sum of x^p)^(1/p) of each window, p = norm_type, `stride` apart (default: the window): (batch, c, h, w) -> (batch, c, h', w')."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """(sum of x^p)^(1/p) of each window, p = norm_type, `stride` apart (default: the window): (batch, c, d, h, w) -> (batch, c, d', h', w')."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
