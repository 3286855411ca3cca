"""EfficientNet (Tan and Le 2019) and EfficientNetV2 (2021): inverted residuals, scaled in width, depth and size, with the names that published weights have."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.vision.models._utils import _make_divisible
from tritensor.vision.models.networks.starts import Layer, check_settings, start_convolutions
from tritensor.vision.ops.layers import Conv2dNormActivation, SqueezeExcitation
from tritensor.vision.ops.stochastic_depth import StochasticDepth


@dataclass
class _MBConvConfig:
    """A stage: expansion, size of the filters, stride of the first block, channels in and out, how many blocks, of which class."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Layer

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        """A multiple of 8."""
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of MBConv blocks, its channels and its depth scaled."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int, out_channels: int, num_layers: int, width_mult: float = 1.0,
        depth_mult: float = 1.0, block: Layer | None = None,
    ) -> None:  # fmt: skip
        inside, out = (self.adjust_channels(n, width_mult) for n in (input_channels, out_channels))
        super().__init__(expand_ratio, kernel, stride, inside, out, self.adjust_depth(num_layers, depth_mult), block or MBConv)

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        """As many blocks, rounded up."""
        return math.ceil(num_layers * depth_mult)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of FusedMBConv blocks."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int, out_channels: int, num_layers: int, block: Layer | None = None
    ) -> None:  # fmt: skip
        super().__init__(expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block or FusedMBConv)


class _Residual(nn.Module):
    """What `_layers` gives, added to what came in where the sizes agree, and left out at random then. Raises ValueError for a stride beyond 2."""

    def __init__(self, cnf: _MBConvConfig, stochastic_depth_prob: float, norm_layer: Layer, **further: Any) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ArgumentError(f"illegal stride value {cnf.stride}: 1 or 2")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        self.block = nn.Sequential(*self._layers(cnf, wide, functools.partial(Conv2dNormActivation, norm_layer=norm_layer), **further))
        self.stochastic_depth, self.out_channels = StochasticDepth(stochastic_depth_prob, "row"), cnf.out_channels

    def _layers(self, cnf: _MBConvConfig, wide: int, conv: Layer, **further: Any) -> list[nn.Module]:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        return self.stochastic_depth(result) + input if self.use_res_connect else result  # type: ignore[no-any-return]


class MBConv(_Residual):
    """Widened, filtered channel by channel, squeezed and excited, narrowed."""

    def _layers(self, cnf: _MBConvConfig, wide: int, conv: Layer, **further: Any) -> list[nn.Module]:
        squeeze = further.get("se_layer", SqueezeExcitation)
        return [
            *([conv(cnf.input_channels, wide, 1, activation_layer=nn.SiLU)] if wide != cnf.input_channels else []),
            conv(wide, wide, cnf.kernel, cnf.stride, groups=wide, activation_layer=nn.SiLU),
            squeeze(wide, max(1, cnf.input_channels // 4), activation=functools.partial(nn.SiLU, inplace=True)),
            conv(wide, cnf.out_channels, 1, activation_layer=None),
        ]


class FusedMBConv(_Residual):
    """Widened by whole convolutions, narrowed."""

    def _layers(self, cnf: _MBConvConfig, wide: int, conv: Layer, **further: Any) -> list[nn.Module]:
        if wide == cnf.input_channels:
            return [conv(wide, cnf.out_channels, cnf.kernel, cnf.stride, activation_layer=nn.SiLU)]
        widened = conv(cnf.input_channels, wide, cnf.kernel, cnf.stride, activation_layer=nn.SiLU)
        return [widened, conv(wide, cnf.out_channels, 1, activation_layer=None)]


class EfficientNet(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes), of stages as `inverted_residual_setting` lists them.

    Args:
        dropout: before the last layer.
        stochastic_depth_prob: how likely the last block is left out in training, those before it less.
        last_channel: channels before the last layer; four times those of the last stage where it is not given.

    Raises ValueError, TypeError for no such list.
    """

    def __init__(
        self, inverted_residual_setting: Sequence[_MBConvConfig], dropout: float, stochastic_depth_prob: float = 0.2, num_classes: int = 1000,
        norm_layer: Layer | None = None, last_channel: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        check_settings("inverted_residual_setting", inverted_residual_setting, _MBConvConfig)
        norm = norm_layer or nn.BatchNorm2d
        outer = functools.partial(Conv2dNormActivation, norm_layer=norm, activation_layer=nn.SiLU)
        layers: list[nn.Module] = [outer(3, inverted_residual_setting[0].input_channels, stride=2)]
        total, at = sum(cnf.num_layers for cnf in inverted_residual_setting), 0
        for cnf in inverted_residual_setting:
            stage = []
            for i in range(cnf.num_layers):
                each = copy.copy(cnf)
                if i:  # the first of a stage changes the size
                    each.input_channels, each.stride = cnf.out_channels, 1
                stage.append(each.block(each, stochastic_depth_prob * at / total, norm))
                at += 1
            layers.append(nn.Sequential(*stage))
        narrow = inverted_residual_setting[-1].out_channels
        last = 4 * narrow if last_channel is None else last_channel
        self.features = nn.Sequential(*layers, outer(narrow, last, kernel_size=1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(last, num_classes))
        start_convolutions(self, _start_even)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))  # type: ignore[no-any-return]


def _start_even(layer: nn.Linear) -> None:
    bound = 1.0 / math.sqrt(layer.out_features)
    init.uniform_(layer.weight, -bound, bound)


# (expansion, size of the filters, stride, channels in, out, how many)
_FIRST = ((1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4),
          (6, 3, 1, 192, 320, 1))  # fmt: skip
_SCALES = {  # (width, depth, dropout)
    "b0": (1.0, 1.0, 0.2), "b1": (1.0, 1.1, 0.2), "b2": (1.1, 1.2, 0.3), "b3": (1.2, 1.4, 0.3), "b4": (1.4, 1.8, 0.4), "b5": (1.6, 2.2, 0.4),
    "b6": (1.8, 2.6, 0.5), "b7": (2.0, 3.1, 0.5),
}  # fmt: skip
_SECOND = {  # (dropout, stages); the first three are fused
    "v2_s": (0.2, ((1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4), (4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15))),
    "v2_m": (0.3, ((1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5), (4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18),
                   (6, 3, 1, 304, 512, 5))),
    "v2_l": (0.4, ((1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7), (4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25),
                   (6, 3, 1, 384, 640, 7))),
}  # fmt: skip
SIZES = (*_SCALES, *_SECOND)


def make_efficientnet(size: str, **settings: Any) -> EfficientNet:
    """EfficientNet of a size, "b0" to "b7", "v2_s" to "v2_l"."""
    plan: list[_MBConvConfig]
    if size in _SCALES:
        width, depth, dropout = _SCALES[size]
        plan = [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in _FIRST]
        if size in ("b5", "b6", "b7"):
            settings.setdefault("norm_layer", functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01))
    else:
        dropout, rows = _SECOND[size]
        plan = [FusedMBConvConfig(*row) for row in rows[:3]] + [MBConvConfig(*row) for row in rows[3:]]
        settings = {"norm_layer": functools.partial(nn.BatchNorm2d, eps=0.001), "last_channel": 1280, **settings}
    return EfficientNet(plan, settings.pop("dropout", dropout), **settings)
