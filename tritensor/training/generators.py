"""Random generators: the state of all that a program draws from, and streams apart from them for what reads data."""

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


def state() -> dict[str, Any]:
    """Where tritensor's, numpy's and Python's global generators are, as something that `tritensor.save` takes."""
    drawn = tree_map_only(np.ndarray, Tensor.wrap, np.random.get_state(legacy=False))
    return {"tritensor": (default_generator.key, default_generator.offset), "numpy": drawn, "python": random.getstate()}


def set_state(found: Mapping[str, Any]) -> None:
    """Put the global generators where `state` found them."""
    default_generator.key, default_generator.offset = found["tritensor"]
    np.random.set_state(tree_map_only(Tensor, Tensor.numpy, found["numpy"]))
    random.setstate(found["python"])


def seeds() -> dict[str, int]:
    """What the streams of a run derive from: the seed of tritensor's generator, a digest of where numpy's and Python's are."""
    seeded = tree_map_only(np.ndarray, np.ndarray.tobytes, np.random.get_state(legacy=False))
    return {"tritensor": default_generator.initial_seed(), "numpy": mixed(seeded), "python": mixed(random.getstate())}


class Stream:
    """`with stream.at(...):` what is drawn inside comes from generators of its own; the program's go on as if nothing had been drawn.

    Where it stands depends on the seeds and on the words of `at` alone, which is what makes data the same after a run was interrupted; a
    further `with stream:` goes on where the last one ended. `own` are generators besides the global ones: those that a loader was given.
    Each keeps a stream of its own seed.
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
        """The stream at the place that the words name: ("order", epoch), or ("batch", epoch, number)."""
        self._words, self._inside = words, None
        return self

    def __enter__(self) -> None:
        self._outside = (self._places(), _get_bits(), random.getstate())
        _set_bits(self._numpy)  # to read and write numpy's state takes 200 us
        if self._inside is not None:
            self._go(self._inside[0])
            random.setstate(self._inside[1])
            return
        self._go([(mixed((first, *self._words)), 0) for first in self._first])
        np.random.seed(mixed((self._seeds["numpy"], *self._words)) % 2**32)
        random.seed(mixed((self._seeds["python"], *self._words)))

    def __exit__(self, *_: object) -> None:
        if self._words[0] != "batch":  # nothing goes on inside a batch
            self._inside = (self._places(), random.getstate())
        places, bits, python = self._outside
        self._go(places)
        _set_bits(bits)
        random.setstate(python)

    def _places(self) -> list[tuple[int, int]]:
        return [(g.key, g.offset) for g in self._generators]

    def _go(self, places: list[tuple[int, int]]) -> None:
        for g, (key, offset) in zip(self._generators, places, strict=True):
            g.key, g.offset = key, offset


def mixed(words: Any) -> int:
    """64 bits that depend on every word."""
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=8).digest(), "little")
