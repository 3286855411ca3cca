"""Replayed numbers: other ones at each replay of a recording. They are packed into a launch's parameters as addresses are."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_LOW = 0xFFFFFFFF
_MASK = 0xFFFFFFFFFFFFFFFF
_OTHER_SEED, _OTHER_OFFSET = 0x9E3779B97F4A7C15, 0x2545F4914F6CDD1D  # differences whose parts all differ
_MOST = 127  # the largest number that all integer types hold
_HALF, _SINGLE, _DOUBLE, _QUAD = (struct.Struct(f"<{c}") for c in "IfdQ")


class ReplayedNumber:
    """One number as an input of a recording: `value`, and its bits in `pointer`, where an array has its address. It has no memory."""

    __slots__ = ("pointer", "value")
    storage = None

    def __init__(self, pointer: int, value: Any) -> None:
        self.pointer = pointer
        self.value = value


# The seed and offset of a draw, as kernels take them (kernels/parts/random_words/philox.py): two words of the key, and the first block.
SEED_KINDS = (np.uint32, np.uint32, np.uint64)


def seed_numbers(seed: int, offset: int) -> tuple[ReplayedNumber, ReplayedNumber, ReplayedNumber]:
    """A draw's three numbers."""
    low, high = _key(seed)
    return low, high, ReplayedNumber(offset & _MASK, offset & _MASK)


@functools.lru_cache(maxsize=64)
def _key(seed: int) -> tuple[ReplayedNumber, ReplayedNumber]:
    """A seed's two words, the same objects for draw after draw: nobody writes to one."""
    low, high = seed & _LOW, seed >> 32 & _LOW
    return ReplayedNumber(low, low), ReplayedNumber(high, high)


def another_seed(seed: int, offset: int) -> tuple[int, int]:
    """A seed and offset all of whose numbers are other ones."""
    return (seed & _MASK) ^ _OTHER_SEED, offset + _OTHER_OFFSET & _MASK


# Python numbers, which meet floating arrays as a float32 or a float64
def _single_bits(value: Any) -> int:
    try:
        packed = _SINGLE.pack(value)
    except OverflowError:  # beyond float32: infinite there
        packed = _SINGLE.pack(float("inf") if value > 0 else float("-inf"))
    return int(_HALF.unpack(packed)[0])


def _double_bits(value: Any) -> int:
    return int(_QUAD.unpack(_DOUBLE.pack(value))[0])


# How a kernel may take a number: a Python float is an fp32 parameter, np.float64 an fp64 one (see launch()).
ENCODERS: dict[Any, Callable[[Any], int]] = {float: _single_bits, np.float64: _double_bits}


def replayed_number(number: float | int, kind: Any) -> ReplayedNumber:
    """A Python number for a parameter of a kind. Raises OverflowError for an int beyond float64."""
    value = float(number)
    return ReplayedNumber(ENCODERS[kind](value), value)


def own(number: float | int) -> float | int:
    """The same number as an object of its own, which is told from equal ones by its id."""
    return float(_DOUBLE.unpack(_DOUBLE.pack(number))[0]) if type(number) is float else number


def other_numbers(numbers: Sequence[float | int]) -> list[float | int]:
    """Numbers of the same types that differ from these and from one another; integers fit every integer type."""
    top = 1 + max(abs(n) for n in numbers)
    whole = (n for n in range(_MOST, 0, -1) if n not in numbers)
    return [next(whole) if type(n) is int else type(n)(top * (i + 2)) for i, n in enumerate(numbers)]
