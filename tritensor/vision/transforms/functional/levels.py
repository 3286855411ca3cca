"""Functions on an image's levels, and on a pixel's neighbours: invert, posterize, solarize, equalize, sharpen, blur."""

from __future__ import annotations

from typing import Any

import tritensor.nn.functional as F
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import as_tensor, zeros
from tritensor.tensor.functions.creation.sequences import linspace
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.vision.pillow import is_pil_image, pillow
from tritensor.vision.transforms.functional.color import blend
from tritensor.vision.transforms.functional.conversion import pil_to_tensor, to_pil_image
from tritensor.vision.transforms.functional.images import as_batch, as_float, check_channels, is_pil, max_value, restore_shape


def invert(img: Any) -> Any:
    """Full brightness minus each value."""
    if is_pil(img, "invert"):
        return pillow("ImageOps").invert(img)
    check_channels(img, "invert", 3)
    return max_value(img.dtype) - img


def _require_uint8(img: Tensor, name: str) -> None:
    if img.dtype.name != "uint8":
        raise DTypeError(f"{name}: img is {img.dtype.name}; it works on the bits of uint8: convert_image_dtype(img, uint8)")


def posterize(img: Any, bits: int) -> Any:
    """An image of which each value keeps its `bits` highest bits. Raises ValueError for bits beyond 0 to 8, DTypeError for other types than uint8."""
    of_pillow = is_pil(img, "posterize")
    if not 0 <= bits <= 8:
        raise ArgumentError(f"posterize: bits {bits}; give 0 to 8")
    if of_pillow:  # Pillow knows no 0 bits
        return pillow("ImageOps").posterize(img, bits) if bits else img.point([0] * (256 * len(img.getbands())))
    _require_uint8(img, "posterize")
    check_channels(img, "posterize", 3)
    return img & (256 - 2 ** (8 - bits))


def solarize(img: Any, threshold: float) -> Any:
    """An image with its values from `threshold` on inverted. Raises TypeError for a threshold above full brightness."""
    if is_pil(img, "solarize"):
        return pillow("ImageOps").solarize(img, threshold)
    check_channels(img, "solarize", 3)
    if threshold > max_value(img.dtype):  # as torchvision: most likely a threshold for bytes
        raise TypeError(f"solarize: threshold {threshold} is above {max_value(img.dtype)}, the most of {img.dtype.name}")
    return where(img >= threshold, invert(img), img)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """An image with its distance from a smoothed one times `sharpness_factor`: 0 is smooth, 1 the image itself, 2 sharper. Raises ValueError below 0."""
    if is_pil(img, "adjust_sharpness"):
        return pillow("ImageEnhance").Sharpness(img).enhance(sharpness_factor)
    if sharpness_factor < 0:
        raise ArgumentError(f"adjust_sharpness: sharpness_factor {sharpness_factor} is below 0")
    check_channels(img, "adjust_sharpness")
    if min(img.shape[-2:]) <= 2:  # nothing but a border
        return img
    weights = [[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]]  # Pillow's SMOOTH; the border stays as it is
    smooth = img.clone()
    smooth[..., 1:-1, 1:-1] = _filter_channels(img, as_tensor(weights, dtype=as_float(img).dtype, device=img.device) / 13.0, (0, 0))
    return blend(img, smooth, sharpness_factor)


def _filter_channels(img: Tensor, kernel: Tensor, border: tuple[int, int]) -> Tensor:
    """Each channel under a kernel (height, width), behind a reflected border of (rows, columns)."""
    values = as_batch(as_float(img))
    if border != (0, 0):  # sharpening leaves the border as it is
        values = F.pad(values, (border[1], border[1], border[0], border[0]), mode="reflect")
    channels = values.shape[1]
    return restore_shape(F.conv2d(values, kernel.expand(channels, 1, *kernel.shape), groups=channels), img)


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """An image under a Gaussian of `sigma` pixels, cut off at `kernel_size`: numbers, or (x, y); borders are reflected.

    sigma is 0.15 kernel_size + 0.35 where it is None. A PIL image is blurred as a tensor. Raises ValueError for sizes that are not odd and
    positive, for sigmas that are not positive, and for borders wider than the image.
    """
    sizes = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
    if len(sizes) != 2 or any(k <= 0 or k % 2 == 0 for k in sizes):
        raise ArgumentError(f"gaussian_blur: kernel_size {kernel_size}; give an odd number, or two (x, y)")
    if sigma is None:  # OpenCV's rule for a kernel of that size, as torchvision
        sigma = [k * 0.15 + 0.35 for k in sizes]
    sigmas = (float(sigma),) * 2 if isinstance(sigma, int | float) else tuple(sigma)
    sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    if len(sigmas) != 2 or min(sigmas) <= 0:
        raise ArgumentError(f"gaussian_blur: sigma {sigma}; give a number above 0, or two (x, y)")
    values = pil_to_tensor(img) if is_pil(img, "gaussian_blur") else img  # Pillow's own blur is an approximation by boxes
    across, down = (_gaussian_weights(k, s, values) for k, s in zip(sizes, sigmas, strict=True))
    out = _filter_channels(values, down[:, None] @ across[None, :], (sizes[1] // 2, sizes[0] // 2))
    return to_pil_image(out, mode=img.mode) if is_pil_image(img) else out


def _gaussian_weights(size: int, sigma: float, like: Tensor) -> Tensor:
    half = (size - 1) * 0.5
    x = linspace(-half, half, size, dtype=as_float(like[..., :1, :1]).dtype, device=like.device)
    density = (-0.5 * (x / sigma) ** 2).exp()
    return density / density.sum()  # what is cut off is spread, so that brightness stays


def autocontrast(img: Any) -> Any:
    """An image of which each channel reaches from 0 to full brightness."""
    if is_pil(img, "autocontrast"):
        return pillow("ImageOps").autocontrast(img)
    check_channels(img, "autocontrast", 3)
    bound = max_value(img.dtype)
    low, high = (as_float(x(dim=(-2, -1), keepdim=True)) for x in (img.amin, img.amax))
    flat = low == high  # a channel of one level has no contrast to stretch
    scale = where(flat, 1.0, bound / where(flat, 1.0, high - low))
    return ((img - where(flat, 0.0, low)) * scale).clamp(0, bound).to(img.dtype)


def equalize(img: Any) -> Any:
    """An image of which each channel has as many pixels of one level as of another, nearly. Raises DTypeError for other types than uint8.

    The levels' cumulated counts, in steps of 1/255 of all pixels but the brightest, as Pillow's ImageOps.equalize has it.
    """
    if is_pil(img, "equalize"):
        return pillow("ImageOps").equalize(img)
    _require_uint8(img, "equalize")
    check_channels(img, "equalize", 3)
    planes = img.reshape(-1, img.shape[-2] * img.shape[-1]).to(dtypes.int64)  # (channels, pixels)
    counts = zeros(planes.shape[0], 256, dtype=dtypes.int64, device=img.device)
    counts = counts.scatter_add(1, planes, planes * 0 + 1)
    brightest = counts.gather(1, planes.amax(1, keepdim=True))  # Pillow leaves its last filled level out of the step
    step = (planes.shape[1] - brightest) // 255
    safe = where(step == 0, 1, step)  # step 0: an image of one level, which stays as it is
    below = counts.cumsum(1) - counts
    levels = ((below + safe // 2) // safe).clamp(0, 255)
    out = where(step == 0, planes, levels.gather(1, planes))
    return out.to(dtypes.uint8).reshape(img.shape)
