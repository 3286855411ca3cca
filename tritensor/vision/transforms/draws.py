"""Random draws of transforms, all from tritensor's generator, so that a seed repeats a run."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.data.sampler import draw_weighted
from tritensor.data.sampler import permutation as _permutation
from tritensor.random import default_generator


def _random_word() -> int:
    """32 random bits, the first of the generator's next block."""
    # those of rand(1), without a tensor: an augmentation draws some ten numbers a sample
    from tritensor.kernels.parts.random_words.philox import ahead  # loads Triton, which a program that draws nothing need not wait for

    words, row = ahead(*default_generator.draw(1), 1)
    return int(words[row, 0])


def uniform(low: float, high: float) -> float:
    """A number from low to high."""
    return low + (high - low) * ((_random_word() >> 8) * 2.0**-24)


def chance(p: float) -> bool:
    """True with probability p."""
    return (_random_word() >> 8) * 2.0**-24 < p


def integer(low: int, high: int) -> int:
    """One of low, ..., high - 1; of a range below 2^16, each within 2^-16 as likely as another."""
    return low + (_random_word() * (high - low) >> 32)


def permutation(n: int) -> list[int]:
    """0 to n - 1 in a random order."""
    return _permutation(n, None)


def choice(n: int, weights: Sequence[float] | None = None) -> int:
    """One of 0, ..., n - 1, with probabilities as the weights."""
    return integer(0, n) if weights is None else int(draw_weighted([float(w) for w in weights], 1, True, None)[0])
