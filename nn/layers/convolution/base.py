"""Base of every convolution layer: settings, parameters, repr."""

from __future__ import annotations

from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import to_axes
from tritensor.nn.layers.linear import reset_affine
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor

MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of Conv1d to Conv3d and of the transposed ones; a subclass says over how many axes it goes.

    weight and bias start uniform on +-1 / sqrt(channels per group of the kernel's second size * its cells). Raises ValueError for channels that
    groups do not divide, for a padding that is not known, for padding="same" with a stride, and for a padding_mode that is not known.
    """

    axes: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
        groups: int, bias: bool, padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: groups {groups} must be positive and divide in_channels {in_channels} and out_channels {out_channels}"
            )
        if padding_mode not in MODES:
            raise ValueError(f"{name}: padding_mode {padding_mode!r} is not known; give {', '.join(map(repr, MODES))}")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size = to_axes(name, "kernel_size", kernel_size, self.axes)
        self.stride = to_axes(name, "stride", stride, self.axes)
        self.dilation = to_axes(name, "dilation", dilation, self.axes)
        self.padding = padding if isinstance(padding, str) else to_axes(name, "padding", padding, self.axes)
        self.transposed, self.output_padding = transposed, to_axes(name, "output_padding", output_padding, self.axes)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{name}: padding {padding!r} is not known; give 'same', 'valid', an integer or {self._count_in_words()}")
        if padding == "same" and max(self.stride) > 1:
            raise ValueError(f"{name}: padding='same' is not supported for strided convolutions; stride is {self.stride}")
        # a transposed convolution is the gradient of one, and has its weight: (in, out), not (out, in)
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self._reversed_padding_repeated_twice = self._padding_sides()
        self.weight = empty_parameter(first, second // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def _count_in_words(self) -> str:
        return {1: "a tuple of one", 2: "a pair", 3: "three"}[self.axes]

    def _padding_sides(self) -> list[int]:
        """What is padded at either end of each axis, the last axis first, as F.pad takes it."""
        if not isinstance(self.padding, str):
            return [p for p in reversed(self.padding) for _ in (0, 1)]
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [side for n in reversed(total) for side in (n // 2, n - n // 2)]

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        reset_affine(self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution of `input` with any weight and bias, as this layer pads and strides."""
        return self._convolve(getattr(F, f"conv{self.axes}d"), input, weight, bias)

    def _convolve(self, convolve: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)  # type: ignore[no-any-return]
        # kernels know zeros alone; other paddings are made first, and the convolution has none
        x = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return convolve(x, weight, bias, self.stride, 0, self.dilation, self.groups)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        out = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for what, value, usual in (
            ("padding", self.padding, (0,) * self.axes), ("dilation", self.dilation, (1,) * self.axes),
            ("output_padding", self.output_padding, (0,) * self.axes), ("groups", self.groups, 1),
        ):  # fmt: skip
            if value != usual:
                out += f", {what}={value}"
        if self.bias is None:
            out += ", bias=False"
        return out if self.padding_mode == "zeros" else f"{out}, padding_mode={self.padding_mode}"
