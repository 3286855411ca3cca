"""RegNet (Radosavovic et al. 2020): widths along a line, rounded to stages, with the names that published weights have."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import numpy as np

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.vision.models._utils import _make_divisible
from tritensor.vision.models.networks.starts import Layer
from tritensor.vision.ops.layers import Conv2dNormActivation, SqueezeExcitation


class SimpleStemIN(Conv2dNormActivation):
    """The first layer: a 3 x 3 convolution that halves the image."""

    def __init__(self, width_in: int, width_out: int, norm_layer: Layer, activation_layer: Layer) -> None:
        super().__init__(width_in, width_out, 3, 2, norm_layer=norm_layer, activation_layer=activation_layer)


class BottleneckTransform(nn.Sequential):
    """Convolutions of 1 x 1, of 3 x 3 in groups, squeeze-and-excitation where se_ratio says so, and of 1 x 1."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Layer, activation_layer: Layer, group_width: int, bottleneck_multiplier: float,
        se_ratio: float | None,
    ) -> None:  # fmt: skip
        inner = round(width_out * bottleneck_multiplier)
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        layers: list[tuple[str, nn.Module]] = [
            ("a", Conv2dNormActivation(width_in, inner, 1, 1, **how)),
            ("b", Conv2dNormActivation(inner, inner, 3, stride, groups=inner // group_width, **how)),
        ]
        if se_ratio:
            layers.append(("se", SqueezeExcitation(inner, round(se_ratio * width_in), activation=activation_layer)))
        layers.append(("c", Conv2dNormActivation(inner, width_out, 1, 1, norm_layer=norm_layer, activation_layer=None)))
        super().__init__(OrderedDict(layers))


class ResBottleneckBlock(nn.Module):
    """A BottleneckTransform, added to what came in, or to its projection where the sizes differ."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Layer, activation_layer: Layer, group_width: int = 1,
        bottleneck_multiplier: float = 1.0, se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(width_in, width_out, 1, stride, norm_layer=norm_layer, activation_layer=None)
        self.f = BottleneckTransform(
            width_in, width_out, stride, norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio
        )
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))  # type: ignore[no-any-return]


class AnyStage(nn.Sequential):
    """Blocks of one width, the first of which changes the size."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, depth: int, block_constructor: Layer, *further: Any, stage_index: int = 0
    ) -> None:
        super().__init__()
        for i in range(depth):
            made = block_constructor(width_out if i else width_in, width_out, 1 if i else stride, *further)
            self.add_module(f"block{stage_index}-{i}", made)


class BlockParams:
    """Depths, widths, widths of groups, multipliers of inner widths and strides of the stages."""

    def __init__(
        self, depths: list[int], widths: list[int], group_widths: list[int], bottleneck_multipliers: list[float], strides: list[int],
        se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        self.depths, self.widths, self.group_widths = depths, widths, group_widths
        self.bottleneck_multipliers, self.strides, self.se_ratio = bottleneck_multipliers, strides, se_ratio

    @classmethod
    def from_init_params(
        cls, depth: int, w_0: int, w_a: float, w_m: float, group_width: int, bottleneck_multiplier: float = 1.0, se_ratio: float | None = None,
        **kwargs: Any,
    ) -> BlockParams:  # fmt: skip
        """Of blocks whose widths are w_0 + w_a i, rounded to powers of w_m times w_0. Raises ValueError for numbers that make no widths."""
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ArgumentError(f"Invalid RegNet settings: w_0 {w_0}, w_a {w_a}, w_m {w_m}")
        powers = np.round(np.log((np.arange(depth) * w_a + w_0) / w_0) / math.log(w_m))
        each = (np.round(w_0 * w_m**powers / 8) * 8).astype(int).tolist()
        widths = sorted(set(each))
        inner = [int(w * bottleneck_multiplier) for w in widths]
        groups = [min(group_width, w) for w in inner]
        fitting = [int(_make_divisible(w, g) / bottleneck_multiplier) for w, g in zip(inner, groups, strict=True)]
        count = len(widths)
        return cls([each.count(w) for w in widths], fitting, groups, [bottleneck_multiplier] * count, [2] * count, se_ratio)


class RegNet(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes), of stages as block_params says."""

    def __init__(
        self, block_params: BlockParams, num_classes: int = 1000, stem_width: int = 32, stem_type: Layer | None = None, block_type: Layer | None = None,
        norm_layer: Layer | None = None, activation: Layer | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm, active = norm_layer or nn.BatchNorm2d, activation or nn.ReLU
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, norm, active)
        p, width, stages = block_params, stem_width, []
        for i, (out, stride, depth, group, inner) in enumerate(
            zip(p.widths, p.strides, p.depths, p.group_widths, p.bottleneck_multipliers, strict=True), start=1
        ):
            made = AnyStage(
                width, out, stride, depth, block_type or ResBottleneckBlock, norm, active, group, inner, p.se_ratio, stage_index=i
            )  # fmt: skip
            stages.append((f"block{i}", made))
            width = out
        self.trunk_output = nn.Sequential(OrderedDict(stages))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.normal_(module.weight, 0.0, math.sqrt(2.0 / (module.kernel_size[0] * module.kernel_size[1] * module.out_channels)))
            elif isinstance(module, nn.Linear):
                init.normal_(module.weight, 0.0, 0.01)
                assert module.bias is not None
                init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))  # type: ignore[no-any-return]


# (depth, w_0, w_a, w_m, group_width); y has squeeze-and-excitation
SIZES = {
    "y_400mf": (16, 48, 27.89, 2.09, 8), "y_800mf": (14, 56, 38.84, 2.4, 16), "y_1_6gf": (27, 48, 20.71, 2.65, 24), "y_3_2gf": (21, 80, 42.63, 2.66, 24),
    "y_8gf": (17, 192, 76.82, 2.19, 56), "y_16gf": (18, 200, 106.23, 2.48, 112), "y_32gf": (20, 232, 115.89, 2.53, 232),
    "y_128gf": (27, 456, 160.83, 2.52, 264), "x_400mf": (22, 24, 24.48, 2.54, 16), "x_800mf": (16, 56, 35.73, 2.28, 16), "x_1_6gf": (18, 80, 34.01, 2.25, 24),
    "x_3_2gf": (25, 88, 26.31, 2.25, 48), "x_8gf": (23, 80, 49.56, 2.88, 120), "x_16gf": (22, 216, 55.59, 2.1, 128), "x_32gf": (23, 320, 69.86, 2.0, 168),
}  # fmt: skip


def make_regnet(size: str, **settings: Any) -> RegNet:
    """RegNet of a size: "y_400mf", ..., "x_32gf"."""
    return RegNet(BlockParams.from_init_params(*SIZES[size], se_ratio=0.25 if size.startswith("y") else None), **settings)
