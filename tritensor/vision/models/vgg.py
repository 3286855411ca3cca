"""torchvision.models.vgg: the class, its networks, and layers of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor import nn
from tritensor.models.vgg import make_features
from tritensor.vision import models
from tritensor.vision.models import VGG as VGG


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """The layers of a plan: a 3 x 3 convolution for each number of channels; "M" halves the image."""
    return nn.Sequential(*make_features(cfg, batch_norm))


globals().update({name: value for name, value in vars(models).items() if name.lower().startswith("vgg") and name not in ("vgg", "VGG")})
