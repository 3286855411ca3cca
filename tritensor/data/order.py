"""Random orders: permutations and draws of indices, set by a generator and the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tritensor.random import Generator
from tritensor.tensor.functions.creation.random import rand, randint, randperm

_DRAWN = 1 << 14


def permutation(n: int, generator: Generator | None) -> list[int]:
    """0 to n - 1 in a random order."""
    return randperm(n, generator=generator).tolist()


def choices(n: int, count: int, generator: Generator | None) -> Iterator[int]:
    """`count` independent draws from 0 to n - 1, some at a time: programs that stop by themselves ask for any number of them."""
    for first in range(0, count, _DRAWN):
        yield from randint(0, n, (min(_DRAWN, count - first),), generator=generator).tolist()


def weighted(weights: list[float], count: int, replacement: bool, generator: Generator | None) -> list[int]:
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
