"""Methods of interpolation between pixels: torchvision's enumeration, and Pillow's numbers of the same methods."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tritensor.ground.errors import ArgumentError


class InterpolationMode(Enum):
    """Methods of interpolation. BOX, HAMMING and LANCZOS are Pillow's alone."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's numbers (PIL.Image.Resampling); its nearest is exact.
PILLOW = {
    InterpolationMode.NEAREST: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
    InterpolationMode.NEAREST_EXACT: 0,
}
_BY_NUMBER = {0: InterpolationMode.NEAREST, **{n: m for m, n in PILLOW.items() if n}}  # two modes have number 0


def as_mode(name: str, given: Any) -> InterpolationMode:
    """An InterpolationMode, or the one of Pillow's number. Raises TypeError for what is neither, ValueError for another number."""
    if isinstance(given, InterpolationMode):
        return given
    if not isinstance(given, int) or isinstance(given, bool):  # True is an int
        raise TypeError(
            f"{name}: interpolation {given!r}; give an InterpolationMode, such as InterpolationMode.BILINEAR, or Pillow's number of it"
        )
    if int(given) not in _BY_NUMBER:
        raise ArgumentError(f"{name}: interpolation {given} is none of Pillow's numbers, 0 to 5")
    return _BY_NUMBER[int(given)]
