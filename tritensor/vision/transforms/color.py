"""Transforms of colours, levels and sharpness, drawn at random; grey images and blur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.vision.transforms import draws
from tritensor.vision.transforms import functional as F
from tritensor.vision.transforms.base import Change, RandomChange, Transform
from tritensor.vision.transforms.functional.images import as_pair


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed at random, in a random order.

    Args:
        brightness, contrast, saturation: factors, (least, most), or a number b for (max(0, 1 - b), 1 + b).
        hue: (least, most) within -0.5 to 0.5, or a number h for (-h, h).

    Raises ValueError for ranges beyond these.
    """

    _settings = ("brightness", "contrast", "saturation", "hue")

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        self.brightness, self.contrast = _as_factor_range("brightness", brightness), _as_factor_range("contrast", contrast)
        self.saturation, self.hue = _as_factor_range("saturation", saturation), _as_factor_range("hue", hue, 0, (-0.5, 0.5))

    @staticmethod
    def get_params(
        brightness: Any, contrast: Any, saturation: Any, hue: Any
    ) -> tuple[list[int], float | None, float | None, float | None, float | None]:
        """(the order of the four, then the factor of each, None where it has no range)."""
        order = draws.permutation(4)  # the four do not commute
        b, c, s, h = (None if r is None else draws.uniform(r[0], r[1]) for r in (brightness, contrast, saturation, hue))
        return order, b, c, s, h

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        adjust = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order:
            if (factor := factors[i]) is not None:  # a factor that was not asked for costs no pass over the image
                img = adjust[i](img, factor)
        return img


def _as_factor_range(
    what: str, given: Any, center: float = 1, bound: tuple[float, float] = (0, float("inf"))
) -> tuple[float, float] | None:
    """A range (least, most); None for one in which nothing changes."""
    if isinstance(given, int | float):
        if given < 0:
            raise ArgumentError(f"ColorJitter: {what} {given} is below 0")
        low, high = center - float(given), center + float(given)
        low = max(low, 0.0) if center == 1 else low  # a negative factor would invert the image
    elif isinstance(given, tuple | list) and len(given) == 2:
        low, high = float(given[0]), float(given[1])
    else:
        raise TypeError(f"ColorJitter: {what} {given!r}; give a number, or (least, most)")
    if not bound[0] <= low <= high <= bound[1]:
        raise ArgumentError(f"ColorJitter: {what} reaches from {low} to {high}; it must rise, within {bound[0]} to {bound[1]}")
    return None if low == high == center else (low, high)  # None draws nothing and changes nothing


class Grayscale(Change):
    """An image in grey, of one channel or of three equal ones: `functional.rgb_to_grayscale`."""

    _settings = ("num_output_channels",)
    _change = staticmethod(F.rgb_to_grayscale)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels


class RandomGrayscale(RandomChange):
    """An image in grey with probability p, in as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def _change(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=F.get_dimensions(img)[0])


class RandomInvert(RandomChange):
    """`functional.invert` with probability p."""

    _change = staticmethod(F.invert)


class RandomPosterize(RandomChange):
    """`functional.posterize` with probability p."""

    _settings = ("bits", "p")
    _change = staticmethod(F.posterize)

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits


class RandomSolarize(RandomChange):
    """`functional.solarize` with probability p."""

    _settings = ("threshold", "p")
    _change = staticmethod(F.solarize)

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold


class RandomAdjustSharpness(RandomChange):
    """`functional.adjust_sharpness` with probability p."""

    _settings = ("sharpness_factor", "p")
    _change = staticmethod(F.adjust_sharpness)

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor


class RandomAutocontrast(RandomChange):
    """`functional.autocontrast` with probability p."""

    _change = staticmethod(F.autocontrast)


class RandomEqualize(RandomChange):
    """`functional.equalize` with probability p."""

    _change = staticmethod(F.equalize)


class GaussianBlur(Transform):
    """An image under a Gaussian whose deviation is drawn from `sigma`, (least, most) or one number: `functional.gaussian_blur`."""

    _settings = ("kernel_size", "sigma")

    def __init__(self, kernel_size: Any, sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = as_pair("GaussianBlur", kernel_size)
        if any(k <= 0 or k % 2 == 0 for k in self.kernel_size):  # an even kernel has no middle pixel
            raise ArgumentError(f"GaussianBlur: kernel_size {self.kernel_size}; give odd numbers above 0")
        low, high = (sigma, sigma) if isinstance(sigma, int | float) else sigma if len(sigma) == 2 else (0.0, 0.0)
        if not 0.0 < low <= high:
            raise ArgumentError(f"GaussianBlur: sigma {sigma}; give a number above 0, or (least, most)")
        self.sigma = (low, high)

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """The deviation."""
        return draws.uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        sigma = self.get_params(self.sigma[0], self.sigma[1])
        return F.gaussian_blur(img, self.kernel_size, [sigma, sigma])
