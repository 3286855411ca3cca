"""Lazy convolutions: layers that learn their in_channels from the first input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.nn.functional.window_arguments import AXES, Sizes
from tritensor.nn.layers.convolution.plain import Conv1d, Conv2d, Conv3d
from tritensor.nn.layers.convolution.transposed import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tritensor.nn.layers.lazy import LazyModuleMixin
from tritensor.nn.parameter import UninitializedParameter
from tritensor.tensor.core import Tensor


class _LazyConv(LazyModuleMixin):
    """What makes a convolution lazy: its weight waits for the input's channels, and its bias with it."""

    axes: int
    in_channels: int
    out_channels: int
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any

    def _set_uninitialized(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the initial values anew, once there are parameters."""
        if self.in_channels and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Make the parameters for inputs of as many channels as `input` has."""
        if not self.has_uninitialized_params():
            self.in_channels = (
                self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups
            )  # as a state_dict has brought it
            return
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise ShapeError(
                f"{type(self).__name__}: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, {AXES[self.axes]}) or "
                f"(channels, {AXES[self.axes]})"
            )
        self.in_channels = input.shape[-self.axes - 1]
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ValueError(
                f"{type(self).__name__}: groups {self.groups} must divide the input's {self.in_channels} channels and out_channels {self.out_channels}"
            )
        first, second = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyPlain(_LazyConv):
    """The constructor of LazyConv1d to 3d."""

    def __init__(
        self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: int | str | Sequence[int] = 0, dilation: Sizes = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, padding_mode=padding_mode, device=device, dtype=dtype, bias=False,
        )  # fmt: skip
        self._set_uninitialized(out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlain, Conv1d):  # type: ignore[misc]
    """A Conv1d whose in_channels the first input tells."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlain, Conv2d):  # type: ignore[misc]
    """A Conv2d whose in_channels the first input tells."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlain, Conv3d):  # type: ignore[misc]
    """A Conv3d whose in_channels the first input tells."""

    cls_to_become = Conv3d


class _LazyTransposed(_LazyConv):
    """The constructor of LazyConvTranspose1d to 3d."""

    def __init__(
        self, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
        bias: bool = True, dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, dilation=dilation, padding_mode=padding_mode, device=device, dtype=dtype, bias=False,
        )  # fmt: skip
        self._set_uninitialized(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):  # type: ignore[misc]
    """A ConvTranspose1d whose in_channels the first input tells."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):  # type: ignore[misc]
    """A ConvTranspose2d whose in_channels the first input tells."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):  # type: ignore[misc]
    """A ConvTranspose3d whose in_channels the first input tells."""

    cls_to_become = ConvTranspose3d
