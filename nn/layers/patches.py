"""Patches of images: Unfold lays the windows out as columns, Fold adds columns up to images."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.nn import functional as F
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor

Sizes = int | Sequence[int]


class Unfold(Module):
    """(batch, c, h, w) -> (batch, c * kh * kw, windows): the windows as columns.

    Args:
        kernel_size: the window's size, one number or (kh, kw); so the others.
        dilation: from one element of a window to the next.
        padding: zeros added at both ends of an axis.
        stride: from one window to the next.

    >>> nn.Unfold(kernel_size=2)(tt.zeros(1, 3, 4, 5)).shape  # 3 * 4 windows
    tritensor.Size([1, 12, 12])
    """

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """(batch, c * kh * kw, windows) -> (batch, c, *output_size): each cell the sum over the windows that hold it.

    The other arguments are those of Unfold. Raises ShapeError where the number of windows is not that of output_size.
    """

    def __init__(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation, self.padding, self.stride = output_size, kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        window = f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        return f"output_size={self.output_size}, {window}"
