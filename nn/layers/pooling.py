"""Pooling over one to three axes: the maximum, the mean or the p-norm of windows, of a given number of them or drawn ones, and maxima put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.pooling.fractional import Ratios, output_sizes
from tritensor.nn.functional.window_arguments import Sizes, to_axes
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class _MaxPoolNd(Module):
    """The settings of max pooling; a subclass says over how many axes.

    Args:
        kernel_size: the window's size: one number, or one for each axis; so stride, padding and dilation.
        stride: from one window to the next; the window's size unless given.
        padding: cells added at both ends of an axis, at most half a window; they never are the maximum.
        dilation: from one element of a window to the next.
        return_indices: give (maxima, indices): where each stood, as MaxUnpool takes it.
        ceil_mode: round sizes up: a last window may end outside.

    An axis of n becomes (n + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down.
    """

    axes: int

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride  # noted here, since PyTorch's repr shows it
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"max_pool{self.axes}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPoolNd):
    """Maximum of each window, `stride` apart (default: the window): (batch, c, w) -> (batch, c, w'); with return_indices also their places."""

    axes = 1


class MaxPool2d(_MaxPoolNd):
    """Maximum of each window, `stride` apart (default: the window): (batch, c, h, w) -> (batch, c, h', w'); with return_indices also their places."""

    axes = 2


class MaxPool3d(_MaxPoolNd):
    """Maximum of each window, `stride` apart (default: the window): (batch, c, d, h, w) -> (batch, c, d', h', w'); with return_indices also their places."""

    axes = 3


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
        # PyTorch makes tuples of the numbers here, and not over two and three axes: programs compare the attributes
        self.kernel_size = to_axes("AvgPool1d", "kernel_size", kernel_size, 1)
        self.stride = to_axes("AvgPool1d", "stride", kernel_size if stride is None else stride, 1)
        self.padding = to_axes("AvgPool1d", "padding", padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOverAxes(_AvgPoolNd):
    """What AvgPool2d and AvgPool3d take and do."""

    axes: int

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, f"avg_pool{self.axes}d")
        return pool(  # type: ignore[no-any-return]
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )


class AvgPool2d(_AvgPoolOverAxes):
    """Mean of each window, `stride` apart (default: the window): (batch, c, h, w) -> (batch, c, h', w')."""

    axes = 2


class AvgPool3d(_AvgPoolOverAxes):
    """Mean of each window, `stride` apart (default: the window): (batch, c, d, h, w) -> (batch, c, d', h', w')."""

    axes = 3


class _LPPoolNd(Module):
    """The settings of power-average pooling; a subclass says over how many axes."""

    axes: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, f"lp_pool{self.axes}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """(sum of x^p)^(1/p) of each window, p = norm_type, `stride` apart (default: the window): (batch, c, w) -> (batch, c, w')."""

    axes = 1


class LPPool2d(_LPPoolNd):
    """(sum of x^p)^(1/p) of each window, p = norm_type, `stride` apart (default: the window): (batch, c, h, w) -> (batch, c, h', w')."""

    axes = 2


class LPPool3d(_LPPoolNd):
    """(sum of x^p)^(1/p) of each window, p = norm_type, `stride` apart (default: the window): (batch, c, d, h, w) -> (batch, c, d', h', w')."""

    axes = 3


class _AdaptiveAvgPoolNd(Module):
    axes: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"adaptive_avg_pool{self.axes}d")(input, self.output_size)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over windows that divide each axis evenly, to output_size (None keeps a size): (batch, c, w) -> (batch, c, *output_size)."""

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over windows that divide each axis evenly, to output_size (None keeps a size): (batch, c, h, w) -> (batch, c, *output_size)."""

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over windows that divide each axis evenly, to output_size (None keeps a size): (batch, c, d, h, w) -> (batch, c, *output_size)."""

    axes = 3


class _AdaptiveMaxPoolNd(Module):
    axes: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, f"adaptive_max_pool{self.axes}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"  # PyTorch's shows no return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over windows that divide each axis evenly, to output_size, and where they stood if return_indices:
    (batch, c, w) -> (batch, c, *output_size)."""

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over windows that divide each axis evenly, to output_size, and where they stood if return_indices:
    (batch, c, h, w) -> (batch, c, *output_size)."""

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over windows that divide each axis evenly, to output_size, and where they stood if return_indices:
    (batch, c, d, h, w) -> (batch, c, *output_size)."""

    axes = 3


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
        if output_size is not None and output_ratio is not None:  # the function takes both, and goes by output_size, as PyTorch's
            raise ValueError(f"{name}: only one of output_size and output_ratio may be specified")
        output_sizes(name, self.axes, (0,) * self.axes, output_size, output_ratio)  # of no input: refused now, not in the first call
        self.kernel_size, self.return_indices = to_axes(name, "kernel_size", kernel_size, self.axes), return_indices
        self.output_size = None if output_size is None else to_axes(name, "output_size", output_size, self.axes)
        self.output_ratio = (output_ratio,) * self.axes if isinstance(output_ratio, int | float) else output_ratio
        self.register_buffer("_random_samples", _random_samples)  # a buffer, so that it moves with the module

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
