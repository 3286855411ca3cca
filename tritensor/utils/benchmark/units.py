"""Times in units that read well, numbers with as many digits as are known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

_UNITS = {-3: "ns", -2: "us", -1: "ms"}
_WORDS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


def select_unit(t: float) -> tuple[str, float]:
    """(name, seconds) of the unit in which a time of t seconds reads best: ("us", 1e-06)."""
    power = math.floor(math.log10(t) / 3) if t > 0 else 0
    unit = _UNITS.get(max(power, -3), "s")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def unit_to_english(u: str) -> str:
    """A unit's name as a word: microsecond for us."""
    return _WORDS[u]


def trim_sigfig(x: float, n: int) -> float:
    """x rounded to n significant digits."""
    if not x or not math.isfinite(x):
        return float(x)
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order in which they come."""
    return list(dict.fromkeys(elements))
