"""Batches: those of an epoch from any of them on, the same whether or not the earlier ones were read; what one is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

from tritensor.data.collate import default_collate
from tritensor.data.dataset import TensorDataset
from tritensor.data.loader import DataLoader
from tritensor.ground.pytree import tree_leaves
from tritensor.random import Generator, default_generator
from tritensor.tensor.core import Tensor
from tritensor.training.generators import Stream, mixed

_AHEAD = 64  # index lists that are drawn at a time


def batches(loader: Iterable[Any], seeds: dict[str, Any], epoch: int, start: int = 0) -> Iterator[Any]:
    """Batch `start` of an epoch and those behind it.

    The order depends on the seeds and the epoch alone, and what a dataset draws for a batch on these and the batch's number; the program's
    generators do not move. Of a DataLoader over samples by index the earlier batches are not even read; other loaders are read from the start.
    """
    own = _generators_of(loader)
    for part in _parts(loader):
        if callable(tell := getattr(part, "set_epoch", None)):
            tell(epoch)
    order = Stream(seeds, own).at("order", epoch)
    if isinstance(loader, DataLoader) and type(loader).__iter__ is DataLoader.__iter__ and not loader._streams:
        if loader.num_workers:
            yield from _by_workers(loader, seeds, epoch, _drawn(loader._index_sampler, order, start))
            return
        read, reading = loader._make_reader(), Stream(seeds, own)
        draws = type(loader.dataset) is not TensorDataset or loader.collate_fn is not default_collate  # else 60 us can be saved
        for number, indices in _drawn(loader._index_sampler, order, start):
            with reading.at("batch", epoch, number) if draws else nullcontext():
                batch = read(indices)
            yield batch
        return
    with order:
        source = iter(loader)
    end = object()
    for number in itertools.count():
        with order:
            batch = next(source, end)
        if batch is end:
            return
        if number >= start:
            yield batch


def _by_workers(loader: DataLoader, seeds: dict[str, Any], epoch: int, drawn: Iterator[tuple[int, Any]]) -> Iterator[Any]:
    """The batches that worker processes make of (number, indices): each enters the batch's stream itself, so that they are the same as without."""
    draws = type(loader.dataset) is not TensorDataset or loader.collate_fn is not default_collate
    tasks = ((indices, Reading(seeds, epoch, number) if draws else None) for number, indices in drawn)
    found = loader._iterate_workers(mixed((seeds["tritensor"], "workers", epoch)) >> 1, tasks)
    try:
        yield from found
    finally:
        found.close()


class Reading(NamedTuple):
    """What a worker enters while it reads a batch: the batch's own stream of random numbers; a dataset that has `set_epoch` is told the epoch."""

    seeds: dict[str, Any]
    epoch: int
    number: int

    def __call__(self, dataset: Any) -> Stream:
        if callable(tell := getattr(dataset, "set_epoch", None)) and _here.get("epoch") != (id(dataset), self.epoch):
            _here["epoch"] = id(dataset), self.epoch  # a worker that persists has the dataset of an epoch before
            tell(self.epoch)
        own = getattr(dataset, "generator", None)
        own = [own] if isinstance(own, Generator) and own is not default_generator else []
        if _here.get("seeds") != (self.seeds, own):
            _here["seeds"], _here["stream"] = (self.seeds, own), Stream(self.seeds, own)
        found: Stream = _here["stream"]
        return found.at("batch", self.epoch, self.number)


_here: dict[str, Any] = {}  # in a worker: its stream, and the epoch that it has told


def _drawn(sampler: Iterable[Any], order: Stream, start: int) -> Iterator[tuple[int, Any]]:
    """(number, indices) of each batch from `start` on."""
    with order:
        source = enumerate(iter(sampler))
    while True:
        with order:
            some = list(itertools.islice(source, _AHEAD))
        if not some:
            return
        yield from (pair for pair in some if pair[0] >= start)


def _parts(loader: Any) -> list[Any]:
    """The loader, and what it was made of."""
    inside = getattr(loader, "batch_sampler", None)
    found = [loader, inside, getattr(loader, "sampler", None), getattr(inside, "sampler", None), getattr(loader, "dataset", None)]
    return list({id(part): part for part in found if part is not None}.values())


def _generators_of(loader: Any) -> list[Generator]:
    """The generators that the loader and its parts were given."""
    found = {id(g): g for part in _parts(loader) if isinstance(g := getattr(part, "generator", None), Generator)}
    return [g for g in found.values() if g is not default_generator]


def moves(x: Any) -> bool:
    """Whether something goes to a device as a whole: a tensor, a packed sequence."""
    return callable(getattr(x, "to", None))


def samples_of(batch: Any) -> int:
    """How many samples a batch holds: the first size of its first tensor; 1 where there is none."""
    first = next((x for x in tree_leaves(batch) if isinstance(x, Tensor)), None)
    return max(1, len(first)) if first is not None and first.ndim else 1


def length(loader: Any) -> int | None:
    """How many batches an epoch has, where the loader knows."""
    try:
        return len(loader)
    except TypeError:
        return None


def kind_of(x: Any) -> str:
    """What something is, as messages say it."""
    if isinstance(x, Tensor):
        return f"a Tensor {tuple(x.shape)}"
    name = f"class {x.__name__}" if isinstance(x, type) else type(x).__name__
    length = f" of {len(x)}" if isinstance(x, tuple | list | dict) else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{length}"
