"""DenseNet (Huang et al. 2017), with the parameter names that its published weights have."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from tritensor import nn
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.utils.checkpoint import checkpoint


class _DenseLayer(nn.Module):
    """growth_rate new channels of all that came before."""

    def __init__(self, channels: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool = False) -> None:
        super().__init__()
        inner = bn_size * growth_rate
        self.norm1, self.relu1, self.conv1 = nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.Conv2d(channels, inner, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(inner), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(inner, growth_rate, 3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def _narrow(self, *inputs: Tensor) -> Tensor:
        return self.conv1(self.relu1(self.norm1(ops.cat(*inputs, dim=1))))  # type: ignore[no-any-return]

    def forward(self, input: Any) -> Tensor:
        inputs = [input] if isinstance(input, Tensor) else list(input)
        if self.memory_efficient and any(t.requires_grad for t in inputs):
            narrow = checkpoint(self._narrow, *inputs, use_reentrant=False)
        else:
            narrow = self._narrow(*inputs)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new  # type: ignore[no-any-return]


class _DenseBlock(nn.ModuleDict):
    """Layers each of which sees the input and what all before it made; all of it beside one another."""

    def __init__(
        self, num_layers: int, channels: int, bn_size: int, growth_rate: int, drop_rate: float, memory_efficient: bool = False
    ) -> None:
        super().__init__()
        for i in range(num_layers):
            self.add_module(
                f"denselayer{i + 1}", _DenseLayer(channels + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient)
            )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return ops.cat(*features, dim=1)  # type: ignore[no-any-return]


class _Transition(nn.Sequential):
    """Fewer channels, and half the size."""

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        self.conv, self.pool = nn.Conv2d(channels, out_channels, 1, bias=False), nn.AvgPool2d(2, stride=2)


class DenseNet(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes).

    Args:
        growth_rate: channels that each layer adds.
        block_config: the number of layers of each block.
        num_init_features: channels of the first convolution.
        bn_size: how many times growth_rate a layer's narrow part has.
        drop_rate: of dropout behind each layer.
        memory_efficient: compute the narrow parts again for the backward pass instead of keeping them.
    """

    def __init__(
        self, growth_rate: int = 32, block_config: Sequence[int] = (6, 12, 24, 16), num_init_features: int = 64, bn_size: int = 4,
        drop_rate: float = 0, num_classes: int = 1000, memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        channels = num_init_features
        self.features = nn.Sequential(OrderedDict([
            ("conv0", nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False)), ("norm0", nn.BatchNorm2d(channels)),
            ("relu0", nn.ReLU(inplace=True)), ("pool0", nn.MaxPool2d(3, stride=2, padding=1)),
        ]))  # fmt: skip
        for i, count in enumerate(block_config):
            self.features.add_module(f"denseblock{i + 1}", _DenseBlock(count, channels, bn_size, growth_rate, drop_rate, memory_efficient))
            channels += count * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight)
        init.zeros_(self.classifier.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.features(x), inplace=True)
        return self.classifier(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))  # type: ignore[no-any-return]


_OLD = re.compile(r"^(.*denselayer\d+\.(?:norm|relu|conv))\.((?:[12])\.(?:weight|bias|running_mean|running_var))$")


def rename_published(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Published weights under today's names: their files have `norm.1` for what is called `norm1`."""
    renamed = {}
    for key, value in state_dict.items():
        found = _OLD.match(key)
        renamed[found[1] + found[2] if found else key] = value
    return renamed
