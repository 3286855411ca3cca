"""Facts about images, Pillow's or tensors (..., channels, height, width): sizes, largest values; batches of them."""

from __future__ import annotations

from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.vision.pillow import is_pil_image

_MAX_VALUES = {"uint8": 255, "int8": 127, "int16": 32767, "uint16": 65535, "int32": 2147483647, "int64": 9223372036854775807}


def is_pil(img: Any, name: str) -> bool:
    """Whether an image is Pillow's; False for a tensor. Raises TypeError for anything else, ShapeError for a tensor without height and width."""
    if isinstance(img, Tensor):
        if img.ndim < 2:
            raise ShapeError(f"{name}: a tensor of shape {tuple(img.shape)} is no image; give (..., channels, height, width)")
        return False
    if is_pil_image(img):
        return True
    raise TypeError(f"{name}: img is a {type(img).__name__}; give a PIL image or a tensor (..., channels, height, width)")


def get_dimensions(img: Any) -> list[int]:
    """[channels, height, width] of a PIL image or a tensor (..., channels, height, width); a tensor (height, width) has one channel."""
    if is_pil(img, "get_dimensions"):
        return [len(img.getbands()), img.height, img.width]
    return [1 if img.ndim == 2 else int(img.shape[-3]), int(img.shape[-2]), int(img.shape[-1])]


def get_image_size(img: Any) -> list[int]:
    """[width, height] of a PIL image or a tensor."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """The number of channels of a PIL image or a tensor."""
    return get_dimensions(img)[0]


def as_pair(name: str, size: Any) -> tuple[int, int]:
    """(height, width) of a number, or a sequence of one or two. Raises ValueError for another."""
    if isinstance(size, int | float):
        return int(size), int(size)
    if len(size) not in (1, 2):
        raise ArgumentError(f"{name}: size {tuple(size)}; give (height, width), or one number for both")
    return int(size[0]), int(size[-1])


def max_value(dtype: Any) -> int:
    """The value of full brightness: the largest of an integer type, 1 of a floating one."""
    return _MAX_VALUES.get(dtype.name, 1)


def check_channels(img: Tensor, name: str, least_dims: int = 2, permitted: tuple[int, ...] = (1, 3)) -> None:
    """Raise ShapeError for too few dimensions, TypeError for a number of channels that has no colours."""
    if img.ndim < least_dims:
        raise ShapeError(f"{name}: img {tuple(img.shape)} has {img.ndim} dimensions; give (..., channels, height, width)")
    channels = get_dimensions(img)[0]
    if channels not in permitted:
        raise TypeError(f"{name}: img {tuple(img.shape)} has {channels} channels; it takes {' or '.join(map(str, permitted))}")


def as_float(img: Tensor) -> Tensor:
    """The values as floats: floating ones as they are, integers as float32."""
    return img if img.is_floating_point() else img.to(dtypes.float32)


def as_batch(img: Tensor) -> Tensor:
    """(n, channels, height, width), for layers."""
    return img.reshape(-1, *img.shape[-3:]) if img.ndim >= 3 else img.reshape(1, 1, *img.shape)


def restore_shape(batch: Tensor, img: Tensor) -> Tensor:
    """A batch that was made of `img`, with img's leading dimensions and its type; integers are rounded."""
    shape = (*img.shape[:-3], batch.shape[1]) if img.ndim >= 3 else ()
    out = batch.reshape(*shape, *batch.shape[-2:])
    if out.dtype == img.dtype:  # no copy, and nothing to round
        return out
    return (out if img.is_floating_point() else out.round()).to(img.dtype)
