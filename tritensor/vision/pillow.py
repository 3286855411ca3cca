"""Pillow, the optional package that images are read, written and changed with."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tritensor.ground.extras import extra
from tritensor.tensor.core import Tensor


def pillow(module: str = "Image", asked: str = "vision") -> Any:
    """A module of Pillow's, such as ImageOps. Raises ModuleNotFoundError, and says how to install it, where Pillow is not there."""
    return extra(f"PIL.{module}", asked, "Pillow", "tritensor[vision]")


def is_pil_image(x: Any) -> bool:
    """Whether x is an image of Pillow's. Pillow is not imported for that: where it is not loaded, nothing is one."""
    image = sys.modules.get("PIL.Image")  # an image of Pillow's cannot be without the module
    return image is not None and isinstance(x, image.Image)


def channels_first(values: Any) -> Any:
    """An array (h, w) or (h, w, channels) as Pillow gives it, seen as (channels, h, w)."""
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def tensor_from_image(image: Any) -> Tensor:
    """An image of Pillow's as a tensor (channels, h, w) of its own type and values."""
    return Tensor.wrap(channels_first(np.array(image)))


def image_from_array(array: Any, mode: str | None = None) -> Any:
    """An image of a numpy array's values: `mode`, whose bytes it must have, is L for (h, w) uint8, RGB for (h, w, 3); None takes what the array says."""
    image = pillow()
    if mode is None:
        return image.fromarray(array)
    # fromarray() takes no mode any more, and guesses one
    return image.frombuffer(mode, array.shape[1::-1], array.tobytes(), "raw", mode, 0, 1)
