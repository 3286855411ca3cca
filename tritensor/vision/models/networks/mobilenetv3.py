"""MobileNetV3 (Howard et al. 2019): inverted residuals that are squeezed and excited, with the names that published weights have."""

from __future__ import annotations

import functools
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision.models._utils import _make_divisible
from tritensor.vision.models.networks.starts import Layer, check_settings, start_convolutions, start_small
from tritensor.vision.ops.layers import Conv2dNormActivation, SqueezeExcitation


class InvertedResidualConfig:
    """A block of MobileNetV3: channels in, size of the filters, channels inside and out, squeeze-and-excitation, "RE" or "HS", stride, dilation."""

    def __init__(
        self, input_channels: int, kernel: int, expanded_channels: int, out_channels: int, use_se: bool, activation: str, stride: int, dilation: int,
        width_mult: float,
    ) -> None:  # fmt: skip
        self.input_channels, self.expanded_channels, self.out_channels = (
            self.adjust_channels(n, width_mult) for n in (input_channels, expanded_channels, out_channels)
        )
        self.kernel, self.stride, self.dilation = kernel, stride, dilation
        self.use_se, self.use_hs = use_se, activation == "HS"

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        """A multiple of 8."""
        return _make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """An inverted residual of MobileNetV3. Raises ValueError for a stride beyond 2."""

    def __init__(self, cnf: InvertedResidualConfig, norm_layer: Layer, se_layer: Layer | None = None) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ArgumentError(f"illegal stride value {cnf.stride}: 1 or 2")
        wide = cnf.expanded_channels
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.out_channels, self._is_cn = cnf.out_channels, cnf.stride > 1
        block = functools.partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish if cnf.use_hs else nn.ReLU)
        layers: list[nn.Module] = [block(cnf.input_channels, wide, kernel_size=1)] if wide != cnf.input_channels else []
        stride = 1 if cnf.dilation > 1 else cnf.stride  # filters with holes see as far without a stride
        layers.append(block(wide, wide, kernel_size=cnf.kernel, stride=stride, dilation=cnf.dilation, groups=wide))
        if cnf.use_se:
            squeeze = se_layer or functools.partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)
            layers.append(squeeze(wide, _make_divisible(wide // 4, 8)))
        self.block = nn.Sequential(*layers, Conv2dNormActivation(wide, cnf.out_channels, 1, norm_layer=norm_layer, activation_layer=None))

    def forward(self, input: Tensor) -> Tensor:
        return self.block(input) + input if self.use_res_connect else self.block(input)  # type: ignore[no-any-return]


class MobileNetV3(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes), of blocks as `inverted_residual_setting` lists them. Raises ValueError, TypeError for no such list."""

    def __init__(
        self, inverted_residual_setting: list[InvertedResidualConfig], last_channel: int, num_classes: int = 1000, block: Layer | None = None,
        norm_layer: Layer | None = None, dropout: float = 0.2, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        check_settings("inverted_residual_setting", inverted_residual_setting, InvertedResidualConfig)
        norm = norm_layer or functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        outer = functools.partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.Hardswish)
        narrow = inverted_residual_setting[-1].out_channels
        blocks = [(block or InvertedResidual)(cnf, norm) for cnf in inverted_residual_setting]
        first = outer(3, inverted_residual_setting[0].input_channels, stride=2)
        self.features = nn.Sequential(first, *blocks, outer(narrow, 6 * narrow, kernel_size=1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * narrow, last_channel), nn.Hardswish(inplace=True), nn.Dropout(dropout, inplace=True), nn.Linear(last_channel, num_classes)
        )  # fmt: skip
        start_convolutions(self, start_small)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))  # type: ignore[no-any-return]


# (channels in, size of the filters, inside, out, squeeze-and-excitation, activation, stride); those from `tail` on are narrower, or have holes, on request
_THIRD = {
    "large": (12, 1280, (
        (16, 3, 16, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2), (24, 3, 72, 24, False, "RE", 1), (24, 5, 72, 40, True, "RE", 2),
        (40, 5, 120, 40, True, "RE", 1), (40, 5, 120, 40, True, "RE", 1), (40, 3, 240, 80, False, "HS", 2), (80, 3, 200, 80, False, "HS", 1),
        (80, 3, 184, 80, False, "HS", 1), (80, 3, 184, 80, False, "HS", 1), (80, 3, 480, 112, True, "HS", 1), (112, 3, 672, 112, True, "HS", 1),
        (112, 5, 672, 160, True, "HS", 2), (160, 5, 960, 160, True, "HS", 1), (160, 5, 960, 160, True, "HS", 1))),
    "small": (8, 1024, (
        (16, 3, 16, 16, True, "RE", 2), (16, 3, 72, 24, False, "RE", 2), (24, 3, 88, 24, False, "RE", 1), (24, 5, 96, 40, True, "HS", 2),
        (40, 5, 240, 40, True, "HS", 1), (40, 5, 240, 40, True, "HS", 1), (40, 5, 120, 48, True, "HS", 1), (48, 5, 144, 48, True, "HS", 1),
        (48, 5, 288, 96, True, "HS", 2), (96, 5, 576, 96, True, "HS", 1), (96, 5, 576, 96, True, "HS", 1))),
}  # fmt: skip


def make_mobilenet_v3(
    size: str, width_mult: float = 1.0, reduced_tail: bool = False, dilated: bool = False, **settings: Any
) -> MobileNetV3:
    """MobileNetV3 "large" or "small"."""
    tail, last, rows = _THIRD[size]
    less = 2 if reduced_tail else 1
    plan = []
    for i, (inside, kernel, wide, out, excited, activation, stride) in enumerate(rows):
        if i > tail:
            inside, wide = inside // less, wide // less
        out = out // less if i >= tail else out
        holes = 2 if dilated and i >= tail else 1
        plan.append(InvertedResidualConfig(inside, kernel, wide, out, excited, activation, stride, holes, width_mult))
    return MobileNetV3(plan, InvertedResidualConfig.adjust_channels(last // less, width_mult), **settings)
