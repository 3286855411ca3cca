"""ConvNeXt (Liu et al. 2022): a convolutional network in the manner of transformers, with the names that published weights have."""

from __future__ import annotations

import functools
from typing import Any

from tritensor import nn
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.vision.models.networks.starts import Layer, check_settings
from tritensor.vision.ops.layers import Conv2dNormActivation, Permute
from tritensor.vision.ops.stochastic_depth import StochasticDepth


class LayerNorm2d(nn.LayerNorm):
    """A layer norm over the channels of (n, channels, h, w)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A 7 x 7 filter for each channel, then a perceptron at each pixel, scaled, left out at random, and added to what came in."""

    def __init__(self, dim: int, layer_scale: float, stochastic_depth_prob: float, norm_layer: Layer | None = None) -> None:
        super().__init__()
        norm = norm_layer or functools.partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim), Permute([0, 2, 3, 1]), norm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )  # fmt: skip
        self.layer_scale = nn.Parameter(full((dim, 1, 1), float(layer_scale)))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input  # type: ignore[no-any-return]


class CNBlockConfig:
    """A stage: channels, those of the next stage (None for the last), how many blocks."""

    def __init__(self, input_channels: int, out_channels: int | None, num_layers: int) -> None:
        self.input_channels, self.out_channels, self.num_layers = input_channels, out_channels, num_layers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class ConvNeXt(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes), of stages as block_setting lists them. Raises ValueError, TypeError for no such list."""

    def __init__(
        self, block_setting: list[CNBlockConfig], stochastic_depth_prob: float = 0.0, layer_scale: float = 1e-6, num_classes: int = 1000,
        block: Layer | None = None, norm_layer: Layer | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        check_settings("block_setting", block_setting, CNBlockConfig)
        norm = norm_layer or functools.partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            Conv2dNormActivation(3, block_setting[0].input_channels, 4, 4, 0, norm_layer=norm, activation_layer=None, bias=True)
        ]
        total, at = sum(cnf.num_layers for cnf in block_setting), 0
        for cnf in block_setting:
            chances = [stochastic_depth_prob * (at + i) / (total - 1.0) for i in range(cnf.num_layers)]
            layers.append(nn.Sequential(*[(block or CNBlock)(cnf.input_channels, layer_scale, p) for p in chances]))
            at += cnf.num_layers
            if cnf.out_channels is not None:  # to the next stage, at half the size
                layers.append(nn.Sequential(norm(cnf.input_channels), nn.Conv2d(cnf.input_channels, cnf.out_channels, 2, stride=2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = block_setting[-1].out_channels or block_setting[-1].input_channels
        self.classifier = nn.Sequential(norm(last), nn.Flatten(1), nn.Linear(last, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))  # type: ignore[no-any-return]


# (channels of the first stage, blocks of the third, how likely the last block is left out)
SIZES = {"tiny": (96, 9, 0.1), "small": (96, 27, 0.4), "base": (128, 27, 0.5), "large": (192, 27, 0.5)}


def make_convnext(size: str, **settings: Any) -> ConvNeXt:
    """ConvNeXt of a size: "tiny", "small", "base" or "large"."""
    width, deep, chance = SIZES[size]
    plan = [CNBlockConfig(width * 2**i, width * 2 ** (i + 1) if i < 3 else None, deep if i == 2 else 3) for i in range(4)]
    return ConvNeXt(plan, settings.pop("stochastic_depth_prob", chance), **settings)
