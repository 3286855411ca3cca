"""Functionals on an image's values: normalised, blurred, with noise, erased, compressed; frames left out."""

from __future__ import annotations

import io
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import randn
from tritensor.tensor.functions.creation.sequences import linspace
from tritensor.tensor.functions.shaping.joining import stack
from tritensor.vision.io import decode_image, encode_jpeg
from tritensor.vision.pillow import pillow
from tritensor.vision.transforms import functional as first
from tritensor.vision.transforms.functional.images import is_pil
from tritensor.vision.transforms.v2.functional.registry import functional


@functional(image=first.normalize)
def normalize(inpt: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """(values - mean) / std, channel by channel. Raises TypeError for integers, ValueError for a std of 0."""


@functional(pil=first.gaussian_blur, image=first.gaussian_blur)
def gaussian_blur(inpt: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Under a Gaussian of `sigma` pixels, cut off at kernel_size: numbers, or (x, y). Raises ValueError for sizes that are not odd."""


def gaussian_noise_image(image: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Tensor:
    """Values plus normal noise, on a scale of 0 to 1, cut off there with `clip`."""
    if sigma < 0:
        raise ArgumentError(f"gaussian_noise: sigma shouldn't be negative. Got {sigma}")
    if image.is_floating_point():
        out = image + (mean + randn(*image.shape, dtype=image.dtype, device=image.device) * sigma)
        return out.clamp(0, 1) if clip else out
    if image.dtype.name != "uint8":
        raise ArgumentError(f"gaussian_noise: Input tensor is expected to be in uint8 or float dtype, got dtype={image.dtype}")
    noise = (mean * 255 + randn(*image.shape, device=image.device) * (sigma * 255)).to(dtypes.int16)
    out = image + noise
    return (out.clamp(0, 255) if clip else out).to(dtypes.uint8)


def _refuse_noise(image: Any, *args: Any, **kwargs: Any) -> Any:
    raise ArgumentError("gaussian_noise: Gaussian Noise is not implemented for PIL images; take to_image(image)")


@functional(pil=_refuse_noise, image=gaussian_noise_image)
def gaussian_noise(inpt: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    """Values plus normal noise, on a scale of 0 to 1. Raises ValueError for a negative sigma, for other types than floats and uint8, and images of Pillow's."""


def erase_image(image: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """The first version's erase, of images of Pillow's as well."""
    if not is_pil(image, "erase"):
        return first.erase(image, i, j, h, w, v, inplace)
    return first.to_pil_image(first.erase(first.pil_to_tensor(image), i, j, h, w, v), mode=image.mode)


@functional(pil=erase_image, image=erase_image)
def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Rows i to i + h and columns j to j + w hold `v`; `inplace` writes into the tensor."""


def jpeg_image(image: Tensor, quality: int) -> Tensor:
    """What is left of images (..., 1 or 3, h, w) of uint8 after compression."""
    if image.numel() == 0:
        return image.clone()
    batch = image.reshape(-1, *image.shape[-3:])
    return stack([decode_image(encode_jpeg(each, quality)) for each in batch]).reshape(image.shape)


def _jpeg_pil(image: Any, quality: int) -> Any:
    held = io.BytesIO()
    image.save(held, format="JPEG", quality=quality)
    return pillow().open(held).copy()  # of Pillow's plain class


@functional(pil=_jpeg_pil, image=jpeg_image)
def jpeg(image: Any, quality: int) -> Any:
    """What is left of an image of uint8 after compression, of quality 1 to 100."""


def uniform_temporal_subsample_video(video: Tensor, num_samples: int) -> Tensor:
    """Frames of (..., time, channels, height, width), at even distances, the first and the last among them."""
    return video.index_select(-4, linspace(0, video.shape[-4] - 1, num_samples, device=video.device).long())


@functional(video=uniform_temporal_subsample_video)
def uniform_temporal_subsample(inpt: Any, num_samples: int) -> Any:
    """num_samples frames of a video, at even distances."""
