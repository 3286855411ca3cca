"""Rearrangement of channels and pixels: PixelShuffle, PixelUnshuffle, ChannelShuffle."""

from __future__ import annotations

from tritensor.nn import functional as F
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


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
