"""ResNet (He et al. 2016) with the parameter names that its published weights have; a bottleneck strides in its 3 x 3 convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.nn.fusing import apply_then_activate, norm_add_activate
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

Norm = Callable[..., nn.Module]


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, and the input added. Groups, another width and dilation are refused: only a bottleneck has them."""

    expansion = 1

    def __init__(
        self, channels: int, width: int, stride: int = 1, downsample: nn.Module | None = None, groups: int = 1, base_width: int = 64,
        dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError(f"BasicBlock: dilation {dilation}; it has 1 alone, a Bottleneck has any")
        norm = norm_layer or nn.BatchNorm2d
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = norm(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = norm(width)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = apply_then_activate(self.bn1, self.relu, self.conv1(x))
        return norm_add_activate(self.bn2, self.relu, self.conv2(y), shortcut)  # type: ignore[no-any-return]


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, the last four times as wide, and the input added."""

    expansion = 4

    def __init__(
        self, channels: int, width: int, stride: int = 1, downsample: nn.Module | None = None, groups: int = 1, base_width: int = 64,
        dilation: int = 1, norm_layer: Norm | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm, inner = norm_layer or nn.BatchNorm2d, int(width * (base_width / 64.0)) * groups
        self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
        self.bn1 = norm(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride=stride, padding=dilation, groups=groups, dilation=dilation, bias=False)
        self.bn2 = norm(inner)
        self.conv3 = nn.Conv2d(inner, 4 * width, 1, bias=False)
        self.bn3 = norm(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

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
        zero_init_residual: let each block begin as its input: the last norm of its branch scales by 0.
        groups, width_per_group: of the bottlenecks' 3 x 3 convolutions, as ResNeXt (32, 4) and wide networks (1, 128) have them.
        replace_stride_with_dilation: for each of the last three stages, whether it spreads its kernels and keeps the size instead of halving it.
        norm_layer: what is called with a number of channels for each norm; BatchNorm2d.
        small_images: for images of some 32 pixels: a first convolution of 3 x 3 that does not stride, and no pooling behind it.

    Raises ValueError for other layers.
    """

    def __init__(
        self, block: type[BasicBlock] | type[Bottleneck], layers: Sequence[int], num_classes: int = 1000, zero_init_residual: bool = False,
        groups: int = 1, width_per_group: int = 64, replace_stride_with_dilation: Sequence[bool] | None = None, norm_layer: Norm | None = None,
        *, small_images: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(layers) != 4 or min(layers) < 1:
            raise ArgumentError(f"ResNet: layers is {tuple(layers)}; give the number of blocks, at least one, of each of four stages")
        spread = (False, *(replace_stride_with_dilation or (False, False, False)))
        if len(spread) != 4:
            raise ArgumentError(
                f"ResNet: replace_stride_with_dilation is {replace_stride_with_dilation!r}; give None or three of True and False"
            )
        self._norm_layer, self.groups, self.base_width = norm_layer or nn.BatchNorm2d, groups, width_per_group
        self.inplanes, self.dilation = 64, 1
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False) if small_images else nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, stride=2, padding=1)
        for i, count in enumerate(layers):
            self.add_module(f"layer{i + 1}", self._make_layer(block, 64 << i, count, 1 if i == 0 else 2, spread[i]))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._init_weights(zero_init_residual)

    def _init_weights(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.GroupNorm):
                init.ones_(module.weight)
                init.zeros_(module.bias)
        for module in self.modules() if zero_init_residual else ():
            if isinstance(module, BasicBlock | Bottleneck):
                last = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                init.zeros_(last.weight)

    def _make_layer(
        self, block: type[BasicBlock] | type[Bottleneck], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        """A stage: `blocks` of them, the first of which strides, or spreads its kernel instead. Goes on from `inplanes` and `dilation`, and sets them."""
        before, wide = self.dilation, planes * block.expansion
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        downsample = None
        if stride != 1 or self.inplanes != wide:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, wide, 1, stride=stride, bias=False), self._norm_layer(wide))
        like = (self.groups, self.base_width)
        made = [block(self.inplanes, planes, stride, downsample, *like, before, self._norm_layer)]
        self.inplanes = wide
        made += [block(wide, planes, 1, None, *like, self.dilation, self._norm_layer) for _ in range(1, blocks)]
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:  # x: (n, 3, h, w)
        x = self.maxpool(apply_then_activate(self.bn1, self.relu, self.conv1(x)))  # (n, 64, h / 4, w / 4), or of the image's size
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))  # type: ignore[no-any-return]  # (n, num_classes)


def _publish(layers: int, block: type[BasicBlock] | type[Bottleneck], counts: Sequence[int], parameters: str) -> Callable[..., ResNet]:
    def build(num_classes: int = 1000, small_images: bool = False, **settings: Any) -> ResNet:
        return ResNet(block, counts, num_classes, small_images=small_images, **settings)

    return rename_function(
        build, f"resnet{layers}", f"A new ResNet-{layers}: {parameters} parameters for 1,000 classes. Further settings are ResNet's."
    )


resnet18 = _publish(18, BasicBlock, (2, 2, 2, 2), "11,689,512")
resnet34 = _publish(34, BasicBlock, (3, 4, 6, 3), "21,797,672")
resnet50 = _publish(50, Bottleneck, (3, 4, 6, 3), "25,557,032")
resnet101 = _publish(101, Bottleneck, (3, 4, 23, 3), "44,549,160")
resnet152 = _publish(152, Bottleneck, (3, 8, 36, 3), "60,192,808")
