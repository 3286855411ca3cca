"""Random numbers of transforms: all from tritensor's generator, so that a seed repeats a run."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.data.order import permutation as _permutation
from tritensor.data.order import weighted
from tritensor.tensor.functions.creation.random import rand, randint


def uniform(low: float, high: float) -> float:
    """A number from low to high."""
    return float(low + (high - low) * rand(1).item())


def chance(p: float) -> bool:
    """True with probability p."""
    return bool(rand(1).item() < p)


def integer(low: int, high: int) -> int:
    """One of low, ..., high - 1."""
    return int(randint(low, high, (1,)).item())


def permutation(n: int) -> list[int]:
    """0 to n - 1 in a random order."""
    return _permutation(n, None)


def choice(n: int, weights: Sequence[float] | None = None) -> int:
    """One of 0, ..., n - 1, with probabilities as the weights."""
    return integer(0, n) if weights is None else int(weighted([float(w) for w in weights], 1, True, None)[0])
