"""Random generators: the state of the global ones, and streams of their own for reading data."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.ground.pytree import tree_map_only
from tritensor.random import Generator, default_generator
from tritensor.tensor.core import Tensor

_get_bits, _set_bits = np.random.get_bit_generator, np.random.set_bit_generator  # type: ignore[attr-defined]


def get_state() -> dict[str, Any]:
    """The states of tritensor's, numpy's and Python's global generators, in a form that `tritensor.save` takes."""
    drawn = tree_map_only(np.ndarray, Tensor.wrap, np.random.get_state(legacy=False))
    return {"tritensor": (default_generator.key, default_generator.offset), "numpy": drawn, "python": random.getstate()}


def set_state(found: Mapping[str, Any]) -> None:
    """Set the global generators to the states of `get_state`."""
    default_generator.key, default_generator.offset = found["tritensor"]
    np.random.set_state(tree_map_only(Tensor, Tensor.numpy, found["numpy"]))
    random.setstate(found["python"])


def get_seeds() -> dict[str, int]:
    """The seeds of a run's streams: the seed of tritensor's generator, digests of numpy's and Python's states."""
    seeded = tree_map_only(np.ndarray, np.ndarray.tobytes, np.random.get_state(legacy=False))
    return {"tritensor": default_generator.initial_seed(), "numpy": mix_words(seeded), "python": mix_words(random.getstate())}


class Stream:
    """`with stream.at(...):` draws inside come from generators of the stream's own; the program's go on as if nothing had been drawn.

    The numbers depend on the seeds and on the words of `at` alone, which makes data the same after a run was interrupted; a further
    `with stream:` goes on where the last one ended. `own` are generators besides the global ones: those that a loader was given. Each
    keeps a stream of its own seed.
    """

    def __init__(self, found: Mapping[str, Any], own: Sequence[Generator] = ()) -> None:
        self._seeds = found
        self._generators = [default_generator, *own]
        self._first = [found["tritensor"], *(g.initial_seed() for g in own)]
        self._numpy = np.random.MT19937(0)
        self._inside: tuple[Any, Any] | None = None  # where the last block ended
        self._outside: tuple[Any, Any, Any] = ([], None, None)
        self._words: tuple[Any, ...] = ()

    def at(self, *words: Any) -> Stream:
        """The stream at the beginning of the part that the words name: ("order", epoch), or ("batch", epoch, number)."""
        self._words, self._inside = words, None
        return self

    def __enter__(self) -> None:
        self._outside = (self._get_positions(), _get_bits(), random.getstate())
        _set_bits(self._numpy)  # to read and write numpy's state takes 200 us
        if self._inside is not None:
            self._set_positions(self._inside[0])
            random.setstate(self._inside[1])
            return
        self._set_positions([(mix_words((first, *self._words)), 0) for first in self._first])
        np.random.seed(mix_words((self._seeds["numpy"], *self._words)) % 2**32)
        random.seed(mix_words((self._seeds["python"], *self._words)))

    def __exit__(self, *_: object) -> None:
        if self._words[0] != "batch":  # nothing goes on inside a batch
            self._inside = (self._get_positions(), random.getstate())
        positions, bits, python = self._outside
        self._set_positions(positions)
        _set_bits(bits)
        random.setstate(python)

    def _get_positions(self) -> list[tuple[int, int]]:
        return [(g.key, g.offset) for g in self._generators]

    def _set_positions(self, positions: list[tuple[int, int]]) -> None:
        for g, (key, offset) in zip(self._generators, positions, strict=True):
            g.key, g.offset = key, offset


def mix_words(words: Any) -> int:
    """64 bits that depend on every word."""
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=8).digest(), "little")
