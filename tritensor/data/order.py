"""Random orders: permutations and draws of indices, set by a generator and the same on every machine."""

from __future__ import annotations

import numpy as np

from tritensor.random import Generator
from tritensor.tensor.functions.creation.random import rand, randint, randperm


def permutation(n: int, generator: Generator | None) -> list[int]:
    """0 to n - 1 in a random order."""
    return randperm(n, generator=generator).tolist()


def choices(n: int, count: int, generator: Generator | None) -> list[int]:
    """`count` independent draws from 0 to n - 1."""
    return randint(0, n, (count,), generator=generator).tolist() if count else []


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
