"""Convolutions over one to three axes, transposed ones, and lazy ones, which learn their in_channels from the first input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import Sizes, lacks_batch, to_axes
from tritensor.nn.fusing import can_fuse_product
from tritensor.nn.layers.lazy import LazyModuleMixin
from tritensor.nn.layers.linear import reset_affine
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, UninitializedParameter, empty_parameter
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
        # a word stays one: PyTorch's attribute and repr have it
        self.padding = padding if isinstance(padding, str) else to_axes(name, "padding", padding, self.axes)
        self.transposed, self.output_padding = transposed, to_axes(name, "output_padding", output_padding, self.axes)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            several = {1: "a tuple of one", 2: "a pair", 3: "three"}[self.axes]
            raise ValueError(f"{name}: padding {padding!r} is not known; give 'same', 'valid', an integer or {several}")
        if padding == "same" and max(self.stride) > 1:
            raise ValueError(f"{name}: padding='same' is not supported for strided convolutions; stride is {self.stride}")
        # a transposed convolution is the gradient of one, and has its weight: (in, out), not (out, in)
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self._reversed_padding_repeated_twice = self._padding_sides()  # PyTorch's name, which layers that others derive read
        self.weight = empty_parameter(first, second // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def _padding_sides(self) -> list[int]:
        """What is padded at either end of each axis, the last axis first, as F.pad takes it."""
        if not isinstance(self.padding, str):
            return [p for p in reversed(self.padding) for _ in (0, 1)]
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        # an odd one has its extra cell at the end, as PyTorch puts it
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


class _PlainConv(_ConvNd):
    """What Conv1d, Conv2d and Conv3d take and do."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: int | str | Sequence[int] = 0,
        dilation: Sizes = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode, device=device,
            dtype=dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _forward_with_activation(self, input: Tensor, activation: str) -> Tensor:
        """forward() and a ReLU in one kernel, for Sequential."""
        return self._convolve(F.conv_relu, input, self.weight, self.bias)


class Conv1d(_PlainConv):
    """Cross-correlation over rows: (batch, in_channels, w) -> (batch, out_channels, w'). weight (out, in / groups, kw), bias (out).

    `padding` is a size, one for each axis, "valid" or "same"; padding_mode says with what: "zeros", "reflect", "replicate" or "circular".
    """

    axes = 1
    _fuses, _fuses_of = ("relu",), can_fuse_product  # of each class by itself: one derived of it may compute something else


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


class _ConvTransposeNd(_ConvNd):
    """Base of the transposed convolutions: forward takes the size that its result is to have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # refused before anything is made: no transposed kernel pads otherwise
        mode = args[10] if len(args) > 10 else kwargs.get("padding_mode", "zeros")
        if mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode {mode!r}: only 'zeros' is supported for transposed convolutions")
        super().__init__(*args, **kwargs)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        spread = getattr(F, f"conv_transpose{self.axes}d")
        more = self._output_padding(input, output_size)
        return spread(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)  # type: ignore[no-any-return]

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None, *_: Any) -> tuple[int, ...]:
        """What output_padding gives a result of `output_size`, the layer's own for None. Raises ValueError for a size that is out of reach."""
        if output_size is None:
            return self.output_padding
        name, wanted = type(self).__name__, tuple(output_size)
        lead = input.ndim - self.axes  # the input may come without a batch
        if len(wanted) == input.ndim:
            wanted = wanted[lead:]
        if len(wanted) != self.axes:
            raise ValueError(
                f"{name}: output_size {tuple(output_size)} has {len(wanted)} sizes; give {self.axes}, or {input.ndim} with batch and channels"
            )
        pads: Any = self.padding
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(input.shape[lead:], self.stride, pads, self.dilation, self.kernel_size, strict=True)
        ]
        # a larger size would be reached by a stride more, that is by a larger input
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for n, low, high in zip(wanted, least, most, strict=True)):
            raise ValueError(
                f"{name}: requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an input of {tuple(input.shape[lead:])}); "
                "give one of those"
            )
        return tuple(n - low for n, low in zip(wanted, least, strict=True))


class _Transposed(_ConvTransposeNd):
    """What ConvTranspose1d, ConvTranspose2d and ConvTranspose3d take."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
        groups: int = 1, bias: bool = True, dilation: Sizes = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias, padding_mode, device=device,
            dtype=dtype,
        )  # fmt: skip


class ConvTranspose1d(_Transposed):
    """The transpose of Conv1d, which makes rows larger: (batch, in_channels, w) -> (batch, out_channels, w').

    weight (in, out / groups, kw), bias (out). A size is (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
    """

    axes = 1


class ConvTranspose2d(_Transposed):
    """The transpose of Conv2d, which makes images larger: (batch, in_channels, h, w) -> (batch, out_channels, h', w').

    weight (in, out / groups, kh, kw), bias (out). A size is (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
    """

    axes = 2


class ConvTranspose3d(_Transposed):
    """The transpose of Conv3d, which makes volumes larger: (batch, in_channels, d, h, w) -> (batch, out_channels, d', h', w').

    weight (in, out / groups, kd, kh, kw), bias (out). A size is (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
    """

    axes = 3


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
            # a state_dict has brought the weight
            self.in_channels = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups
            return
        lacks_batch(type(self).__name__, input, self.axes)
        self.in_channels = input.shape[-self.axes - 1]
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ValueError(
                f"{type(self).__name__}: groups {self.groups} must divide the input's {self.in_channels} channels and out_channels {self.out_channels}"
            )
        # as in _ConvNd: a transposed weight has the input's channels first
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
            # no channels and no bias yet: the base's constructor has nothing to draw
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
