"""Functions between images and tensors, between types of values, and to mean 0 and deviation 1."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import as_tensor, numpy_type
from tritensor.vision.pillow import channels_first, image_from_array, is_pil_image, tensor_from_image
from tritensor.vision.transforms.functional.images import max_value

_LITTLE = sys.byteorder == "little"
_MODE_TYPES = {"I": np.int32, "I;16" if _LITTLE else "I;16B": np.int16, "F": np.float32}
# Modes of Pillow's by the number of channels, the first where none is asked for.
_MODES = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
_GREY = {"uint8": "L", "int16": "I;16" if _LITTLE else "I;16B", "int32": "I", "float32": "F"}


def to_tensor(pic: Any) -> Tensor:
    """A PIL image or an array (h, w) or (h, w, channels) as a tensor (channels, h, w); uint8 becomes the default floating type, 0 to 1.

    Images of mode "1" too; I, I;16 and F keep their values. Raises TypeError for anything else, ShapeError for other dimensions.
    """
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ShapeError(f"to_tensor: pic {pic.shape} has {pic.ndim} dimensions; give (height, width) or (height, width, channels)")
        values = pic
    elif is_pil_image(pic):
        values = np.array(pic, _MODE_TYPES.get(pic.mode, np.uint8))
        if pic.mode == "1":  # Pillow's bilevel images give 0 and 1
            values *= 255
    else:
        raise TypeError(f"to_tensor: pic is a {type(pic).__name__}; give a PIL image or a numpy array")
    values = channels_first(values)
    if values.dtype != np.uint8:
        return Tensor.wrap(np.ascontiguousarray(values))
    kind = dtypes.default_float().numpy
    if kind not in (np.float32, np.float64):  # numpy divides no bfloat16, and float16 only slowly
        return Tensor.wrap(np.ascontiguousarray(values)).to(dtypes.default_float()) / 255
    out = np.empty(values.shape, kind)  # one pass: divides while it transposes and converts
    np.divide(values, kind.type(255), out=out, dtype=kind)
    return Tensor.wrap(out)


def pil_to_tensor(pic: Any) -> Tensor:
    """A PIL image as a tensor (channels, h, w) of its own type and values. Raises TypeError for anything else."""
    if not is_pil_image(pic):
        raise TypeError(f"pil_to_tensor: pic is a {type(pic).__name__}; give a PIL image")
    return tensor_from_image(pic)


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A PIL image of a tensor (channels, h, w) or (h, w), on any device, or of an array (h, w, channels) or (h, w).

    Floats are taken as 0 to 1 and become uint8, times 255, cut off. `mode` is Pillow's; where it is None, L, LA, RGB or RGBA by the number
    of channels, and I;16, I or F for one channel of int16, int32 or float32 (the last where mode="F" asks for it).
    Raises TypeError for other things and types, ShapeError for other dimensions, ValueError for a mode that does not fit.
    """
    if isinstance(pic, Tensor):
        values = pic.detach().cpu().numpy()
        values = values.transpose(1, 2, 0) if values.ndim == 3 else values
    elif isinstance(pic, np.ndarray):
        values = pic
    else:
        raise TypeError(f"to_pil_image: pic is a {type(pic).__name__}; give a tensor or a numpy array")
    if values.ndim not in (2, 3):
        raise ShapeError(
            f"to_pil_image: pic {tuple(pic.shape)} has {values.ndim} dimensions; give (channels, height, width), or (height, width)"
        )
    values = values if values.ndim == 3 else values[:, :, None]  # one path for grey and colours
    channels = values.shape[2]
    if channels not in (1, 2, 3, 4):
        raise ShapeError(f"to_pil_image: pic {tuple(pic.shape)} has {channels} channels; an image has 1 to 4")
    if values.dtype.kind not in "biu" and mode != "F":  # floats, and those that numpy has not itself, such as bfloat16
        values = (values.astype(np.float32 if values.dtype.kind != "f" else values.dtype) * 255).astype(np.uint8)
    kind = values.dtype.name
    if channels == 1:
        modes: tuple[str, ...] = (_GREY[kind],) if kind in _GREY else ()
        values = values[:, :, 0]
    else:
        modes = _MODES[channels] if kind == "uint8" else ()
    if not modes:
        raise DTypeError(
            f"to_pil_image: pic is {kind} with {channels} channels, which Pillow has no mode for; give uint8, or floats of 0 to 1"
        )
    if mode is not None and mode not in modes:
        raise ArgumentError(f"to_pil_image: mode {mode!r} for {kind} with {channels} channels; it can be {', '.join(map(repr, modes))}")
    return image_from_array(np.ascontiguousarray(values), mode or modes[0])


def convert_image_dtype(image: Tensor, dtype: Any = dtypes.float32) -> Tensor:
    """An image in another type, its values scaled so that full brightness stays full: 255 of uint8 is 1 of float32.

    Floats become integers by (max + 1 - 0.001) times, cut off, so that all values are equally likely; integers become wider or narrower ones by
    powers of 2. Raises TypeError for no tensor, DTypeError where the floats are too coarse for the integers (float32 to int32 or int64).
    """
    if not isinstance(image, Tensor):
        raise TypeError(f"convert_image_dtype: image is a {type(image).__name__}; give a tensor")
    kind = dtypes.of(numpy_type(dtype))
    if image.dtype == kind:
        return image
    floating = kind.is_floating_point
    if image.is_floating_point():
        if floating:
            return image.to(kind)
        if (image.dtype.name == "float32" and kind.name in ("int32", "int64")) or (image.dtype.name == "float64" and kind.name == "int64"):
            raise DTypeError(
                f"convert_image_dtype: {image.dtype.name} has fewer digits than {kind.name}, so most of its values could not be reached"
            )
        return (image * (max_value(kind) + 1.0 - 1e-3)).to(kind)  # 1.0 becomes 255, and every level has as wide a range of floats
    if floating:
        return image.to(kind) / float(max_value(image.dtype))
    before, after = max_value(image.dtype), max_value(kind)
    if before > after:  # by a shift: the highest bits stay
        return (image // ((before + 1) // (after + 1))).to(kind)
    return image.to(kind) * ((after + 1) // (before + 1))


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """(tensor - mean) / std channel by channel, of an image (..., channels, h, w) of floats; `inplace` writes into it.

    Raises TypeError for no tensor or integers, ShapeError for too few dimensions, ValueError for a std that is 0 in the image's type.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"normalize: tensor is a {type(tensor).__name__}; ToTensor makes one of a PIL image")
    if not tensor.is_floating_point():
        raise DTypeError(f"normalize: tensor is {tensor.dtype.name}; convert_image_dtype makes floats of it")
    if tensor.ndim < 3:
        raise ShapeError(f"normalize: tensor {tuple(tensor.shape)} has {tensor.ndim} dimensions; give (..., channels, height, width)")
    centre, width = (_to_channels(v, tensor) for v in (mean, std))
    if not width.divides:  # infinities would show only in the loss
        raise ArgumentError(f"normalize: std {std} is 0 in {tensor.dtype.name}, and would be divided by")
    if inplace:
        return tensor.sub_(centre.values).div_(width.values)
    return (tensor - centre.values) / width.values


class _Channels(NamedTuple):
    """A number for each channel, as a tensor (channels, 1, 1), and whether none of them is 0."""

    values: Tensor
    divides: bool


def _to_channels(values: Any, like: Tensor) -> _Channels:
    if isinstance(values, tuple | list) and all(type(v) is float for v in values):
        return _cached_channels(tuple(values), like.dtype, like.device)
    return _make_channels(values, like.dtype, like.device)


def _make_channels(values: Any, dtype: Any, device: Any) -> _Channels:
    t = as_tensor(values, dtype=dtype, device=device)
    return _Channels(t.reshape(-1, 1, 1) if t.ndim == 1 else t, not bool((t == 0).any()))


_cached_channels = functools.lru_cache(64)(_make_channels)  # every sample of a data set has the same few numbers
