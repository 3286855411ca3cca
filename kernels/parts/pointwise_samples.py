"""Samples: numbers to draw; of elementwise ops shapes that together reach every path of the shared kernel, values from an op's domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ops.table import FLOATS, Sample


class Domain(NamedTuple):
    """Where an input's sample values lie: uniform in [low, high], at least 0.1 away from every kink; or on a lattice low + k * step.

    Two inputs on lattices that never meet have no ties, in any type and however they broadcast.
    """

    low: float
    high: float
    kinks: tuple[float, ...] = ()
    step: float = 0.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.step:
            return np.asarray(self.low + self.step * rng.integers(0, int((self.high - self.low) / self.step) + 1, shape))
        x = np.asarray(rng.uniform(self.low, self.high, shape))
        for k in self.kinks:  # finite differences across a kink say nothing of the slope beside it
            x = np.where(np.abs(x - k) < 0.1, k + 0.1 + 0.5 * (x - k + 0.1), x)
        return x


def normals(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """Standard normal numbers by size: `x = normals(rng)`, then `x(3, 4)`."""
    return lambda *size: rng.standard_normal(size)


def spaced(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Values so far apart that a finite difference changes neither their order nor which is the largest."""
    n = math.prod(shape)
    return ((rng.permutation(n) - n / 2) * (4.0 / max(n, 20))).reshape(shape)


def complex_normals(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Complex numbers of which both parts are drawn from the normal distribution."""
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


ANYWHERE = Domain(-2.0, 2.0)
_ALONE = ((), (7,), (3, 5), (2, 3, 4), (135,))  # the last has a full tile and an edge
_TOGETHER = (((3, 5), (3, 5)), ((3, 5), (5,)), ((4, 1), (3,)), ((2, 1, 3), (4, 1)), ((), (3,)), ((135,), (135,)), ((9, 20), (9, 1)))
# signed zeros, infinities, NaN, a number whose square vanishes, halves, one whose exponential overflows
_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, 2.5, -2.5, 3.5, 1e4])


def sample_calls(
    domains: Sequence[Domain], scalars: bool, dtypes: Sequence[str], extra: Callable[[np.random.Generator], Sequence[Sample]] | None
) -> Callable[[np.random.Generator], list[Sample]]:
    """The `samples` field of an elementwise op."""

    def samples(rng: np.random.Generator) -> list[Sample]:
        found: list[Any] = []
        if len(domains) == 1:
            found += [Sample(domains[0].draw(rng, s)) for s in _ALONE]
            if set(FLOATS) <= set(dtypes):  # integers hold none of them
                found.append(Sample(_SPECIAL, smooth=False))
        else:
            shapes = _TOGETHER if len(domains) == 2 else tuple((*pair, (1,)) for pair in _TOGETHER)
            found += [Sample(*[d.draw(rng, s) for d, s in zip(domains, group, strict=True)]) for group in shapes]
            if scalars and len(domains) == 2:
                a, b = domains
                found += [Sample(a.draw(rng, (3, 5)), _number(b)), Sample(_number(a), b.draw(rng, (7,)))]
        return found + (list(extra(rng)) if extra is not None else [])

    return samples


def _number(domain: Domain) -> float:
    return round(domain.low + 0.8 * (domain.high - domain.low), 2)


def timed_calls(domains: Sequence[Domain]) -> Callable[[np.random.Generator], list[Sample]]:
    """The `sizes` field: one that fits caches, one that does not, and for several inputs a broadcast row."""

    def sizes(rng: np.random.Generator) -> list[Sample]:
        found = [Sample(*[d.draw(rng, (n,)) for d in domains]) for n in (2**16, 2**22)]
        if len(domains) > 1:
            found.append(Sample(domains[0].draw(rng, (4096, 1024)), *[d.draw(rng, (1024,)) for d in domains[1:]]))
        return found

    return sizes


def every_pair(*values: float) -> Callable[[np.random.Generator], list[Sample]]:
    """`extra` samples of a function of two inputs: zeros, infinities, NaN and whatever else, each with each."""
    a, b = np.meshgrid(values, values)
    return lambda rng: [Sample(a.reshape(-1), b.reshape(-1), smooth=False)]


_ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, 2.5, -2.5, 40.0, 1e4])


def few(*domains: Domain, odd: bool = True, extra: Callable[[np.random.Generator], Sequence[Sample]] | None = None) -> Any:
    """Samples of a long formula: the shared kernel's paths are reached by those of short ones."""

    def samples(rng: np.random.Generator) -> list[Sample]:
        found = [Sample(*[d.draw(rng, (3, 5)) for d in domains])]
        if len(domains) > 1:
            found += [Sample(*[d.draw(rng, s) for d, s in zip(domains, ((4, 1), (3,)), strict=True)])]
        elif odd:
            found.append(Sample(_ODD, smooth=False))
        return found + (list(extra(rng)) if extra is not None else [])

    return samples
