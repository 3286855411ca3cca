"""Networks that give a class to each pixel: FCN (Long et al. 2015), DeepLabV3 (Chen et al. 2017), LRASPP (Howard et al. 2019)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat


def _resized(x: Tensor, size: Any) -> Tensor:
    return F.interpolate(x, size=tuple(size), mode="bilinear", align_corners=False)


class _SimpleSegmentationModel(nn.Module):
    """A backbone that gives "out", and "aux" for a second head; {"out": scores (n, classes, h, w), "aux": ...} of images (n, 3, h, w)."""

    def __init__(self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone, self.classifier, self.aux_classifier = backbone, classifier, aux_classifier

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features, size = self.backbone(x), x.shape[-2:]
        found = OrderedDict(out=_resized(self.classifier(features["out"]), size))
        if self.aux_classifier is not None:
            found["aux"] = _resized(self.aux_classifier(features["aux"]), size)
        return found


class FCN(_SimpleSegmentationModel):
    """A fully convolutional network."""


class DeepLabV3(_SimpleSegmentationModel):
    """A network whose head looks at several distances."""


def _conv(inside: int, out: int, size: int = 1, dilation: int = 1, inplace: bool = False) -> list[nn.Module]:
    padding = dilation if size == 3 else 0
    return [nn.Conv2d(inside, out, size, padding=padding, dilation=dilation, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace)]


class FCNHead(nn.Sequential):
    """A convolution, and the classes of a quarter of the channels."""

    def __init__(self, in_channels: int, channels: int) -> None:
        inner = in_channels // 4
        super().__init__(*_conv(in_channels, inner, 3), nn.Dropout(0.1), nn.Conv2d(inner, channels, 1))


class ASPPConv(nn.Sequential):
    """A convolution with holes."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(*_conv(in_channels, out_channels, 3, dilation))


class ASPPPooling(nn.Sequential):
    """The mean of all pixels, at each."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_conv(in_channels, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        return _resized(super().forward(x), x.shape[-2:])


class ASPP(nn.Module):
    """A pixel itself, convolutions with holes of several rates, and the mean of all, as one."""

    def __init__(self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256) -> None:
        super().__init__()
        holes = [ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates]
        self.convs = nn.ModuleList([nn.Sequential(*_conv(in_channels, out_channels)), *holes, ASPPPooling(in_channels, out_channels)])
        self.project = nn.Sequential(*_conv(len(self.convs) * out_channels, out_channels), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.project(cat([conv(x) for conv in self.convs], 1))  # type: ignore[no-any-return]


class DeepLabHead(nn.Sequential):
    """ASPP, a convolution, the classes."""

    def __init__(self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)) -> None:
        super().__init__(ASPP(in_channels, atrous_rates), *_conv(256, 256, 3), nn.Conv2d(256, num_classes, 1))


class LRASPPHead(nn.Module):
    """What "high" gives, weighed by its mean, added to what "low" gives."""

    def __init__(self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int) -> None:
        super().__init__()
        self.cbr = nn.Sequential(*_conv(high_channels, inter_channels, inplace=True))
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.Sigmoid())
        self.low_classifier, self.high_classifier = nn.Conv2d(low_channels, num_classes, 1), nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, Tensor]) -> Tensor:
        low, high = input["low"], input["high"]
        weighed = _resized(self.cbr(high) * self.scale(high), low.shape[-2:])
        return self.low_classifier(low) + self.high_classifier(weighed)  # type: ignore[no-any-return]


class LRASPP(nn.Module):
    """A light network: a backbone that gives "low" and "high", its head; {"out": scores (n, classes, h, w)} of images (n, 3, h, w)."""

    def __init__(self, backbone: nn.Module, low_channels: int, high_channels: int, num_classes: int, inter_channels: int = 128) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> dict[str, Tensor]:
        return OrderedDict(out=_resized(self.classifier(self.backbone(input)), input.shape[-2:]))
