"""Functions on colours: brightness, contrast, saturation, hue, gamma, grey. PIL images go to Pillow; tensors are (..., 1 or 3, height, width)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.tensor.functions.shaping.joining import stack
from tritensor.vision.pillow import image_from_array, is_pil_image, pillow
from tritensor.vision.transforms.functional.conversion import convert_image_dtype
from tritensor.vision.transforms.functional.images import as_float, check_channels, get_dimensions, is_pil, max_value


def _require_positive(name: str, what: str, factor: float) -> None:
    if factor < 0:  # Pillow takes negative factors, tensors would clip to black
        raise ArgumentError(f"{name}: {what} {factor} is below 0")


def blend(img: Tensor, other: Tensor | float, ratio: float) -> Tensor:
    """ratio img + (1 - ratio) other, within the image's values, in its type."""
    return (float(ratio) * img + (1.0 - float(ratio)) * other).clamp(0, max_value(img.dtype)).to(img.dtype)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """An image as bright as `brightness_factor` says: 0 is black, 1 the image itself. Raises ValueError below 0."""
    if is_pil(img, "adjust_brightness"):
        return pillow("ImageEnhance").Brightness(img).enhance(brightness_factor)
    _require_positive("adjust_brightness", "brightness_factor", brightness_factor)
    check_channels(img, "adjust_brightness")
    return blend(img, 0.0, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """An image with its distance from the mean grey times `contrast_factor`: 0 is grey, 1 the image itself. Raises ValueError below 0."""
    if is_pil(img, "adjust_contrast"):
        return pillow("ImageEnhance").Contrast(img).enhance(contrast_factor)
    _require_positive("adjust_contrast", "contrast_factor", contrast_factor)
    check_channels(img, "adjust_contrast")
    grey = rgb_to_grayscale(img) if get_dimensions(img)[0] == 3 else img
    dims = (-3, -2, -1) if img.ndim > 2 else (-2, -1)  # one mean for each image of a batch
    return blend(img, as_float(grey).mean(dim=dims, keepdim=True), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """An image with its distance from grey times `saturation_factor`: 0 is grey, 1 the image itself. Raises ValueError below 0."""
    if is_pil(img, "adjust_saturation"):
        return pillow("ImageEnhance").Color(img).enhance(saturation_factor)
    _require_positive("adjust_saturation", "saturation_factor", saturation_factor)
    check_channels(img, "adjust_saturation")
    return img if get_dimensions(img)[0] == 1 else blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """An image whose colours are turned around the colour wheel, 0.5 and -0.5 to their complements, 0 the image itself.

    Raises ValueError beyond 0.5 in either direction.
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ArgumentError(f"adjust_hue: hue_factor {hue_factor} is not in [-0.5, 0.5]")
    if is_pil(img, "adjust_hue"):
        if img.mode in ("L", "1", "I", "F"):  # grey has no hue
            return img
        h, s, v = img.convert("HSV").split()
        turned = np.array(h, np.uint8) + np.int32(hue_factor * 255).astype(np.uint8)  # wraps around, as the wheel does
        return pillow().merge("HSV", (image_from_array(turned, "L"), s, v)).convert(img.mode)
    check_channels(img, "adjust_hue")
    if get_dimensions(img)[0] == 1:  # grey has no hue
        return img
    h, s, v = _rgb_to_hsv(convert_image_dtype(img, dtypes.float32))
    return convert_image_dtype(_hsv_to_rgb((h + hue_factor) % 1.0, s, v), img.dtype)


def _rgb_to_hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value, each (..., h, w) in [0, 1], of red, green and blue; grey has hue 0 (Smith 1978)."""
    r, g, b = img.unbind(-3)
    v, low = img.amax(-3), img.amin(-3)
    grey, span = v == low, v - low
    one = v * 0 + 1
    s = span / where(grey, one, v)
    divisor = where(grey, one, span)  # grey pixels have hue 0, whatever they are divided by
    dr, dg, db = (v - r) / divisor, (v - g) / divisor, (v - b) / divisor
    sixths = where(v == r, db - dg, where(v == g, 2.0 + dr - db, 4.0 + dg - dr))
    return (sixths * (1.0 / 6.0) + 1.0).fmod(1.0), s, v


def _hsv_to_rgb(h: Tensor, s: Tensor, v: Tensor) -> Tensor:
    """Red, green and blue of hue, saturation and value: of the six sectors of the wheel, the one that the hue is in."""
    sector = (h * 6.0).floor()
    f = h * 6.0 - sector
    p, q, t = ((v * (1.0 - part)).clamp(0.0, 1.0) for part in (s, s * f, s * (1.0 - f)))
    at = (sector.to(dtypes.int64) % 6).unsqueeze(-3)
    channels = [(v, q, p, p, t, v), (t, v, v, q, p, p), (p, p, t, v, v, q)]
    # all six, then one of them by gather: a mask for each sector would cost six passes
    return stack([stack(c, -3).gather(-3, at).squeeze(-3) for c in channels], -3)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """gain img^gamma, on a scale of 0 to 1: gamma above 1 darkens shadows, below 1 lightens them. Raises ValueError for a gamma below 0."""
    of_pillow = is_pil(img, "adjust_gamma")
    _require_positive("adjust_gamma", "gamma", gamma)
    if of_pillow:
        # torchvision's table: just below 256, so that cutting off makes all 256 levels equally wide
        table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)] * 3
        return img.convert("RGB").point(table).convert(img.mode)
    check_channels(img, "adjust_gamma")
    values = img if img.is_floating_point() else convert_image_dtype(img, dtypes.float32)
    return convert_image_dtype((gain * values**gamma).clamp(0, 1), img.dtype)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """An image in grey, 0.2989 red + 0.587 green + 0.114 blue, in one channel or three equal ones. Raises ValueError for another number."""
    of_pillow = is_pil(img, "rgb_to_grayscale")
    if num_output_channels not in (1, 3):
        raise ArgumentError(f"rgb_to_grayscale: num_output_channels {num_output_channels}; give 1 or 3")
    if of_pillow:
        grey = img.convert("L")
        return grey if num_output_channels == 1 else pillow().merge("RGB", (grey, grey, grey))
    check_channels(img, "rgb_to_grayscale", 3)
    if img.shape[-3] == 3:  # a grey image is grey already, and is copied so that no result shares its memory
        r, g, b = img.unbind(-3)
        out = (0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype).unsqueeze(-3)
    else:
        out = img.clone()
    return out.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else out


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """rgb_to_grayscale of a PIL image. Raises TypeError for anything else."""
    if not is_pil_image(img):
        raise TypeError(f"to_grayscale: img is a {type(img).__name__}; of a tensor, rgb_to_grayscale")
    return rgb_to_grayscale(img, num_output_channels)
