"""Checks of the arguments of transforms' classes of the second version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError


def as_fills(fill: Any) -> dict[Any, Any]:
    """A fill by class of input, "others" for those that are not named. Raises TypeError for what is no fill."""
    fills = fill if isinstance(fill, dict) else {"others": fill}
    for value in fills.values():
        if value is not None and (isinstance(value, str) or not isinstance(value, int | float | tuple | list)):
            raise TypeError(f"fill {value!r}: Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed")
    return {kind: value if value is None or isinstance(value, int | float) else [float(v) for v in value] for kind, value in fills.items()}


def fill_for(fills: dict[Any, Any], inpt: Any) -> Any:
    """The fill for an input, None where none is given."""
    return fills.get(type(inpt), fills.get("others"))


def as_numbers(given: Any, name: str) -> list[float]:
    """Two numbers of one, or of a sequence of one or two. Raises TypeError, ValueError for others."""
    if not isinstance(given, int | float | Sequence) or isinstance(given, str):
        raise TypeError(f"{name} should be a number or a sequence of numbers. Got {type(given)}")
    numbers = [given] if isinstance(given, int | float) else list(given)
    if len(numbers) not in (1, 2) or not all(isinstance(n, int | float) for n in numbers):
        raise ArgumentError(f"{name} {given}: If it is a sequence its length should be 1 or 2, all numbers")
    return [float(numbers[0]), float(numbers[-1])]


def as_size(name: str, size: Any) -> tuple[int, int]:
    """(height, width) of a number, or a sequence of one or two. Raises TypeError, ValueError for others."""
    if isinstance(size, bool) or not isinstance(size, int | Sequence):
        raise TypeError(f"{name}: size should be a number or a sequence of two, got {size!r}")
    if isinstance(size, int):
        return size, size
    if len(size) not in (1, 2):
        raise ArgumentError(f"{name}: size {tuple(size)}; Please provide only two dimensions (h, w) for size")
    return size[0], size[-1]


def check_padding(padding: Any, padding_mode: str) -> None:
    """Raise ValueError for what is no padding, or no mode of it."""
    numbers = padding if isinstance(padding, tuple | list) else [padding]
    if len(numbers) not in (1, 2, 4) or not all(isinstance(p, int) for p in numbers):
        raise ArgumentError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ArgumentError(f"Padding mode should be either constant, edge, reflect or symmetric, got {padding_mode!r}")


def check_probability(p: float) -> float:
    """A number from 0 to 1. Raises ValueError for others."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"`p` should be a floating point value in the interval [0.0, 1.0], got {p}")
    return p
