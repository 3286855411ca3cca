"""The last writer of every element in memory: kernel, program and line of its last store, kept while a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tritensor.cuda.emulator.source_lines import Lines, running, shown


class Store(NamedTuple):
    """The last store to an element."""

    kernel: str
    program: tuple[int, ...]
    lines: Lines

    def __str__(self) -> str:
        return f"stored by {self.kernel}, program {self.program}, {shown(self.lines)}"


class StoreRecord:
    """By allocation and byte, the number of the store that wrote there last (of an element's bytes the first counts); 0: none did.

    `repeated` are the parameters to whose cells several programs may store the same value. `rounding` are the kernels whose tl.dot
    rounded float32 operands to tf32.
    """

    def __init__(self, repeated: frozenset[str] = frozenset()) -> None:
        self.repeated = repeated
        self.rounding: set[str] = set()
        self._shadows: dict[int, np.ndarray] = {}
        self._stores: list[Store] = []
        self._numbers: dict[Store, int] = {}

    def note(self, kernel: str, program: tuple[int, ...], lanes: np.ndarray, base: int, nbytes: int) -> None:
        """The line that runs now stores to the addresses `lanes`, in the allocation of `nbytes` bytes at `base`."""
        store = Store(kernel, program, running())
        number = self._numbers.get(store)
        if number is None:
            self._stores.append(store)  # numbered: a line in a loop stores a million times, and is kept once
            number = self._numbers[store] = len(self._stores)
        shadow = self._shadows.get(base)
        if shadow is None:
            shadow = self._shadows[base] = np.zeros(nbytes, np.int32)
        shadow[lanes - base] = number

    def forget(self, base: int) -> None:
        """The memory at `base` is another tensor's from now on."""
        self._shadows.pop(base, None)

    def of(self, base: int, address: int) -> Store | None:
        """The last store to the element at an address of the allocation at `base`."""
        shadow = self._shadows.get(base)
        number = 0 if shadow is None or address - base >= shadow.size else int(shadow[address - base])
        return self._stores[number - 1] if number else None

    def stored(self, base: int, addresses: np.ndarray) -> np.ndarray:
        """Which of the elements at these addresses were stored to."""
        shadow = self._shadows.get(base)
        return np.zeros(addresses.shape, bool) if shadow is None else shadow[addresses - base] > 0

    def last(self, base: int) -> Store | None:
        """Some store to the allocation at `base`: where an element was left out, this one did not leave out another."""
        shadow = self._shadows.get(base)
        number = int(shadow.max(initial=0)) if shadow is not None else 0
        return self._stores[number - 1] if number else None


_kept: StoreRecord | None = None


def current() -> StoreRecord | None:
    """The record that is kept now, or None."""
    return _kept


def forget(base: int) -> None:
    """Fresh memory is handed out at `base`."""
    if _kept is not None:
        _kept.forget(base)


@contextmanager
def recorded(repeated: frozenset[str] = frozenset()) -> Iterator[StoreRecord]:
    """Within this, every launch on the emulated device notes its stores in the record given."""
    global _kept
    before, _kept = _kept, StoreRecord(repeated)
    try:
        yield _kept
    finally:
        _kept = before
