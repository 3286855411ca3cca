"""torchvision.models.resnet: the blocks that its networks are made of, and the networks."""

from __future__ import annotations

from tritensor import nn
from tritensor.models.resnet import BasicBlock as BasicBlock
from tritensor.models.resnet import Bottleneck as Bottleneck
from tritensor.vision import models
from tritensor.vision.models import ResNet as ResNet

globals().update({name: value for name, value in vars(models).items() if "resne" in name.lower() and name not in ("resnet", "ResNet")})


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A 3 x 3 convolution that keeps the size at stride 1."""
    return nn.Conv2d(in_planes, out_planes, 3, stride=stride, padding=dilation, groups=groups, bias=False, dilation=dilation)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A 1 x 1 convolution."""
    return nn.Conv2d(in_planes, out_planes, 1, stride=stride, bias=False)
