"""torchvision.transforms.v2.functional, of one image: the first version's functions, and to_image and to_dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.tensor.core import Tensor
from tritensor.vision.pillow import channels_first
from tritensor.vision.transforms import functional
from tritensor.vision.transforms.functional import convert_image_dtype, pil_to_tensor
from tritensor.vision.transforms.functional.images import is_pil


def to_image(img: Any) -> Tensor:
    """A PIL image, or an array (h, w) or (h, w, channels), as a tensor (channels, h, w) of its own values; a tensor as it is."""
    if isinstance(img, np.ndarray):
        return Tensor.wrap(np.ascontiguousarray(channels_first(img)))
    return pil_to_tensor(img) if is_pil(img, "to_image") else img


def to_dtype(img: Tensor, dtype: Any = dtypes.float32, scale: bool = False) -> Tensor:
    """A tensor in another type; `scale` keeps full brightness full, else values are converted as they are."""
    return convert_image_dtype(img, dtype) if scale else img.to(dtype)  # without scale as a tensor's own .to()


def __getattr__(name: str) -> Any:
    """The first version's function of the name. Raises AttributeError where there is none."""
    if name.startswith("_") or not hasattr(functional, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: of the second version those are here that the first has, too")
    return getattr(functional, name)
