"""U-Net (Ronneberger et al. 2015) with padded convolutions and batch normalization, named as its most used public form is."""

from __future__ import annotations

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat


class DoubleConv(nn.Module):
    """Twice: a 3 x 3 convolution, batch normalization, ReLU."""

    def __init__(self, channels: int, out: int, between: int | None = None) -> None:
        super().__init__()
        between = between or out
        self.double_conv = nn.Sequential(
            nn.Conv2d(channels, between, 3, padding=1, bias=False), nn.BatchNorm2d(between), nn.ReLU(inplace=True),
            nn.Conv2d(between, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)  # type: ignore[no-any-return]


class Down(nn.Module):
    """Half as large, twice as deep."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(channels, out))

    def forward(self, x: Tensor) -> Tensor:
        return self.maxpool_conv(x)  # type: ignore[no-any-return]


class Up(nn.Module):
    """Twice as large, joined with the features of the same size on the way down."""

    def __init__(self, channels: int, out: int, bilinear: bool = False) -> None:
        super().__init__()
        self.up: nn.Module
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(channels, out, channels // 2)
        else:
            self.up = nn.ConvTranspose2d(channels, channels // 2, 2, stride=2)
            self.conv = DoubleConv(channels, out)

    def forward(self, x: Tensor, beside: Tensor) -> Tensor:
        x = self.up(x)
        down, right = beside.shape[2] - x.shape[2], beside.shape[3] - x.shape[3]  # an odd size lost a row on the way down
        x = F.pad(x, (right // 2, right - right // 2, down // 2, down - down // 2))
        return self.conv(cat([beside, x], dim=1))  # type: ignore[no-any-return]


class OutConv(nn.Module):
    """A 1 x 1 convolution to the classes."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)  # type: ignore[no-any-return]


class UNet(nn.Module):
    """Images (n, channels, h, w), h and w at least 16, to scores of every pixel, (n, classes, h, w). 31,037,698 parameters for 3 channels, 2 classes.

    Args:
        bilinear: enlarge by interpolation instead of by transposed convolutions (17,262,977 parameters for 3 channels, 1 class).
        width: channels of the first level, 64 in the paper.
    """

    def __init__(self, n_channels: int = 3, n_classes: int = 2, bilinear: bool = False, width: int = 64) -> None:
        super().__init__()
        self.n_channels, self.n_classes, self.bilinear = n_channels, n_classes, bilinear
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, width)
        self.down1 = Down(width, 2 * width)
        self.down2 = Down(2 * width, 4 * width)
        self.down3 = Down(4 * width, 8 * width)
        self.down4 = Down(8 * width, 16 * width // factor)
        self.up1 = Up(16 * width, 8 * width // factor, bilinear)
        self.up2 = Up(8 * width, 4 * width // factor, bilinear)
        self.up3 = Up(4 * width, 2 * width // factor, bilinear)
        self.up4 = Up(2 * width, width, bilinear)
        self.outc = OutConv(width, n_classes)

    def forward(self, x: Tensor) -> Tensor:  # x: (n, channels, h, w)
        first = self.inc(x)  # (n, width, h, w)
        second = self.down1(first)
        third = self.down2(second)
        fourth = self.down3(third)
        x = self.down4(fourth)  # (n, 16 width, h / 16, w / 16)
        x = self.up4(self.up3(self.up2(self.up1(x, fourth), third), second), first)
        return self.outc(x)  # type: ignore[no-any-return]  # (n, classes, h, w)


def unet(n_channels: int = 3, n_classes: int = 2, bilinear: bool = False, width: int = 64) -> UNet:
    """A new U-Net: images (n, n_channels, h, w), h and w 16 or more, to scores (n, n_classes, h, w) of every pixel."""
    return UNet(n_channels, n_classes, bilinear, width)
