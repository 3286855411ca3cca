"""Names of torchvision.transforms.v2 whose meaning is that of the first version: of one image, with the transforms of this package."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dtypes, nn
from tritensor.tensor.core import Tensor
from tritensor.vision import transforms
from tritensor.vision.transforms import functional as functional
from tritensor.vision.transforms.functional import convert_image_dtype, pil_to_tensor
from tritensor.vision.transforms.functional.images import is_pil


class Identity(nn.Module):
    """The image as it is."""

    def forward(self, img: Any) -> Any:
        return img


class ToImage(nn.Module):
    """A PIL image, or an array (h, w) or (h, w, channels), as a tensor (channels, h, w) of its own values; a tensor as it is."""

    def forward(self, img: Any) -> Tensor:
        if isinstance(img, np.ndarray):
            return Tensor.wrap(np.ascontiguousarray(img[None] if img.ndim == 2 else img.transpose(2, 0, 1)))
        return pil_to_tensor(img) if is_pil(img, "ToImage") else img


class ToDtype(nn.Module):
    """A tensor in another type; `scale` keeps full brightness full, else values are converted as they are."""

    def __init__(self, dtype: Any = dtypes.float32, scale: bool = False) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def forward(self, img: Tensor) -> Tensor:
        return convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(scale={self.scale})"


def __getattr__(name: str) -> Any:
    """The first version's transform of the name. Raises AttributeError where there is none."""
    if name.startswith("_") or not hasattr(transforms, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: of the second version those are here that the first has, too")
    return getattr(transforms, name)


def __dir__() -> list[str]:
    return sorted({"Identity", "ToDtype", "ToImage", "functional", *(n for n in dir(transforms) if n[:1].isupper())})
