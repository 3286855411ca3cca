"""MobileNetV2 (Sandler et al. 2018): inverted residuals, narrow at their ends, with the names that published weights have."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision.models._utils import _make_divisible
from tritensor.vision.models.networks.starts import Layer, start_convolutions, start_small
from tritensor.vision.ops.layers import Conv2dNormActivation


class InvertedResidual(nn.Module):
    """Widened by expand_ratio, filtered channel by channel, narrowed; added to what came in where the sizes agree. Raises ValueError for a stride beyond 2."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: float, norm_layer: Layer | None = None) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ArgumentError(f"stride should be 1 or 2 instead of {stride}")
        norm = norm_layer or nn.BatchNorm2d
        wide = round(inp * expand_ratio)
        self.stride, self.out_channels = stride, oup
        self.use_res_connect, self._is_cn = stride == 1 and inp == oup, stride > 1
        block = functools.partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.ReLU6)
        layers: list[nn.Module] = [block(inp, wide, kernel_size=1)] if expand_ratio != 1 else []
        self.conv = nn.Sequential(*layers, block(wide, wide, stride=stride, groups=wide), nn.Conv2d(wide, oup, 1, bias=False), norm(oup))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)  # type: ignore[no-any-return]


# (expansion, channels, how many, stride of the first)
_SECOND = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class MobileNetV2(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes).

    Args:
        width_mult: a factor of all channels.
        inverted_residual_setting: (expansion, channels, how many, stride of the first) for each stage.
        round_nearest: what divides the channels.
        block, norm_layer: in the place of InvertedResidual and BatchNorm2d.
        dropout: before the last layer.

    Raises ValueError for settings that are no fours.
    """

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0, inverted_residual_setting: Sequence[Sequence[int]] | None = None, round_nearest: int = 8,
        block: Layer | None = None, norm_layer: Layer | None = None, dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        plan = _SECOND if inverted_residual_setting is None else inverted_residual_setting
        if len(plan) == 0 or len(plan[0]) != 4:
            raise ArgumentError(f"inverted_residual_setting should be non-empty or a 4-element list, got {plan}")
        block, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        outer = functools.partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.ReLU6)
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [outer(3, channels, stride=2)]
        for expansion, width, count, stride in plan:
            for i in range(count):
                made = _make_divisible(width * width_mult, round_nearest)
                features.append(block(channels, made, stride if i == 0 else 1, expand_ratio=expansion, norm_layer=norm))
                channels = made
        self.features = nn.Sequential(*features, outer(channels, self.last_channel, kernel_size=1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        start_convolutions(self, start_small)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1)
        return self.classifier(x)  # type: ignore[no-any-return]
