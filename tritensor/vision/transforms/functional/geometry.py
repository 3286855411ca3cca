"""Functions on sizes and positions: resize, pad, crop, flip, erase. PIL images go to Pillow; tensors are (..., channels, height, width)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import tritensor.nn.functional as F
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import as_tensor
from tritensor.vision.pillow import image_from_array, pillow
from tritensor.vision.transforms.functional.images import as_batch, as_pair, get_dimensions, is_pil, restore_shape
from tritensor.vision.transforms.interpolation import PILLOW, InterpolationMode, as_mode

_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    return img.transpose(0) if is_pil(img, "hflip") else img.flip(-1)  # Pillow's FLIP_LEFT_RIGHT


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    return img.transpose(1) if is_pil(img, "vflip") else img.flip(-2)  # Pillow's FLIP_TOP_BOTTOM


def resized_shape(height: int, width: int, size: Any, max_size: int | None) -> tuple[int, int]:
    """(height, width) of the result of resize: `size` is that, or the length of the shorter edge; None fits the longer one to max_size."""
    if size is None:
        if max_size is None:
            raise ArgumentError("resize: size and max_size are None; give one of them")
        new = int(max_size * min(height, width) / max(height, width))
        return (max_size, new) if width <= height else (new, max_size)
    size = [size] if isinstance(size, int) else list(size)
    if len(size) not in (1, 2):
        raise ArgumentError(f"resize: size {tuple(size)}; give (height, width), or the length of the shorter edge")
    if len(size) == 2:  # both given: nothing is in proportion
        if max_size is not None:
            raise ArgumentError(f"resize: max_size {max_size} goes with the length of the shorter edge, and size is {tuple(size)}")
        return int(size[0]), int(size[1])
    short, long = min(height, width), max(height, width)
    new_short, new_long = int(size[0]), int(size[0] * long / short)
    if max_size is not None:
        if max_size <= new_short:
            raise ArgumentError(f"resize: max_size {max_size} is not above the shorter edge, {new_short}")
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)


def resize(
    img: Any, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: int | None = None, antialias: bool | None = True
) -> Any:
    """An image of another size: (height, width), or one number, the length of the shorter edge, the other in proportion, at most `max_size`.

    Of tensors, bilinear and bicubic are antialiased unless told otherwise, as Pillow's always are, computed in float32 (float64 for such) and
    rounded for integers. Raises ValueError for sizes that are none, and for a method that only Pillow has.
    """
    mode = as_mode("resize", interpolation)
    of_pillow = is_pil(img, "resize")
    _, height, width = get_dimensions(img)
    new = resized_shape(height, width, size, max_size)
    if new == (height, width):  # as torchvision: the image itself, not a copy
        return img
    if of_pillow:
        if antialias is False:
            warnings.warn("resize: Pillow always antialiases; antialias=False is not heeded for a PIL image", stacklevel=2)
        return img.resize(new[::-1], PILLOW[mode])
    if mode.value not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ArgumentError(f"resize: {mode.value} is Pillow's alone; for a tensor give nearest, nearest-exact, bilinear or bicubic")
    smooth = mode.value in ("bilinear", "bicubic")
    values = as_batch(img)
    # weights of integers and halves would be rounded
    values = values if values.dtype.name in ("float32", "float64") else values.to(dtypes.float32)
    out = F.interpolate(
        values, size=new, mode=mode.value, align_corners=False if smooth else None, antialias=bool(antialias) and smooth
    )  # fmt: skip
    if mode is InterpolationMode.BICUBIC and img.dtype.name == "uint8":  # a cubic overshoots at edges, and 256 would wrap to 0
        out = out.clamp(0, 255)
    return restore_shape(out, img)


def as_sides(padding: Any) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of a number, (left and right, top and bottom), or all four."""
    if isinstance(padding, int | float):
        return (int(padding),) * 4
    if not isinstance(padding, tuple | list):
        raise TypeError(f"pad: padding is a {type(padding).__name__}; give a number, or a sequence of 1, 2 or 4")
    if len(padding) not in (1, 2, 4):
        raise ArgumentError(f"pad: padding {tuple(padding)} has {len(padding)} numbers; give 1, 2 (left and right, top and bottom) or 4")
    four = tuple(int(p) for p in padding) * (4 // len(padding))
    return four[0], four[1], four[2], four[3]


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """An image with a border: `padding` is one number, (left and right, top and bottom) or (left, top, right, bottom); negative ones crop.

    "constant" puts `fill` there (of a PIL image a number for each channel, too), "edge" the last row, "reflect" mirrors without repeating the
    edge, "symmetric" with it. Raises TypeError for a padding or a fill that is none, ValueError for other modes.
    """
    of_pillow = is_pil(img, "pad")
    left, top, right, bottom = as_sides(padding)
    if padding_mode not in _PADDING_MODES:
        raise ArgumentError(f"pad: padding_mode {padding_mode!r}; give one of {', '.join(map(repr, _PADDING_MODES))}")
    if of_pillow:
        return _pad_pil(img, (left, top, right, bottom), fill, padding_mode)
    if padding_mode == "constant":
        fill = 0 if fill is None else fill
        if not isinstance(fill, int | float):
            raise TypeError(f"pad: fill {fill!r} for a tensor; give one number")
        return F.pad(img, (left, right, top, bottom), value=float(fill) if img.is_floating_point() else int(fill))
    height, width = img.shape[-2:]
    rows, columns = _source_indices(height, top, bottom, padding_mode), _source_indices(width, left, right, padding_mode)
    return img.index_select(-2, as_tensor(rows, device=img.device)).index_select(-1, as_tensor(columns, device=img.device))


def _source_indices(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """The row, of n, that stands at each position of the padded image."""
    at = np.arange(-before, n + after)
    if mode == "edge":
        return at.clip(0, n - 1)
    if mode == "symmetric":
        at = at % (2 * n)  # a mirrored image repeats after two lengths
        return np.where(at < n, at, 2 * n - 1 - at)
    if max(before, after) >= n:  # a reflection without the edge has n - 1 rows
        raise ArgumentError(
            f"pad: {max(before, after)} rows are to be reflected, and {n - 1} stand behind the edge; give less padding, or 'symmetric'"
        )
    at = np.abs(at)
    return np.where(at < n, at, 2 * n - 2 - at)


def _pad_pil(img: Any, sides: tuple[int, int, int, int], fill: Any, mode: str) -> Any:
    if mode == "constant":
        out = pillow("ImageOps").expand(img, border=sides, fill=as_pil_fill(fill, img, "pad"))
    else:
        # np.pad takes no negative borders, which crop
        left, top, right, bottom = (max(s, 0) for s in sides)
        if min(sides) < 0:
            crop_left, crop_top, crop_right, crop_bottom = (-min(s, 0) for s in sides)
            img = img.crop((crop_left, crop_top, img.width - crop_right, img.height - crop_bottom))
        values = np.asarray(img)
        border = ((top, bottom), (left, right)) + ((0, 0),) * (values.ndim - 2)
        out = image_from_array(np.pad(values, border, mode), img.mode if img.mode not in ("P", "1") else None)  # type: ignore[call-overload]
    if img.mode == "P":  # the values are indices of a palette, which expand() and np.pad() lose
        out.putpalette(img.getpalette())
    return out


def as_pil_fill(fill: Any, img: Any, name: str) -> Any:
    """A fill colour as Pillow takes it: a number, or one for each channel."""
    channels = len(img.getbands())
    fill = 0 if fill is None else fill
    if isinstance(fill, int | float):
        fill = [fill] * channels
    if not isinstance(fill, tuple | list):
        raise TypeError(f"{name}: fill is a {type(fill).__name__}; give a number, or one for each channel")
    if len(fill) not in (1, channels):
        raise ArgumentError(f"{name}: fill {tuple(fill)} has {len(fill)} numbers and the image {channels} channels")
    values = tuple(f if img.mode == "F" else int(f) for f in (list(fill) * channels if len(fill) == 1 else fill))
    return values[0] if channels == 1 else values


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part of an image that begins at (top, left); what lies outside of it is 0."""
    if is_pil(img, "crop"):
        return img.crop((left, top, left + width, top + height))
    h, w = img.shape[-2:]
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if top >= 0 and left >= 0 and bottom <= h and right <= w:  # the usual case: a view, nothing is copied
        return part
    missing = [max(min(right, 0) - left, 0), max(min(bottom, 0) - top, 0), max(right - max(w, left), 0), max(bottom - max(h, top), 0)]
    return pad(part, missing)


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of an image, (height, width) or one number for both; a smaller image gets a border of 0."""
    height, width = as_pair("center_crop", output_size)
    _, h, w = get_dimensions(img)
    if height > h or width > w:
        more_h, more_w = max(height - h, 0), max(width - w, 0)
        img = pad(img, [more_w // 2, more_h // 2, (more_w + 1) // 2, (more_h + 1) // 2])
        _, h, w = get_dimensions(img)
        if (h, w) == (height, width):
            return img
    return crop(img, *center_offset((h, w), (height, width)), height, width)


def center_offset(outer: tuple[int, int], inner: tuple[int, int]) -> tuple[int, int]:
    """(top, left) of the middle of an image."""
    return round((outer[0] - inner[0]) / 2.0), round((outer[1] - inner[1]) / 2.0)


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = InterpolationMode.BILINEAR, antialias: bool | None = True
) -> Any:  # fmt: skip
    """crop, then resize."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def five_crop(img: Any, size: Any) -> tuple[Any, ...]:
    """The four corners, top left, top right, bottom left, bottom right, and the middle. Raises ValueError for a size above the image's."""
    height, width = as_pair("five_crop", size)
    _, h, w = get_dimensions(img)
    if height > h or width > w:
        raise ArgumentError(f"five_crop: size {(height, width)} is larger than the image, {(h, w)}")
    corners = [(0, 0), (0, w - width), (h - height, 0), (h - height, w - width)]
    return (*[crop(img, top, left, height, width) for top, left in corners], center_crop(img, (height, width)))


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """five_crop of an image, and of the image flipped: left and right, or top and bottom where `vertical_flip`."""
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """A tensor whose rows i to i + h and columns j to j + w hold `v`; `inplace` writes into it. Raises TypeError for no tensor."""
    if not isinstance(img, Tensor):
        raise TypeError(f"erase: img is a {type(img).__name__}; give a tensor")
    out = img if inplace else img.clone()  # the images of a data set are shared
    out[..., i : i + h, j : j + w] = v
    return out
