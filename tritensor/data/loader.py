"""DataLoader: batches of a dataset in the order of a sampler."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tritensor import cuda
from tritensor.data.collate import default_collate, default_convert, pinned
from tritensor.data.dataset import IterableDataset, batch_reader, samples_of
from tritensor.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from tritensor.random import Generator

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")  # what the batches were planned with


def get_worker_info() -> None:
    """What a worker process knows of itself; None in the main process, and there is no other yet."""
    return


class DataLoader:
    """An iterable over the batches of a dataset, in this process.

    Args:
        dataset: anything with `__getitem__` and `__len__`, or an IterableDataset.
        batch_size: samples in a batch; None hands out single samples, uncollated.
        shuffle: a new random order each epoch, set by the generator.
        sampler: an iterable of indices instead of `shuffle`; `batch_sampler`: one of lists of indices.
        num_workers: 0; the batches are made in this process.
        collate_fn: `(list of samples) -> batch`; `default_collate` where not given, `default_convert` for single samples.
        pin_memory: hand out batches in pinned host memory, so that `x.to("cuda", non_blocking=True)` copies while the host goes on;
            without a GPU it warns, and the batches are ordinary ones.
        drop_last: leave out a shorter last batch.
        generator: what sets the order; tritensor's default generator (`manual_seed`) where not given.
        timeout, worker_init_fn, pin_memory_device, in_order: they speak of worker processes only; without workers they have no effect.
        multiprocessing_context, prefetch_factor, persistent_workers: refused without workers, as in PyTorch.

    A dataset may offer to read many samples at once (`__getitems__`) or to make the whole batch (`__getbatch__`), as TensorDataset does.

    Raises:
        ValueError: options that exclude each other, or `num_workers` above 0; an attribute that sets the batches is changed afterwards.
    """

    _ready = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers != 0:
            raise ValueError(f"DataLoader: num_workers={num_workers}: worker processes are not there yet; use num_workers=0")
        if timeout < 0:
            raise ValueError(f"DataLoader: timeout {timeout} is negative; give seconds, 0 for none")
        for name, given in (
            ("prefetch_factor", prefetch_factor),
            ("multiprocessing_context", multiprocessing_context),
            ("persistent_workers", persistent_workers or None),
        ):
            if given is not None:
                raise ValueError(f"DataLoader: {name} is for worker processes, and there are none; leave it out")
        self._pins = bool(pin_memory) and cuda.is_available()
        if pin_memory and not self._pins:
            warnings.warn(f"DataLoader: pin_memory=True has no effect here: {cuda.why()}", stacklevel=2)
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.persistent_workers = persistent_workers
        self.prefetch_factor = prefetch_factor
        self.multiprocessing_context = multiprocessing_context
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self.generator = generator
        self._streams = isinstance(dataset, IterableDataset)
        self._check(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if sampler is None and not self._streams:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None and not self._streams:
            assert sampler is not None
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif batch_sampler is not None:
            batch_size, drop_last = None, False
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn if collate_fn is not None else default_collate if batched else default_convert
        self._ready = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized; make a new one")
        super().__setattr__(name, value)

    def _check(self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
        if batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0):
            raise ValueError(
                f"DataLoader: batch_size {batch_size!r} is not a positive integer (None hands out single samples); give 1 or more"
            )
        if self._streams and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader: an IterableDataset has no indices, so shuffle, sampler and batch_sampler cannot be given; shuffle inside it"
            )
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler and shuffle=True both set the order; give one")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler makes whole batches; leave out batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last needs batches; give a batch_size")

    def __iter__(self) -> Iterator[Any]:
        if self._streams:
            return map(pinned, self._stream()) if self._pins else self._stream()
        return map(self._reader(), self._index_sampler)

    @property
    def _index_sampler(self) -> Iterable[Any]:
        """What says which samples come next: lists of indices, or single ones."""
        found = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert found is not None, "an IterableDataset has no indices"
        return found

    def _reader(self) -> Callable[[Any], Any]:
        """What makes a batch of what the index sampler gives."""
        dataset, collate, whole = self.dataset, self.collate_fn, None
        if self.batch_sampler is None:
            read: Callable[[Any], Any] = lambda index: collate(dataset[index])  # noqa: E731
        else:
            whole = batch_reader(dataset) if collate is default_collate else None
            read = whole if whole is not None else lambda indices: collate(samples_of(dataset, indices))
        return (lambda indices: pinned(read(indices))) if self._pins else read

    def _stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        """Batches in an epoch. Raises TypeError where the dataset or sampler has no length."""
        if not self._streams:
            return len(self._index_sampler)  # type: ignore[arg-type]
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
