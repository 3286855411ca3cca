"""Functionals on colours and levels, of images and videos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.functional.images import as_float, check_channels, max_value
from tritensor.vision.transforms.v2.functional.conversion import to_dtype_image
from tritensor.vision.transforms.v2.functional.registry import functional

_VALUE_BITS = {"uint8": 8, "int8": 7, "int16": 15, "uint16": 16, "int32": 31, "int64": 63}  # without the sign


@functional(pil=first.rgb_to_grayscale, image=first.rgb_to_grayscale, video=None)  # torchvision lets videos pass
def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """In grey, in one channel or three equal ones. Raises ValueError for another number."""


to_grayscale = rgb_to_grayscale


def grayscale_to_rgb_image(image: Tensor) -> Tensor:
    """Three channels of a grey image; one of three or more as it is."""
    return image if image.shape[-3] >= 3 else first.rgb_to_grayscale(image, 3)


@functional(pil=lambda image: image.convert(mode="RGB"), image=grayscale_to_rgb_image, video=None)
def grayscale_to_rgb(inpt: Any) -> Any:
    """Three channels of a grey image."""


@functional(pil=first.adjust_brightness, image=first.adjust_brightness)
def adjust_brightness(inpt: Any, brightness_factor: float) -> Any:
    """As bright as brightness_factor says: 0 is black, 1 the image itself. Raises ValueError below 0."""


@functional(pil=first.adjust_saturation, image=first.adjust_saturation)
def adjust_saturation(inpt: Any, saturation_factor: float) -> Any:
    """The distance from grey times saturation_factor. Raises ValueError below 0."""


@functional(pil=first.adjust_contrast, image=first.adjust_contrast)
def adjust_contrast(inpt: Any, contrast_factor: float) -> Any:
    """The distance from the mean grey times contrast_factor. Raises ValueError below 0."""


@functional(pil=first.adjust_sharpness, image=first.adjust_sharpness)
def adjust_sharpness(inpt: Any, sharpness_factor: float) -> Any:
    """The distance from a smoothed image times sharpness_factor. Raises ValueError below 0."""


@functional(pil=first.adjust_hue, image=first.adjust_hue)
def adjust_hue(inpt: Any, hue_factor: float) -> Any:
    """Colours turned around the colour wheel by hue_factor, -0.5 to 0.5. Raises ValueError beyond."""


def adjust_gamma_image(image: Tensor, gamma: float, gain: float = 1) -> Tensor:
    """The first version's adjust_gamma, of any number of channels."""
    return first.adjust_gamma(image.reshape(-1, 1, *image.shape[-2:]), gamma, gain).reshape(image.shape)


@functional(pil=first.adjust_gamma, image=adjust_gamma_image)
def adjust_gamma(inpt: Any, gamma: float, gain: float = 1) -> Any:
    """gain img^gamma, on a scale of 0 to 1. Raises ValueError for a gamma below 0."""


def posterize_image(image: Tensor, bits: int) -> Tensor:
    """The `bits` highest bits of each value; floats in 2^bits levels."""
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"posterize: bits must be a positive integer in the range [0, 8], got {bits} instead")
    if image.is_floating_point():
        levels = 1 << bits
        return (image * levels).floor().clamp(0, levels - 1) * (1.0 / levels)
    known = _VALUE_BITS[image.dtype.name]
    return image if bits >= known else image & (((1 << bits) - 1) << (known - bits))


@functional(pil=first.posterize, image=posterize_image)
def posterize(inpt: Any, bits: int) -> Any:
    """The `bits` highest bits of each value, 0 to 8. Raises TypeError for others."""


def invert_image(image: Tensor) -> Tensor:
    """Full brightness minus each value."""
    return max_value(image.dtype) - image


@functional(pil=first.invert, image=invert_image)
def invert(inpt: Any) -> Any:
    """Full brightness minus each value."""


def solarize_image(image: Tensor, threshold: float) -> Tensor:
    """Values from `threshold` on inverted. Raises TypeError for one above full brightness."""
    if threshold > max_value(image.dtype):
        raise TypeError(f"solarize: Threshold should be less or equal the maximum value of the dtype, but got {threshold}")
    return where(image >= threshold, invert_image(image), image)


@functional(pil=first.solarize, image=solarize_image)
def solarize(inpt: Any, threshold: float) -> Any:
    """Values from `threshold` on inverted. Raises TypeError for one above full brightness."""


def autocontrast_image(image: Tensor) -> Tensor:
    """Each channel from 0 to full brightness."""
    check_channels(image, "autocontrast", 3)
    if image.numel() == 0:
        return image
    bound, values = max_value(image.dtype), as_float(image)
    low, high = values.amin(dim=(-2, -1), keepdim=True), values.amax(dim=(-2, -1), keepdim=True)
    flat = low == high  # a channel of one level has no contrast to stretch
    step = where(flat, 1.0, (high - low) * (1.0 / bound))
    return ((values - where(flat, 0.0, low)) / step).clamp(0, bound).to(image.dtype)


@functional(pil=first.autocontrast, image=autocontrast_image)
def autocontrast(inpt: Any) -> Any:
    """Each channel from 0 to full brightness."""


def equalize_image(image: Tensor) -> Tensor:
    """The first version's equalize, of any number of channels, also of floats and wider integers, by way of bytes."""
    if image.numel() == 0:
        return image
    levels = to_dtype_image(image, dtypes.uint8, scale=True)
    made = first.equalize(levels.reshape(-1, 1, *levels.shape[-2:])).reshape(levels.shape)
    return to_dtype_image(made, image.dtype, scale=True)


@functional(pil=first.equalize, image=equalize_image)
def equalize(inpt: Any) -> Any:
    """Each channel with as many pixels of one level as of another, nearly."""


def permute_channels_image(image: Tensor, permutation: Sequence[int]) -> Tensor:
    """Channels in another order: channel i is that which was permutation[i]."""
    if len(permutation) != image.shape[-3]:
        raise ArgumentError(
            f"permute_channels: Length of permutation does not match number of channels: {len(permutation)} != {image.shape[-3]}"
        )
    order = [int(i) for i in permutation]
    return image.index_select(-3, Tensor.new_tensor(image, order, dtype=dtypes.int64))


def _permute_pil(image: Any, permutation: Sequence[int]) -> Any:
    return first.to_pil_image(permute_channels_image(first.pil_to_tensor(image), permutation))


@functional(pil=_permute_pil, image=permute_channels_image)
def permute_channels(inpt: Any, permutation: Any) -> Any:
    """Channels in another order: channel i is that which was permutation[i]. Raises ValueError for another number of them."""
