"""Reading a dataset: what makes a batch of indices, or of what a stream gives next, and says which samples do not fit together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tritensor.data.collate import default_collate
from tritensor.data.dataset import batch_reader, samples_of
from tritensor.random import default_generator

Read = Callable[[Any], Any]


def reader(dataset: Any, collate: Callable[[Any], Any], batched: bool, between: Callable[[], None] | None = None) -> Read:
    """What makes a batch of a list of indices, or where batches are not `batched` a sample of one. `between` is called before each sample is read."""
    if not batched:
        return lambda index: collate(dataset[index])
    whole = batch_reader(dataset) if collate is default_collate else None
    if whole is not None:
        return whole
    if between is None or callable(getattr(dataset, "__getitems__", None)):
        return lambda indices: _collated(collate, samples_of(dataset, indices), indices)
    pause = between

    def read(indices: Sequence[Any]) -> Any:
        samples = []
        for index in indices:
            pause()
            samples.append(dataset[index])
        return _collated(collate, samples, indices)

    return read


def apart(read: Read, seed: int) -> Read:
    """A reader in this process, whose dataset draws from tritensor's generator as worker 0 would, seeded by `seed`; the program's own goes on as if
    nothing had been drawn. So neither the next epoch's order nor what the model draws depends on where the data is read."""
    place = seed & 0xFFFFFFFFFFFFFFFF, 0

    def inside(asked: Any) -> Any:
        nonlocal place
        g = default_generator
        outside = g.key, g.offset
        g.key, g.offset = place
        try:
            return read(asked)
        except StopIteration as error:  # would end the loop without a word
            raise RuntimeError(
                f"DataLoader: Caught StopIteration, which the dataset or collate_fn raised for {asked!r}; only what iterates ends by it: raise another error"
            ) from error
        finally:
            place = g.key, g.offset
            g.key, g.offset = outside

    return inside


def stream(dataset: Iterable[Any], collate: Callable[[Any], Any], batch_size: int | None, drop_last: bool) -> Iterator[tuple[int, Any]]:
    """(how many samples, batch) of an IterableDataset in turn; where there is no size its samples, one by one."""
    samples = iter(dataset)
    if batch_size is None:
        for sample in samples:
            yield 1, collate(sample)
        return
    first = 0
    while batch := list(itertools.islice(samples, batch_size)):
        if len(batch) == batch_size or not drop_last:
            yield len(batch), _collated(collate, batch, range(first, first + len(batch)), "number {} of the stream")
        first += len(batch)


def warned(source: Iterator[tuple[int, Any]], claimed: int | None) -> Iterator[Any]:
    """The batches of a stream; a warning once it gives more samples than `claimed`, what `len(loader)` was told."""
    given = 0
    for samples, batch in source:
        if claimed is not None:
            given = noted(claimed, given, samples)
        yield batch


def noted(claimed: int, given: int, more: int) -> int:
    """How many samples a stream has given now; warns when they pass what was claimed."""
    if given <= claimed < given + more:
        warnings.warn(
            f"DataLoader: the length of the IterableDataset was reported to be {claimed} (by len(loader)), but {given + more} samples have been fetched; "
            "with workers each of them reads the whole stream, unless the dataset's __iter__ gives each its share by get_worker_info()",
            stacklevel=3,
        )
    return given + more


def _collated(collate: Callable[[Any], Any], samples: Any, indices: Any, word: str = "dataset[{!r}]") -> Any:
    """The batch. An error of default_collate's is told with what the samples are called in the dataset."""
    try:
        return collate(samples)
    except (ValueError, TypeError) as error:
        positions = getattr(error, "samples", None)
        if positions is None:
            raise
        names = list(indices)
        told = ", ".join(f"sample {i} is {word.format(names[i])}" for i in dict.fromkeys(positions) if i < len(names))
        raise type(error)(f"{error} ({told})") from error
