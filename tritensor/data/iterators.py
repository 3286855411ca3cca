"""Iterators over a DataLoader, by the place where batches are made: in this process, or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from tritensor.data.batch_reader import make_reader, read_once
from tritensor.ground.providers import provider


class DatasetKind:
    """Whether samples are read by index, or in turn."""

    Map, Iterable = 0, 1


class LoaderIterator:
    """What `iter(loader)` gives. `len()` is the number of batches of an epoch, where that is known."""

    __slots__ = ()

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled: it is in the middle of an epoch; pickle the loader")

    __reduce__ = __getstate__  # map's own would pickle the reader


class SingleProcessIterator(LoaderIterator, map):  # type: ignore[type-arg]
    """The batches that this process makes, one for each entry of a sampler: a map() with a length.

    `SingleProcessIterator(loader)` iterates over a DataLoader, or over another object that has the attributes of one: dataset, collate_fn,
    _dataset_kind, _auto_collation, _index_sampler.
    """

    _entries: Any

    def __new__(cls, loader: Any) -> SingleProcessIterator:
        if loader._dataset_kind == DatasetKind.Iterable:
            return cls.over(loader.collate_fn, _read_in_turn(loader))
        return cls.over(make_reader(loader.dataset, loader.collate_fn, loader._auto_collation), loader._index_sampler)

    @classmethod
    def over(cls, read: Callable[..., Any], entries: Iterable[Any]) -> SingleProcessIterator:
        """`read` of each entry."""
        made: SingleProcessIterator = map.__new__(cls, read, entries)
        made._entries = entries
        return made

    def __len__(self) -> int:
        return len(self._entries)


def _read_in_turn(loader: Any) -> Iterator[Any]:
    """Samples of a stream one by one, or as many as each entry of the sampler is long."""
    samples = read_once(loader.dataset)
    if not loader._auto_collation:
        yield from samples
        return
    for entry in loader._index_sampler:
        batch = [sample for _, sample in zip(entry, samples, strict=False)]
        if not batch or (loader.drop_last and len(batch) < len(entry)):
            return
        yield batch


class MultiProcessIterator(LoaderIterator):
    """The batches that worker processes make. `MultiProcessIterator(loader)` iterates over another object that has the attributes of a DataLoader."""

    def __init__(self, loader: Any) -> None:
        self._batches = provider("data.loader_view").iterate_view(loader)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        """End the iteration, and its workers unless they persist."""
        self._batches.close()

    def _shutdown_workers(self) -> None:
        self.close()
