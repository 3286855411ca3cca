"""MNASNet (Tan et al. 2019), found by a search, with the names that published weights have."""

from __future__ import annotations

from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.vision.models._utils import _make_divisible
from tritensor.vision.models.networks.starts import start_convolutions

_MOMENTUM = 1 - 0.9997  # the paper's 0.9997 of TensorFlow's


class _InvertedResidual(nn.Module):
    def __init__(self, inside: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inside * expansion
        self.apply_residual = inside == out and stride == 1
        self.layers = nn.Sequential(
            nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide, momentum=_MOMENTUM), nn.ReLU(inplace=True),
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False), nn.BatchNorm2d(wide, momentum=_MOMENTUM), nn.ReLU(inplace=True),
            nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out, momentum=_MOMENTUM),
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return self.layers(input) + input if self.apply_residual else self.layers(input)  # type: ignore[no-any-return]


class MNASNet(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes); alpha is a factor of all channels. Raises ValueError for one that is not positive."""

    _version = 2  # of published weights: the first layers are scaled, too

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ArgumentError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        widths = [_make_divisible(width * alpha, 8) for width in (32, 16, 24, 40, 80, 96, 192, 320)]
        first, second = widths[:2]
        layers: list[nn.Module] = [
            nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first, momentum=_MOMENTUM), nn.ReLU(inplace=True),
            nn.Conv2d(first, first, 3, 1, 1, groups=first, bias=False), nn.BatchNorm2d(first, momentum=_MOMENTUM), nn.ReLU(inplace=True),
            nn.Conv2d(first, second, 1, bias=False), nn.BatchNorm2d(second, momentum=_MOMENTUM),
        ]  # fmt: skip
        # (size of the filters, stride of the first, expansion, how many)
        plan = ((3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1))
        for (inside, out), (kernel, stride, expansion, count) in zip(zip(widths[1:], widths[2:], strict=False), plan, strict=True):
            blocks = [_InvertedResidual(out if i else inside, out, kernel, 1 if i else stride, expansion) for i in range(count)]
            layers.append(nn.Sequential(*blocks))
        last: list[nn.Module] = [nn.Conv2d(widths[7], 1280, 1, bias=False), nn.BatchNorm2d(1280, momentum=_MOMENTUM), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers, *last)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(1280, num_classes))
        start_convolutions(self, lambda layer: init.kaiming_uniform_(layer.weight, mode="fan_out", nonlinearity="sigmoid"))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean((2, 3)))  # type: ignore[no-any-return]


SIZES = {"0_5": 0.5, "0_75": 0.75, "1_0": 1.0, "1_3": 1.3}


def make_mnasnet(size: str, **settings: Any) -> MNASNet:
    """MNASNet of a width: "0_5", "0_75", "1_0" or "1_3"."""
    return MNASNet(SIZES[size], **settings)
