"""Grids of images, in memory or in a file."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.io.atomic import atomic_write
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full
from tritensor.tensor.functions.shaping.joining import cat, stack
from tritensor.vision.pillow import image_from_array, pillow


def make_grid(
    tensor: Any, nrow: int = 8, padding: int = 2, normalize: bool = False, value_range: tuple[float, float] | None = None,
    scale_each: bool = False, pad_value: float = 0.0,
) -> Tensor:  # fmt: skip
    """Images (n, channels, h, w), or a list of (channels, h, w), as one (3, H, W): `nrow` in a row, `padding` pixels between and around.

    Args:
        normalize: bring values to 0 to 1, from `value_range`, or their least and most, of each image by itself where `scale_each`.
        pad_value: what stands between. One image alone gets no border; one channel becomes three.

    Raises:
        TypeError: neither a tensor nor a list of them; a value_range that is no pair.
        ShapeError: other dimensions.
    """
    if isinstance(tensor, list | tuple) and tensor and all(isinstance(t, Tensor) for t in tensor):
        tensor = stack(list(tensor), 0)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"make_grid: tensor is a {type(tensor).__name__}; give a tensor (n, channels, h, w), or a list of (channels, h, w)")
    if tensor.ndim not in (2, 3, 4):
        raise ShapeError(f"make_grid: tensor {tuple(tensor.shape)} has {tensor.ndim} dimensions; give (n, channels, h, w)")
    images = tensor.reshape((1,) * (4 - tensor.ndim) + tuple(tensor.shape))
    if images.shape[1] == 1:
        images = cat([images] * 3, 1)  # grids are colour images, as torchvision's
    if normalize:
        images = _normalize(images, value_range, scale_each)
    if images.shape[0] == 1:  # as torchvision: one image alone gets no border
        return images[0]
    count, channels, height, width = (int(n) for n in images.shape)
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = full((channels, height * rows + padding, width * columns + padding), pad_value, dtype=images.dtype, device=images.device)
    for k in range(count):
        top, left = k // columns * height + padding, k % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = images[k]
    return grid


def _normalize(images: Tensor, value_range: Any, scale_each: bool) -> Tensor:
    if value_range is not None and not (isinstance(value_range, tuple) and len(value_range) == 2):
        raise TypeError(f"make_grid: value_range {value_range!r}; give (least, most)")

    def scale(x: Tensor) -> Tensor:
        low, high = value_range or (float(x.min()), float(x.max()))
        return (x.clamp(low, high) - low) / max(high - low, 1e-5)  # an image of one value must not divide by 0

    return stack([scale(x) for x in images], 0) if scale_each else scale(images)


def save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """Write images as one file, a grid of them: values from 0 to 1, rounded to bytes. Further arguments are make_grid's.

    Args:
        fp: a path, whose end says the format, or a binary file, with `format`.

    Raises ValueError for a format that Pillow does not know; and what make_grid raises.
    """
    grid = make_grid(tensor, **kwargs)
    values = (grid * 255 + 0.5).clamp(0, 255).to(dtypes.uint8).cpu().numpy().transpose(1, 2, 0)  # + 0.5: rounded, where a cast cuts off
    image = image_from_array(np.ascontiguousarray(values))
    if not isinstance(fp, str | os.PathLike):
        image.save(fp, format=format)
        return
    kind = format or pillow().registered_extensions().get(os.path.splitext(os.fspath(fp))[1].lower())
    if kind is None:
        raise ArgumentError(
            f"save_image: {os.fspath(fp)!r} ends like no image format that Pillow knows; end it in .png, or give format='PNG'"
        )
    with atomic_write(fp) as file:
        image.save(file, format=kind)
