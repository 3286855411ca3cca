"""Conv1d, Conv2d and Conv3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import Sizes
from tritensor.nn.fusing import can_fuse_product
from tritensor.nn.layers.convolution.base import _ConvNd
from tritensor.tensor.core import Tensor


class _PlainConv(_ConvNd):
    """What Conv1d, Conv2d and Conv3d take and do."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: int | str | Sequence[int] = 0,
        dilation: Sizes = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            False,
            0,
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _forward_then(self, input: Tensor, activation: str) -> Tensor:
        """forward() and a ReLU in one kernel, for Sequential."""
        return self._convolve(F.conv_relu, input, self.weight, self.bias)


class Conv1d(_PlainConv):
    """Cross-correlation over rows: (batch, in_channels, w) -> (batch, out_channels, w'). weight (out, in / groups, kw), bias (out).

    `padding` is a size, one for each axis, "valid" or "same"; padding_mode says with what: "zeros", "reflect", "replicate" or "circular".
    """

    axes = 1
    _fuses, _fuses_of = ("relu",), can_fuse_product


class Conv2d(_PlainConv):
    """Cross-correlation over images: (batch, in_channels, h, w) -> (batch, out_channels, h', w'). weight (out, in / groups, kh, kw), bias (out).

    `padding` is a size, one for each axis, "valid" or "same"; padding_mode says with what: "zeros", "reflect", "replicate" or "circular".

    >>> nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)(tt.zeros(1, 3, 32, 32)).shape
    tritensor.Size([1, 8, 16, 16])
    """

    axes = 2
    _fuses, _fuses_of = ("relu",), can_fuse_product


class Conv3d(_PlainConv):
    """Cross-correlation over volumes: (batch, in_channels, d, h, w) -> (batch, out_channels, d', h', w'). weight (out, in / groups, kd, kh, kw), bias (out).

    `padding` is a size, one for each axis, "valid" or "same"; padding_mode says with what: "zeros", "reflect", "replicate" or "circular".
    """

    axes = 3
    _fuses, _fuses_of = ("relu",), can_fuse_product
