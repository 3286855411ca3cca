"""Kernels of images, videos and masks that move pixels: those of the first version, and what the second does otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tritensor.nn.functional as F
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.functional.geometry import as_sides, resized_shape
from tritensor.vision.transforms.functional.images import as_batch, restore_shape
from tritensor.vision.transforms.functional.warping import perspective_coefficients, warp_perspective
from tritensor.vision.transforms.interpolation import InterpolationMode, as_mode

BILINEAR, NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST
_NEAREST = (NEAREST, InterpolationMode.NEAREST_EXACT)


def as_any_mode(name: str, given: Any) -> InterpolationMode:
    """An InterpolationMode, its word, or Pillow's number of it. Raises ValueError for anything else."""
    if isinstance(given, str):
        words = [mode.value for mode in InterpolationMode]
        if given not in words:
            raise ArgumentError(f"{name}: Invalid interpolation mode: '{given}'. Supported string values are: {', '.join(words)}")
        return InterpolationMode(given)
    if not isinstance(given, int | InterpolationMode):
        raise ArgumentError(
            f"{name}: Argument interpolation should be an `InterpolationMode`, its word or Pillow's number of it, but got {given}"
        )
    return as_mode(name, given)


def on_masks(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a kernel of images makes of a mask, the first argument: (height, width) is one channel."""
    mask, *rest = args
    return kernel(mask[None], *rest, **kwargs)[0] if mask.ndim < 3 else kernel(mask, *rest, **kwargs)


def horizontal_flip_mask(mask: Tensor) -> Tensor:
    """Left and right exchanged."""
    return mask.flip(-1)


def vertical_flip_mask(mask: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    return mask.flip(-2)


def resize_image(
    image: Tensor, size: Any, interpolation: Any = BILINEAR, max_size: int | None = None, antialias: bool | None = True
) -> Tensor:  # fmt: skip
    """The first version's resize, but that bytes are computed as bytes, and that size=None fits the longer edge to max_size."""
    mode = as_any_mode("resize", interpolation)
    height, width = (int(n) for n in image.shape[-2:])
    new = resized_shape(height, width, size, max_size)
    if new == (height, width):
        return image
    if image.numel() == 0:
        return image.reshape(*image.shape[:-2], *new)
    smooth = mode not in _NEAREST
    if mode is InterpolationMode.LANCZOS and not antialias:
        raise ArgumentError("resize: InterpolationMode.LANCZOS requires antialias=True")
    values = as_batch(image)
    if values.dtype.name not in ("float32", "float64") and not (
        values.dtype.name == "uint8" and (image.device.type == "cpu" or not smooth)
    ):
        values = values.to(dtypes.float32)
    out = F.interpolate(
        values, size=new, mode=mode.value, align_corners=False if smooth else None, antialias=bool(antialias) and smooth
    )  # fmt: skip
    if image.dtype.name == "uint8" and out.is_floating_point():
        out = out.clamp(0, 255)  # cubics overshoot
    return restore_shape(out, image)


def resize_mask(mask: Tensor, size: Any, interpolation: Any = NEAREST, max_size: int | None = None) -> Tensor:
    """A mask of another size, each pixel one of those before: other methods than the nearest ones are taken for the nearest."""
    mode = as_any_mode("resize", interpolation)
    return on_masks(resize_image, mask, size, mode if mode in _NEAREST else NEAREST, max_size)


def resize_pil(image: Any, size: Any, interpolation: Any = BILINEAR, max_size: int | None = None, antialias: bool | None = True) -> Any:
    """The first version's resize of an image of Pillow's."""
    new = resized_shape(image.height, image.width, size, max_size)
    return first.resize(image, new, as_any_mode("resize", interpolation), antialias=antialias)


def affine_image(
    image: Any, angle: float, translate: Any, scale: float, shear: Any, interpolation: Any = NEAREST, fill: Any = None, center: Any = None
) -> Any:
    """The first version's affine."""
    return first.affine(image, angle, translate, scale, shear, as_any_mode("affine", interpolation), fill, center)


def affine_mask(mask: Tensor, angle: float, translate: Any, scale: float, shear: Any, fill: Any = None, center: Any = None) -> Tensor:
    """The first version's affine, of the nearest pixels."""
    return on_masks(first.affine, mask, angle, translate, scale, shear, NEAREST, fill, center)


def rotate_image(
    image: Any, angle: float, interpolation: Any = NEAREST, expand: bool = False, center: Sequence[float] | None = None, fill: Any = None
) -> Any:  # fmt: skip
    """The first version's rotate; quarter turns of a tensor about its middle move whole pixels where the canvas lets them."""
    mode = as_any_mode("rotate", interpolation)
    if isinstance(image, Tensor) and center is None and angle % 90 == 0:
        quarters = int(angle // 90) % 4
        if quarters % 2 == 0 or expand or image.shape[-1] == image.shape[-2]:
            return image.rot90(quarters, (-2, -1)) if quarters else image.clone()
    return first.rotate(image, angle % 360 if isinstance(image, Tensor) else angle, mode, expand, center, fill)


def rotate_mask(mask: Tensor, angle: float, expand: bool = False, center: Sequence[float] | None = None, fill: Any = None) -> Tensor:
    """rotate_image, of the nearest pixels."""
    return on_masks(rotate_image, mask, angle, NEAREST, expand, center, fill)


def as_coefficients(startpoints: Any, endpoints: Any, coefficients: Any) -> list[float]:
    """The eight coefficients of a perspective, given themselves or by four points and where they go. Raises ValueError for both or none."""
    if coefficients is None:
        if startpoints is None or endpoints is None:
            raise ArgumentError("perspective: Either the startpoints/endpoints or the coefficients must have non `None` values")
        return perspective_coefficients(startpoints, endpoints)
    if startpoints is not None and endpoints is not None:
        raise ArgumentError("perspective: The startpoints/endpoints and the coefficients shouldn't be defined concurrently")
    if len(coefficients) != 8:
        raise ArgumentError(f"perspective: Argument coefficients should have 8 float values, and has {len(coefficients)}")
    return list(coefficients)


def perspective_image(
    image: Any, startpoints: Any, endpoints: Any, interpolation: Any = BILINEAR, fill: Any = None, coefficients: Any = None
) -> Any:
    """The first version's perspective, also by its eight coefficients."""
    found = as_coefficients(startpoints, endpoints, coefficients)
    return warp_perspective(image, found, as_any_mode("perspective", interpolation), fill)


def perspective_mask(mask: Tensor, startpoints: Any, endpoints: Any, fill: Any = None, coefficients: Any = None) -> Tensor:
    """perspective_image, of the nearest pixels."""
    return on_masks(perspective_image, mask, startpoints, endpoints, NEAREST, fill, coefficients)


def elastic_image(image: Any, displacement: Tensor, interpolation: Any = BILINEAR, fill: Any = None) -> Any:
    """The first version's elastic_transform."""
    if not isinstance(displacement, Tensor):
        raise TypeError(f"elastic: Argument displacement should be a Tensor, got {type(displacement).__name__}")
    if isinstance(image, Tensor):
        displacement = displacement.to(image.dtype if image.is_floating_point() and image.dtype.name != "float16" else dtypes.float32)
    return first.elastic_transform(image, displacement, as_any_mode("elastic", interpolation), fill)


def elastic_mask(mask: Tensor, displacement: Tensor, fill: Any = None) -> Tensor:
    """elastic_image, of the nearest pixels."""
    return on_masks(elastic_image, mask, displacement, NEAREST, fill)


def pad_image(image: Tensor, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Tensor:
    """The first version's pad, also with a value for each channel. Raises ValueError for those beside another mode than "constant"."""
    if not isinstance(fill, tuple | list) or len(fill) == 1:
        return first.pad(image, padding, fill[0] if isinstance(fill, tuple | list) else fill, padding_mode)
    if padding_mode != "constant":
        raise ArgumentError(f"pad: Padding mode '{padding_mode}' is not supported if fill is not scalar")
    left, top, right, bottom = (max(side, 0) for side in as_sides(padding))
    out = first.pad(image, padding)
    height, width = out.shape[-2:]
    colour = out.new_tensor([float(f) for f in fill], dtype=dtypes.float32).to(out.dtype).reshape(-1, 1, 1)
    for rows, columns in (
        (slice(0, top), slice(None)), (slice(height - bottom, height), slice(None)), (slice(None), slice(0, left)), (slice(None), slice(width - right, width)),
    ):  # fmt: skip
        out[..., rows, columns] = colour
    return out


def pad_mask(mask: Tensor, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Tensor:
    """The first version's pad. Raises ValueError for a fill of several numbers."""
    if isinstance(fill, tuple | list):
        raise ArgumentError(f"pad: Non-scalar fill value {fill} is not supported for masks")
    return on_masks(first.pad, mask, padding, fill, padding_mode)


def crop_mask(mask: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The first version's crop."""
    return on_masks(first.crop, mask, top, left, height, width)


def center_crop_mask(mask: Tensor, output_size: Any) -> Tensor:
    """The first version's center_crop."""
    return on_masks(first.center_crop, mask, output_size)


def resized_crop_image(
    image: Tensor, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = BILINEAR, antialias: bool | None = True
) -> Tensor:  # fmt: skip
    """crop, then resize_image."""
    return resize_image(first.crop(image, top, left, height, width), size, interpolation, antialias=antialias)


def resized_crop_mask(mask: Tensor, top: int, left: int, height: int, width: int, size: Any) -> Tensor:
    """crop, then resize_mask."""
    return resize_mask(crop_mask(mask, top, left, height, width), size)


def resized_crop_pil(
    image: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = BILINEAR, antialias: bool | None = True
) -> Any:
    """crop, then resize_pil."""
    return resize_pil(first.crop(image, top, left, height, width), size, interpolation, antialias=antialias)
