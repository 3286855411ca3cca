"""Iterators over a DataLoader, by the place where batches are made: in this process, or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class LoaderIterator:
    """What `iter(loader)` gives. `len()` is the number of batches of an epoch, where that is known."""

    __slots__ = ()


class SingleProcessIterator(LoaderIterator, map):  # type: ignore[type-arg]
    """The batches that this process makes, one for each entry of a sampler: a map() with a length."""

    _entries: Any

    def __new__(cls, read: Callable[..., Any], entries: Iterable[Any]) -> SingleProcessIterator:
        made = super().__new__(cls, read, entries)
        made._entries = entries
        return made

    def __len__(self) -> int:
        return len(self._entries)


class MultiProcessIterator(LoaderIterator):
    """The batches that worker processes make."""
