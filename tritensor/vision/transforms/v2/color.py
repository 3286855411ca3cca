"""Transforms of colours and levels, drawn at random; grey images."""

from __future__ import annotations

from typing import Any

from tritensor.vision.transforms import color as first
from tritensor.vision.transforms import draws
from tritensor.vision.transforms.v2 import functional as F
from tritensor.vision.transforms.v2.base import RandomApplyTransform, Transform
from tritensor.vision.transforms.v2.samples import query_chw


class Grayscale(Transform):
    """An image in grey, of one channel or of three equal ones: `functional.rgb_to_grayscale`."""

    _functional = staticmethod(F.rgb_to_grayscale)
    _settings = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels


class RandomGrayscale(RandomApplyTransform):
    """An image in grey with probability p, in as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"num_input_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.rgb_to_grayscale, inpt, params["num_input_channels"])


class RGB(Transform):
    """Three channels of a grey image: `functional.grayscale_to_rgb`."""

    _functional = staticmethod(F.grayscale_to_rgb)


_ADJUSTMENTS = {
    "brightness_factor": F.adjust_brightness, "contrast_factor": F.adjust_contrast, "saturation_factor": F.adjust_saturation, "hue_factor": F.adjust_hue,
}  # fmt: skip


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed at random, in a random order.

    Args:
        brightness, contrast, saturation: factors, (least, most), or a number b for (max(0, 1 - b), 1 + b).
        hue: (least, most) within -0.5 to 0.5, or a number h for (-h, h).

    Raises ValueError for ranges beyond these.
    """

    get_params = staticmethod(first.ColorJitter.get_params)

    def __init__(self, brightness: Any = None, contrast: Any = None, saturation: Any = None, hue: Any = None) -> None:
        super().__init__()
        checked = first.ColorJitter(*(0 if given is None else given for given in (brightness, contrast, saturation, hue)))
        self.brightness, self.contrast, self.saturation, self.hue = checked.brightness, checked.contrast, checked.saturation, checked.hue

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        return {"fn_idx": order, **dict(zip(_ADJUSTMENTS, factors, strict=True))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for at in params["fn_idx"]:
            name = list(_ADJUSTMENTS)[at]
            if params[name] is not None:
                inpt = self._call_kernel(_ADJUSTMENTS[name], inpt, params[name])
        return inpt


class RandomChannelPermutation(Transform):
    """The channels in a random order."""

    _functional = staticmethod(F.permute_channels)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": draws.permutation(query_chw(flat_inputs)[0])}


class RandomPhotometricDistort(Transform):
    """Each of brightness, contrast, saturation, hue and the channels' order changed with probability p, contrast first or last (Liu et al. 2016)."""

    def __init__(
        self, brightness: tuple[float, float] = (0.875, 1.125), contrast: tuple[float, float] = (0.5, 1.5), saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05), p: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.brightness, self.contrast, self.hue, self.saturation, self.p = brightness, contrast, hue, saturation, p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels, *_ = query_chw(flat_inputs)
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        params: dict[str, Any] = {
            name: draws.uniform(*between) if draws.chance(self.p) else None for name, between in zip(_ADJUSTMENTS, ranges, strict=True)
        }
        before = draws.chance(0.5)
        return {**params, "contrast_before": before, "channel_permutation": draws.permutation(channels) if draws.chance(self.p) else None}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        order = ["brightness_factor", "saturation_factor", "hue_factor"]
        order.insert(1 if params["contrast_before"] else 3, "contrast_factor")
        for name in order:
            if params[name] is not None:
                inpt = self._call_kernel(_ADJUSTMENTS[name], inpt, params[name])
        if params["channel_permutation"] is not None:
            inpt = self._call_kernel(F.permute_channels, inpt, params["channel_permutation"])
        return inpt


class RandomEqualize(RandomApplyTransform):
    """`functional.equalize` with probability p."""

    _functional = staticmethod(F.equalize)


class RandomInvert(RandomApplyTransform):
    """`functional.invert` with probability p."""

    _functional = staticmethod(F.invert)


class RandomAutocontrast(RandomApplyTransform):
    """`functional.autocontrast` with probability p."""

    _functional = staticmethod(F.autocontrast)


class RandomPosterize(RandomApplyTransform):
    """`functional.posterize` with probability p."""

    _functional = staticmethod(F.posterize)
    _settings = ("bits",)

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits


class RandomSolarize(RandomApplyTransform):
    """`functional.solarize` with probability p."""

    _functional = staticmethod(F.solarize)
    _settings = ("threshold",)

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold


class RandomAdjustSharpness(RandomApplyTransform):
    """`functional.adjust_sharpness` with probability p."""

    _functional = staticmethod(F.adjust_sharpness)
    _settings = ("sharpness_factor",)

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor
