"""Random orders: permutations and draws of indices, set by a generator and the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tritensor.random import Generator, default_generator
from tritensor.tensor.functions.creation.random import rand, randint, randperm

_CHUNK = 1 << 14  # indices drawn at once
_MASK = (1 << 64) - 1


def draw_seed(generator: Generator | None) -> int:
    """A seed of 63 bits, drawn from a generator (the default one where none is given)."""
    key, offset = (default_generator if generator is None else generator).draw(1)
    return _mix_bits(key ^ _mix_bits(offset)) >> 1


def _mix_bits(z: int) -> int:
    """64 bits that depend on all of z's (the output function of SplitMix64; Steele, Lea and Flood, "Fast splittable generators", 2014)."""
    z = (z + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
    return z ^ z >> 31


def permutation(n: int, generator: Generator | None) -> list[int]:
    """0 to n - 1 in a random order."""
    return randperm(n, generator=generator).tolist()


def draw_with_replacement(n: int, count: int, generator: Generator | None) -> Iterator[int]:
    """`count` independent draws from 0 to n - 1, some at a time: programs that stop by themselves ask for any number of them."""
    for first in range(0, count, _CHUNK):
        yield from randint(0, n, (min(_CHUNK, count - first),), generator=generator).tolist()


def draw_weighted(weights: list[float], count: int, replacement: bool, generator: Generator | None) -> list[int]:
    """`count` indices, i with probability weights[i] / sum(weights); each once at most unless `replacement`."""
    w = np.array(weights)
    if replacement:  # inverse of the cumulative distribution
        edges = np.cumsum(w)
        u = rand(count, dtype=np.float64, generator=generator).numpy() * edges[-1]
        last = int(np.flatnonzero(w)[-1])  # rounding must not pick an index of weight 0 behind it
        return np.minimum(np.searchsorted(edges, u, side="right"), last).tolist()
    u = rand(len(weights), dtype=np.float64, generator=generator).numpy()
    with np.errstate(divide="ignore"):  # log 0 = -inf: never among the largest
        keys = np.log(w) - np.log(-np.log1p(-u))  # log w + Gumbel noise
    return np.argsort(-keys, kind="stable")[:count].tolist()
