"""ConvTranspose1d, ConvTranspose2d and ConvTranspose3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import Sizes
from tritensor.nn.layers.convolution.base import _ConvNd
from tritensor.tensor.core import Tensor


class _ConvTransposeNd(_ConvNd):
    """Base of the transposed convolutions: forward takes the size that its result is to have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
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
        lead = input.ndim - self.axes
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
