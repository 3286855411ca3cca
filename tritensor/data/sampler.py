"""Samplers: orders in which a dataset is read; random ones are set by a generator and the same on every machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from tritensor.ground.errors import ArgumentError
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


T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """An iterable over indices (or lists of them); a subclass gives `__iter__()` and, where it is known, `__len__()`."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(); a Sampler yields indices")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..., n - 1."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A new random order each time it is iterated, set by the generator (the default one where none is given).

    With `replacement` indices are drawn independently. `num_samples` draws more or fewer than the dataset holds; without
    replacement more than that means whole permutations one after another. Raises TypeError for a `replacement` that is no bool, ValueError for
    `num_samples` that is no count, and, when it is read, for an empty dataset of which some are asked.
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement {replacement!r} is not True or False")
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples < 0):
            raise ValueError(
                f"RandomSampler: num_samples {num_samples!r} is not a count; give an integer from 0, or None for the dataset's length"
            )
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """Indices of an epoch: as many as asked for, or as the dataset holds."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        if wanted and not n:
            raise ArgumentError(f"RandomSampler: {wanted} samples asked of an empty dataset")
        generator = self.generator
        if generator is None:  # a stream of its own: draws of the dataset between the samples must not change the order
            generator = Generator().manual_seed(draw_seed(None))
        if self.replacement:
            yield from draw_with_replacement(n, wanted, generator)
            return
        while wanted > 0:
            yield from permutation(n, generator)[:wanted]
            wanted -= n

    def __len__(self) -> int:
        return self.num_samples


class ConstantSampler(Sampler[None]):
    """None for ever: what stands in the sampler's place where a dataset is a stream, whose samples have no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class SubsetRandomSampler(Sampler[int]):
    """The given indices, in a new random order each time."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in permutation(len(self.indices), self.generator))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, i drawn with probability weights[i] / sum(weights).

    Without replacement each index comes once, drawn by the Gumbel-max trick: the largest of log(weight) + Gumbel noise. Raises ValueError for weights
    that are negative, not finite or all zero, and for more samples than indices of positive weight without replacement.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None) -> None:
        try:
            self.weights = [float(w) for w in (weights.tolist() if hasattr(weights, "tolist") else weights)]
        except TypeError:
            raise ArgumentError(
                "WeightedRandomSampler: weights should be a 1d sequence of numbers; flatten them, one for each sample"
            ) from None
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"WeightedRandomSampler: num_samples {num_samples!r} is not a positive count")
        if not isinstance(replacement, bool):
            raise ArgumentError(f"WeightedRandomSampler: replacement {replacement!r} is not True or False")
        if any(not 0 <= w < float("inf") for w in self.weights) or not any(self.weights):
            raise ArgumentError("WeightedRandomSampler: weights must be finite, not negative, and not all zero")
        if not replacement and num_samples > sum(w > 0 for w in self.weights):
            raise ArgumentError(
                f"WeightedRandomSampler: {num_samples} samples without replacement from {sum(w > 0 for w in self.weights)} indices of positive weight"
            )

    def __iter__(self) -> Iterator[int]:
        return iter(draw_weighted(self.weights, self.num_samples, self.replacement, self.generator))

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of a sampler; a shorter last one unless `drop_last`. Raises ValueError for a size that is no positive integer.

    >>> list(tt.data.BatchSampler(range(5), 2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"BatchSampler: batch_size {batch_size!r} is not a positive integer")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last {drop_last!r} is not True or False")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n: Any = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
