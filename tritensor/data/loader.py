"""DataLoader: batches of a dataset in the order of a sampler, made in this process or by worker processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tritensor import cuda
from tritensor.data.batch_reader import isolate_generator, make_reader, read_stream, warn_when_longer
from tritensor.data.collate import default_collate, default_convert, pin_tensors
from tritensor.data.dataset import IterableDataset
from tritensor.data.iterators import DatasetKind, SingleProcessIterator
from tritensor.data.loader_options import check_batches, check_workers, count_workers
from tritensor.data.sampler import BatchSampler, ConstantSampler, RandomSampler, SequentialSampler, draw_seed
from tritensor.random import Generator

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")  # the batches were planned with these


def _as_it_is(batch: Any) -> Any:
    return batch


class DataLoader:
    """An iterable over the batches of a dataset.

    Args:
        dataset: anything with `__getitem__` and `__len__`, or an IterableDataset.
        batch_size: samples in a batch; None hands out single samples, uncollated.
        shuffle: a new random order each epoch, set by the generator.
        sampler: an iterable of indices instead of `shuffle`.
        batch_sampler: an iterable of lists of indices instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: processes that make batches; 0 makes them in this process, "auto" takes one for each core that this process may use
            but one, 8 at most.
        collate_fn: `(list of samples) -> batch`; `default_collate` where not given, `default_convert` for single samples.
        pin_memory: hand out batches in pinned host memory, so that `x.to("cuda", non_blocking=True)` copies while the host goes on; with workers a
            thread pins the next batches meanwhile. Without a GPU it warns, and the batches are ordinary ones.
        drop_last: leave out a shorter last batch; with workers each of an IterableDataset's.
        timeout: seconds to wait for a batch of the workers; 0 waits for ever. A worker that ends is noticed at once, whatever the timeout.
        worker_init_fn: called with its number in each worker, when it has been seeded.
        multiprocessing_context: "spawn", "fork", "forkserver" or a context of them; where it is not given, what
            `tritensor.multiprocessing.set_start_method` has chosen, else "spawn". Spawned workers are given dataset, collate_fn and worker_init_fn by
            pickle, and import the program's file where these are defined in it: what it does stands under `if __name__ == "__main__":`. What cannot be
            pickled (a class or function that a function defines, a lambda, what is defined in a notebook) is forked where no way was chosen; a warning
            says so.
        generator: what sets the order and the workers' seeds; tritensor's default generator (`manual_seed`) where not given.
        prefetch_factor: batches that each worker makes ahead, 2 where not given.
        persistent_workers: keep the workers, and their datasets, for the next epochs. They are seeded anew for each, as new ones would be.
        pin_memory_device: "" or a cuda device: the pinned memory is the same for all.
        in_order: False hands batches over as they come.

    The order of the samples is set by the seed alone, the same for any number of workers. Worker w seeds Python's, numpy's and tritensor's
    generators in each epoch by a seed that the loader draws plus w (numpy's by its SeedSequence of the two), as PyTorch does. Large tensors
    come by shared memory that is used again when the batch has died; `default_collate` writes batches there, so that they are copied by nobody.

    A dataset may offer to read many samples at once (`__getitems__`) or to make the whole batch (`__getbatch__`), as TensorDataset does.

    Raises:
        ValueError: options that exclude each other; an attribute that sets the batches is changed afterwards.
        pickle.PicklingError: workers cannot be given the dataset or a function in the way that was chosen; when iteration begins.
        RuntimeError: a worker was killed, ended, or did not answer in time; its name and what it was making are told.
        the class of a worker's own error, with its traceback: the loop may go on to the next batch.

    >>> x = tt.arange(10)
    >>> for numbers, squares in tt.data.DataLoader(tt.data.TensorDataset(x, x * x), batch_size=4):
    ...     print(numbers, squares)
    tensor([0, 1, 2, 3]) tensor([0, 1, 4, 9])
    tensor([4, 5, 6, 7]) tensor([16, 25, 36, 49])
    tensor([8, 9]) tensor([64, 81])
    """

    multiprocessing_context: Any = None  # of the class, too: mocks of a loader have its attributes
    _ready = False
    _forks = False  # new processes could not be given the dataset or a function

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None, num_workers: int | str = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None, generator: Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        num_workers = count_workers(num_workers)
        prefetch_factor = check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context, pin_memory_device
        )
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
        check_batches(self._streams, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if self._streams:
            sampler = ConstantSampler()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]  # a stream's sampler gives None for each
        elif batch_sampler is not None:
            batch_size, drop_last = None, False
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn if collate_fn is not None else default_collate if batched else default_convert
        self._claimed: int | None = None  # samples of a stream, as len() has told
        self._iterator: Any = None  # the workers that persist
        self._ready = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized; make a new one")
        super().__setattr__(name, value)

    def __class_getitem__(cls, item: Any) -> Any:
        """`DataLoader[Batch]` in annotations."""
        return cls

    def __getstate__(self) -> dict[str, Any]:
        """The state without the worker processes: another process starts its own."""
        return {**self.__dict__, "_iterator": None}

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> Iterator[Any]:
        """The iterator over an epoch. Libraries override it to see when one begins."""
        base_seed = draw_seed(self.generator)  # whatever the number of workers, so that the order is the same
        if self.num_workers:
            return self._iterate_workers(base_seed)
        if self._streams:
            batches = self._iterate_stream(base_seed)
            return SingleProcessIterator.over(pin_tensors if self._pins else _as_it_is, batches)
        return SingleProcessIterator.over(isolate_generator(self._make_reader(), base_seed), self._index_sampler)

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than processors, as the constructor does."""
        count_workers(self.num_workers)

    def _iterate_stream(self, base_seed: int) -> Iterator[Any]:
        """The batches of a stream that is read in this process."""
        batches = warn_when_longer(read_stream(self.dataset, self.collate_fn, self.batch_size, self.drop_last), self._claimed)
        following, end = isolate_generator(lambda end: next(batches, end), base_seed), object()
        while (batch := following(end)) is not end:
            yield batch

    def _iterate_workers(self, base_seed: int, tasks: Iterator[Any] | None = None) -> Any:
        """An iteration by worker processes: those that persist, or new ones. `tasks` are (indices, context manager to read them in), by default
        those of the sampler."""
        from tritensor.data.workers import iterator  # few programs need it

        pool = self._iterator
        if pool is None or not pool.alive:
            pool = iterator.start_workers(self, base_seed)
        if self.persistent_workers:
            self._iterator = pool
        return iterator.iterate_workers(self, pool, base_seed, tasks)

    @property
    def _index_sampler(self) -> Iterable[Any]:
        """The iterable that says which samples come next: lists of indices, or single ones."""
        found = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert found is not None
        return found

    @property
    def _dataset_kind(self) -> int:
        """Whether samples are read by index, or in turn."""
        return DatasetKind.Iterable if self._streams else DatasetKind.Map

    @property
    def _auto_collation(self) -> bool:
        """Whether batches are made of indices or of samples of a stream."""
        return self.batch_sampler is not None

    def _make_reader(self) -> Callable[[Any], Any]:
        """A function that makes a batch of an entry of the index sampler, in this process."""
        read = make_reader(self.dataset, self.collate_fn, self.batch_sampler is not None)
        return (lambda indices: pin_tensors(read(indices))) if self._pins else read

    def __len__(self) -> int:
        """Batches in an epoch. Raises TypeError where the dataset or sampler has no length."""
        if not self._streams:
            return len(self._index_sampler)  # type: ignore[arg-type]
        n = self._claimed = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
