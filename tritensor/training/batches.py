"""Batches of an epoch, from any one on: the same whether or not the earlier ones were read; facts about batches."""

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
from tritensor.training.generators import Stream, mix_words

_CHUNK = 64  # index lists that are drawn at a time


def iterate_batches(loader: Iterable[Any], seeds: dict[str, Any], epoch: int, start: int = 0) -> Iterator[Any]:
    """Batch `start` of an epoch and those behind it.

    The order depends on the seeds and the epoch alone, and a dataset's draws for a batch on these and the batch's number; the program's
    generators do not move. Of a DataLoader over samples by index the earlier batches are not even read; other loaders are read from the start.
    """
    given = {id(g): g for part in _loader_parts(loader) if isinstance(g := getattr(part, "generator", None), Generator)}
    own = [g for g in given.values() if g is not default_generator]
    for part in _loader_parts(loader):
        if callable(tell := getattr(part, "set_epoch", None)):  # DistributedSampler and the like order by the epoch
            tell(epoch)
    order = Stream(seeds, own).at("order", epoch)
    if isinstance(loader, DataLoader) and _iterates_plainly(type(loader)) and not loader._streams:
        if loader.num_workers:  # the seeds go to the workers with each task
            yield from _iterate_by_workers(loader, seeds, epoch, _draw_indices(loader._index_sampler, order, start))
            return
        read, reading = loader._make_reader(), Stream(seeds, own)
        draws = type(loader.dataset) is not TensorDataset or loader.collate_fn is not default_collate  # else 60 us can be saved
        for number, indices in _draw_indices(loader._index_sampler, order, start):
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


def _iterate_by_workers(loader: DataLoader, seeds: dict[str, Any], epoch: int, drawn: Iterator[tuple[int, Any]]) -> Iterator[Any]:
    """The batches that worker processes make of (number, indices): each enters the batch's stream itself, so that they are the same as without."""
    draws = type(loader.dataset) is not TensorDataset or loader.collate_fn is not default_collate
    tasks = ((indices, Reading(seeds, epoch, number) if draws else None) for number, indices in drawn)
    found = loader._iterate_workers(mix_words((seeds["tritensor"], "workers", epoch)) >> 1, tasks)
    try:
        yield from found
    finally:
        found.close()  # a loop that breaks off: the tasks ahead are dropped, the workers stay where they persist


class Reading(NamedTuple):
    """Context of a worker that reads a batch: the batch's own stream of random numbers; `set_epoch` of the dataset is called once an epoch."""

    seeds: dict[str, Any]
    epoch: int
    number: int

    def __call__(self, dataset: Any) -> Stream:
        if callable(tell := getattr(dataset, "set_epoch", None)) and _worker_state.get("epoch") != (id(dataset), self.epoch):
            _worker_state["epoch"] = id(dataset), self.epoch  # a worker that persists has the dataset of an epoch before
            tell(self.epoch)
        own = getattr(dataset, "generator", None)
        own = [own] if isinstance(own, Generator) and own is not default_generator else []  # the global one is in every stream already
        if _worker_state.get("seeds") != (self.seeds, own):
            _worker_state["seeds"], _worker_state["stream"] = (self.seeds, own), Stream(self.seeds, own)
        found: Stream = _worker_state["stream"]
        return found.at("batch", self.epoch, self.number)


_worker_state: dict[str, Any] = {}  # in a worker: its stream, and the epoch that its dataset has been given


def _draw_indices(sampler: Iterable[Any], order: Stream, start: int) -> Iterator[tuple[int, Any]]:
    """(number, indices) of each batch from `start` on."""
    with order:
        source = enumerate(iter(sampler))
    while True:
        with order:
            some = list(itertools.islice(source, _CHUNK))
        if not some:
            return
        yield from (pair for pair in some if pair[0] >= start)


def _iterates_plainly(kind: type[DataLoader]) -> bool:
    """Whether a loader's class iterates as DataLoader does, with no way of its own."""
    return kind.__iter__ is DataLoader.__iter__ and kind._get_iterator is DataLoader._get_iterator


def _loader_parts(loader: Any) -> list[Any]:
    """The loader, its samplers and its dataset."""
    inside = getattr(loader, "batch_sampler", None)
    found = [loader, inside, getattr(loader, "sampler", None), getattr(inside, "sampler", None), getattr(loader, "dataset", None)]
    return list({id(part): part for part in found if part is not None}.values())


def is_movable(x: Any) -> bool:
    """Whether an object goes to a device as a whole: a tensor, a packed sequence."""
    return callable(getattr(x, "to", None))


def count_samples(batch: Any) -> int:
    """The number of samples of a batch: the first size of its first tensor; 1 where there is none."""
    first = next((x for x in tree_leaves(batch) if isinstance(x, Tensor)), None)
    return max(1, len(first)) if first is not None and first.ndim else 1  # weights of a mean: 0 would divide by nothing


def count_batches(loader: Any) -> int | None:
    """The number of batches of an epoch; None where the loader does not know."""
    try:
        return len(loader)
    except TypeError:
        return None


def describe(x: Any) -> str:
    """An object in a few words, for messages."""
    if isinstance(x, Tensor):
        return f"a Tensor {tuple(x.shape)}"
    name = f"class {x.__name__}" if isinstance(x, type) else type(x).__name__
    size = f" of {len(x)}" if isinstance(x, tuple | list | dict) else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{size}"
