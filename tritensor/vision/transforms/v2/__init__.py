"""Names of torchvision.transforms.v2 whose meaning is that of the first version, of one image; and MixUp and CutMix, of a batch and its labels."""

from __future__ import annotations

from typing import Any

from tritensor import nn
from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor
from tritensor.vision import transforms
from tritensor.vision.transforms.base import Transform
from tritensor.vision.transforms.v2 import functional as functional
from tritensor.vision.transforms.v2.mixing import CutMix as CutMix
from tritensor.vision.transforms.v2.mixing import MixUp as MixUp


class Identity(nn.Module):
    """The image as it is."""

    def forward(self, img: Any) -> Any:
        return img


class ToImage(nn.Module):
    """An image or an array as a tensor of its own values: `functional.to_image`."""

    def forward(self, img: Any) -> Tensor:
        return functional.to_image(img)


class ToDtype(Transform):
    """A tensor in another type: `functional.to_dtype`."""

    _settings = ("scale",)

    def __init__(self, dtype: Any = dtypes.float32, scale: bool = False) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def forward(self, img: Tensor) -> Tensor:
        return functional.to_dtype(img, self.dtype, self.scale)


def __getattr__(name: str) -> Any:
    """The first version's transform of the name. Raises AttributeError where there is none."""
    if name.startswith("_") or not hasattr(transforms, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: of the second version those are here that the first has, too")
    return getattr(transforms, name)


def __dir__() -> list[str]:
    return sorted({"CutMix", "Identity", "MixUp", "ToDtype", "ToImage", "functional", *(n for n in dir(transforms) if n[:1].isupper())})
