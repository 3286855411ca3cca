"""ResNet (He et al. 2016) with the parameter names that its published weights have; a bottleneck strides in its 3 x 3 convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.nn.fusing import apply_then_activate, norm_add_activate
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, and the input added."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int = 1, downsample: nn.Module | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = apply_then_activate(self.bn1, self.relu, self.conv1(x))
        return norm_add_activate(self.bn2, self.relu, self.conv2(y), shortcut)  # type: ignore[no-any-return]


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, the last four times as wide, and the input added."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int = 1, downsample: nn.Module | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = apply_then_activate(self.bn1, self.relu, self.conv1(x))
        y = apply_then_activate(self.bn2, self.relu, self.conv2(y))
        return norm_add_activate(self.bn3, self.relu, self.conv3(y), shortcut)  # type: ignore[no-any-return]


class ResNet(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes).

    Args:
        block: BasicBlock or Bottleneck.
        layers: the number of blocks of each of the four stages, at least one.
        small_images: for images of some 32 pixels: a first convolution of 3 x 3 that does not stride, and no pooling behind it.

    Raises ValueError for other layers.
    """

    def __init__(
        self, block: type[BasicBlock] | type[Bottleneck], layers: Sequence[int], num_classes: int = 1000, small_images: bool = False
    ) -> None:
        super().__init__()
        if len(layers) != 4 or min(layers) < 1:
            raise ArgumentError(f"ResNet: layers is {tuple(layers)}; give the number of blocks, at least one, of each of four stages")
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False) if small_images else nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, stride=2, padding=1)
        channels = 64
        for i, count in enumerate(layers):
            width, stride = 64 << i, 1 if i == 0 else 2
            self.add_module(f"layer{i + 1}", _stage(block, channels, width, count, stride))
            channels = width * block.expansion
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:  # x: (n, 3, h, w)
        x = self.maxpool(apply_then_activate(self.bn1, self.relu, self.conv1(x)))  # (n, 64, h / 4, w / 4), or of the image's size
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))  # type: ignore[no-any-return]  # (n, num_classes)


def _stage(block: type[BasicBlock] | type[Bottleneck], channels: int, width: int, count: int, stride: int) -> nn.Sequential:
    wide = width * block.expansion
    downsample = None
    if stride != 1 or channels != wide:
        downsample = nn.Sequential(nn.Conv2d(channels, wide, 1, stride=stride, bias=False), nn.BatchNorm2d(wide))
    return nn.Sequential(block(channels, width, stride, downsample), *(block(wide, width) for _ in range(count - 1)))


def _publish(layers: int, block: type[BasicBlock] | type[Bottleneck], counts: Sequence[int], parameters: str) -> Callable[..., ResNet]:
    def build(num_classes: int = 1000, small_images: bool = False) -> ResNet:
        return ResNet(block, counts, num_classes, small_images)

    return rename_function(build, f"resnet{layers}", f"A new ResNet-{layers}: {parameters} parameters for 1,000 classes.")


resnet18 = _publish(18, BasicBlock, (2, 2, 2, 2), "11,689,512")
resnet34 = _publish(34, BasicBlock, (3, 4, 6, 3), "21,797,672")
resnet50 = _publish(50, Bottleneck, (3, 4, 6, 3), "25,557,032")
resnet101 = _publish(101, Bottleneck, (3, 4, 23, 3), "44,549,160")
resnet152 = _publish(152, Bottleneck, (3, 8, 36, 3), "60,192,808")
