"""Conv2d: the convolution layer over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.windows import pair
from tritensor.nn.layers.linear import reset_affine
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor


class Conv2d(Module):
    """Cross-correlation over images: (batch, in_channels, h, w) -> (batch, out_channels, h', w').

    weight (out, in / groups, kh, kw) and bias (out) start uniform on +-1 / sqrt(in / groups * kh * kw). `padding` is
    a size, a pair, "valid" or "same". Raises ValueError for channels that groups do not divide and for a padding_mode other than "zeros".
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"Conv2d: groups {groups} must be positive and divide in_channels {in_channels} and out_channels {out_channels}"
            )
        if padding_mode != "zeros":
            raise ValueError(
                f"Conv2d: padding_mode {padding_mode!r} is not supported; 'zeros' is. Pad the input yourself and give padding=0"
            )
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size = pair("Conv2d", "kernel_size", kernel_size)
        self.stride = pair("Conv2d", "stride", stride)
        self.dilation = pair("Conv2d", "dilation", dilation)
        self.padding = padding if isinstance(padding, str) else pair("Conv2d", "padding", padding)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Conv2d: padding {padding!r} is not known; give 'same', 'valid', an integer or a pair")
        if padding == "same" and self.stride != (1, 1):
            raise ValueError(f"Conv2d: padding='same' is not supported for strided convolutions; stride is {self.stride}")
        self.weight = empty_parameter(out_channels, in_channels // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        reset_affine(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        out = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0, 0):
            out += f", padding={self.padding}"
        if self.dilation != (1, 1):
            out += f", dilation={self.dilation}"
        if self.groups != 1:
            out += f", groups={self.groups}"
        return out if self.bias is not None else out + ", bias=False"
