"""ShuffleNetV2 (Ma et al. 2018): half of the channels pass, the other half is filtered, and both are shuffled; with the names that published weights have."""

from __future__ import annotations

from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat
from tritensor.vision.models.networks.starts import Layer


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """The channels of (n, channels, h, w), of each group in turn."""
    n, channels, height, width = x.shape
    return x.reshape(n, groups, channels // groups, height, width).transpose(1, 2).reshape(n, channels, height, width)


class InvertedResidual(nn.Module):
    """Both halves, or with a stride both branches of all, shuffled. Raises ValueError for a stride beyond 3, or channels that change without one."""

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        half = oup // 2
        if not 1 <= stride <= 3 or (stride == 1 and inp != 2 * half):
            raise ArgumentError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values: illegal stride value, or inp is not oup"
            )
        self.stride = stride
        self.branch1 = nn.Sequential()
        if stride > 1:
            self.branch1 = nn.Sequential(
                self.depthwise_conv(inp, inp, 3, stride, 1), nn.BatchNorm2d(inp), nn.Conv2d(inp, half, 1, bias=False), nn.BatchNorm2d(half),
                nn.ReLU(inplace=True),
            )  # fmt: skip
        self.branch2 = nn.Sequential(
            nn.Conv2d(inp if stride > 1 else half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True),
            self.depthwise_conv(half, half, 3, stride, 1), nn.BatchNorm2d(half), nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half),
            nn.ReLU(inplace=True),
        )  # fmt: skip

    @staticmethod
    def depthwise_conv(i: int, o: int, kernel_size: int, stride: int = 1, padding: int = 0, bias: bool = False) -> nn.Conv2d:
        """A filter for each channel."""
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x: Tensor) -> Tensor:
        kept, changed = (self.branch1(x), x) if self.stride > 1 else x.chunk(2, dim=1)
        return channel_shuffle(cat([kept, self.branch2(changed)], 1), 2)


class ShuffleNetV2(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes). Raises ValueError for other numbers of stages than three, and five of channels."""

    def __init__(
        self, stages_repeats: list[int], stages_out_channels: list[int], num_classes: int = 1000, inverted_residual: Layer = InvertedResidual
    ) -> None:  # fmt: skip
        super().__init__()
        if len(stages_repeats) != 3 or len(stages_out_channels) != 5:
            raise ArgumentError("expected stages_repeats as list of 3 positive ints, and stages_out_channels as list of 5 positive ints")
        channels = stages_out_channels[0]
        self.conv1 = nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True))
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for i, (repeats, out) in enumerate(zip(stages_repeats, stages_out_channels[1:4], strict=True), start=2):
            blocks = [inverted_residual(out if j else channels, out, 1 if j else 2) for j in range(repeats)]
            setattr(self, f"stage{i}", nn.Sequential(*blocks))
            channels = out
        last = stages_out_channels[4]
        self.conv5 = nn.Sequential(nn.Conv2d(channels, last, 1, bias=False), nn.BatchNorm2d(last), nn.ReLU(inplace=True))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean((2, 3)))  # type: ignore[no-any-return]


SIZES = {"x0_5": (48, 96, 192, 1024), "x1_0": (116, 232, 464, 1024), "x1_5": (176, 352, 704, 1024), "x2_0": (244, 488, 976, 2048)}


def make_shufflenet(size: str, **settings: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of a width: "x0_5", "x1_0", "x1_5" or "x2_0"."""
    return ShuffleNetV2([4, 8, 4], [24, *SIZES[size]], **settings)
