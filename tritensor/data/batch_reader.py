"""Readers of datasets: a batch of a list of indices, or of the next samples of a stream; an error names the samples that do not fit together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tritensor.data.collate import default_collate
from tritensor.data.dataset import find_batch_reader, read_samples
from tritensor.random import default_generator

Read = Callable[[Any], Any]


def make_reader(dataset: Any, collate: Callable[[Any], Any], batched: bool, before_each: Callable[[], None] | None = None) -> Read:
    """A function from a list of indices to their batch, or, unless `batched`, from an index to its sample. `before_each` is called before each sample."""
    if not batched:
        return lambda index: collate(dataset[index])
    # what the dataset makes as a whole is what default_collate would make, and nothing else
    whole = find_batch_reader(dataset) if collate is default_collate else None
    if whole is not None:
        return whole
    if before_each is None or callable(getattr(dataset, "__getitems__", None)):
        return lambda indices: _collate_batch(collate, read_samples(dataset, indices), indices)
    pause = before_each

    def read(indices: Sequence[Any]) -> Any:
        samples = []
        for index in indices:
            pause()
            samples.append(dataset[index])
        return _collate_batch(collate, samples, indices)

    return read


def isolate_generator(read: Read, seed: int) -> Read:
    """A reader in this process, whose dataset draws from tritensor's generator as worker 0 would, seeded by `seed`."""
    # The program's own state is put back after each batch, so that neither the next epoch's order nor what the model draws depends on
    # the number of workers.
    state = seed & 0xFFFFFFFFFFFFFFFF, 0

    def read_isolated(asked: Any) -> Any:
        nonlocal state
        g = default_generator
        outside = g.key, g.offset
        g.key, g.offset = state
        try:
            return read(asked)
        except StopIteration as error:  # would end the loop without a word
            raise RuntimeError(
                f"DataLoader: Caught StopIteration, which the dataset or collate_fn raised for {asked!r}; only what iterates ends by it: raise another error"
            ) from error
        finally:
            state = g.key, g.offset
            g.key, g.offset = outside

    return read_isolated


def read_stream(
    dataset: Iterable[Any], collate: Callable[[Any], Any], batch_size: int | None, drop_last: bool
) -> Iterator[tuple[int, Any]]:
    """(number of samples, batch) of an IterableDataset in turn; without a size its samples, one by one."""
    samples = read_once(dataset)
    if batch_size is None:
        for sample in samples:
            yield 1, collate(sample)
        return
    first = 0
    while batch := list(itertools.islice(samples, batch_size)):
        if len(batch) == batch_size or not drop_last:
            yield len(batch), _collate_batch(collate, batch, range(first, first + len(batch)), "number {} of the stream")
        first += len(batch)


def read_once(stream: Iterable[Any]) -> Iterator[Any]:
    """The samples of a stream, whose `__iter__` is called once: one that returns itself may begin anew at each call."""
    samples = iter(stream)
    while True:
        try:
            yield next(samples)
        except StopIteration:
            return


def warn_when_longer(source: Iterator[tuple[int, Any]], claimed: int | None) -> Iterator[Any]:
    """The batches of a stream; warns once it gives more samples than `claimed`, which `len(loader)` has said."""
    given = 0
    for samples, batch in source:
        if claimed is not None:
            given = count_samples(claimed, given, samples)
        yield batch


def count_samples(claimed: int, given: int, more: int) -> int:
    """The samples that a stream has given by now; warns when they pass what was claimed."""
    if given <= claimed < given + more:
        warnings.warn(
            f"DataLoader: the length of the IterableDataset was reported to be {claimed} (by len(loader)), but {given + more} samples have been fetched; "
            "with workers each of them reads the whole stream, unless the dataset's __iter__ gives each its share by get_worker_info()",
            stacklevel=3,
        )
    return given + more


def _collate_batch(collate: Callable[[Any], Any], samples: Any, indices: Any, word: str = "dataset[{!r}]") -> Any:
    """The batch. An error of default_collate's is raised with the samples' indices in the dataset."""
    try:
        return collate(samples)
    except (ValueError, TypeError) as error:
        positions = getattr(error, "samples", None)
        if positions is None:
            raise
        names = list(indices)
        described = ", ".join(f"sample {i} is {word.format(names[i])}" for i in dict.fromkeys(positions) if i < len(names))
        raise type(error)(f"{error} ({described})") from error
