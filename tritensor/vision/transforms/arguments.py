"""Checks of the arguments of transforms' classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor
from tritensor.vision.transforms.functional import get_dimensions


def check_sequence(name: str, what: str, given: Any, lengths: tuple[int, ...] = (2,)) -> Any:
    """A sequence of one of the lengths, as it is. Raises TypeError, ValueError for another."""
    if not isinstance(given, Sequence) or isinstance(given, str):  # a str is a sequence, too
        raise TypeError(f"{name}: {what} {given!r}; give a sequence of {' or '.join(map(str, lengths))} numbers")
    if len(given) not in lengths:
        raise ArgumentError(f"{name}: {what} {tuple(given)} has {len(given)} numbers; give {' or '.join(map(str, lengths))}")
    return given


def as_degrees(name: str, what: str, given: Any, lengths: tuple[int, ...] = (2,)) -> list[float]:
    """A range of degrees; a number d stands for (-d, d). Raises ValueError for a negative one."""
    if isinstance(given, int | float):
        if given < 0:
            raise ArgumentError(f"{name}: {what} {given} is below 0; give a positive number d for (-d, d), or both ends")
        given = [-given, given]
    return [float(d) for d in check_sequence(name, what, given, lengths)]


def check_fill(name: str, fill: Any) -> Any:
    """A fill: a number, or a sequence of them; None is 0. Raises TypeError for another."""
    if fill is None:
        return 0
    if not isinstance(fill, int | float | Sequence) or isinstance(fill, str):
        raise TypeError(f"{name}: fill {fill!r}; give a number, or one for each channel")
    return fill


def adapt_fill(fill: Any, img: Any) -> Any:
    """A fill in the form that the functions take: for a tensor a list of floats."""
    if not isinstance(img, Tensor) or fill is None:  # Pillow takes any form; None is black
        return fill
    return [float(fill)] * get_dimensions(img)[0] if isinstance(fill, int | float) else [float(f) for f in fill]


def check_ranges(name: str, scale: Any, ratio: Any) -> None:
    """Check two ranges. Raises TypeError for no sequences; warns where an end lies before its beginning, as torchvision does."""
    check_sequence(name, "scale", scale)
    check_sequence(name, "ratio", ratio)
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn(f"{name}: scale {tuple(scale)} and ratio {tuple(ratio)} should be (least, most)", stacklevel=4)
