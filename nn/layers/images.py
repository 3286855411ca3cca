"""Layers on images: another size, pixels shuffled into channels and back, patches as columns."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.nn import functional as F
from tritensor.nn.functional.window_arguments import Sizes
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class Upsample(Module):
    """The input at `size`, or `scale_factor` times as large, by F.interpolate in `mode`: nearest, linear, bilinear, bicubic, trilinear."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__  # PyTorch's modules have it, and scripts print it
        self.size, self.mode = size, mode
        several = isinstance(scale_factor, tuple | list)
        # floats, as PyTorch keeps them: the repr of a factor 2 is 2.0
        self.scale_factor = tuple(map(float, scale_factor)) if several else float(scale_factor) if scale_factor else None  # type: ignore[arg-type]
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        given = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{given}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """(batch, channels, h, w) at another size, each pixel the nearest one."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """(batch, channels, h, w) at another size, between the four pixels around; corners lie on corners."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """(..., c r^2, h, w) -> (..., c, h r, w r): r^2 channels become the r x r pixels of one."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(..., c, h r, w r) -> (..., c r^2, h, w): PixelShuffle undone."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """(batch, channels, ...) with the channels of `groups` groups dealt out one from each in turn."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class _Patches(Module):
    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride  # as given, which reprs show

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Unfold(_Patches):
    """(batch, c, h, w) -> (batch, c * kh * kw, windows): the windows as columns.

    Args:
        kernel_size: the window's size, one number or (kh, kw); so the others.
        dilation: from one element of a window to the next.
        padding: zeros added at both ends of an axis.
        stride: from one window to the next.

    >>> nn.Unfold(kernel_size=2)(tt.zeros(1, 3, 4, 5)).shape  # 3 * 4 windows
    tritensor.Size([1, 12, 12])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Patches):
    """(batch, c * kh * kw, windows) -> (batch, c, *output_size): each cell the sum over the windows that hold it.

    The other arguments are those of Unfold. Raises ShapeError where the number of windows is not that of output_size.
    """

    def __init__(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
