"""Iteration over a loader with workers: the pool started, tasks handed out ahead, batches handed over in order."""

from __future__ import annotations

import itertools
import multiprocessing
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from tritensor.data.batch_reader import count_samples
from tritensor.data.collate import pin_tensors
from tritensor.data.iterators import MultiProcessIterator
from tritensor.data.loader_options import PREFETCH
from tritensor.data.workers.dataset_pickle import CannotBeSent, DatasetPickle
from tritensor.data.workers.pin_thread import PinnedIterator
from tritensor.data.workers.process import choose_context, refuse_nested_workers
from tritensor.data.workers.worker_pool import Interrupted, Reply, WorkerPool
from tritensor.ground.errors import ForkedWorkersWarning

Task = tuple[Any, Any]  # (indices, or None for the next batch of a stream; a context manager to read them in, or None)


class WorkerIterator(MultiProcessIterator):
    """The batches of an epoch. Tasks go to the workers in turn, so that which worker makes a batch is set by its number; `in_order=False` gives
    them to whoever has least to do, and hands batches over as they come."""

    def __init__(self, loader: Any, pool: WorkerPool, base_seed: int, tasks: Iterator[Task]) -> None:
        self._loader, self._pool, self._tasks = loader, pool, tasks
        self._in_order, self._timeout, self._ends_workers = loader.in_order, loader.timeout, not loader.persistent_workers
        self._ready: dict[int, Reply] = {}
        self._pending: dict[int, int] = {}  # number of a task that has not been handed over: the worker's rank
        self._load = [0] * len(pool.workers)
        self._active = list(range(len(pool.workers)))  # those that have not come to the end of their stream
        self._turn = self._sent = self._next = 0
        # Samples of a stream, as its length has said: a warning comes with the first batch beyond.
        self._claimed: int | None = loader._claimed
        self._given = 0  # samples of it so far
        self._done = False
        self._tag = pool.begin_iteration(base_seed)
        self._finalizer = weakref.finalize(self, pool.forget_iteration, self._tag)
        self._finalizer.atexit = False
        for _ in range((loader.prefetch_factor or PREFETCH) * len(self._active)):
            self._submit_next()

    def __iter__(self) -> WorkerIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def _submit_next(self) -> None:
        """Hand out the next task, if there is one."""
        task = next(self._tasks, None) if self._active else None
        if task is None:
            return
        if self._in_order:
            rank = self._active[self._turn % len(self._active)]
            self._turn = (self._turn + 1) % len(self._active)
        else:
            rank = min(self._active, key=self._load.__getitem__)
        number = self._sent
        self._sent += 1
        self._pending[number] = rank
        self._load[rank] += 1
        self._pool.submit_task(rank, self._tag, number, *task)

    def __next__(self) -> Any:
        self._pool.require_own_process()
        while not self._done:
            reply = self._take_next()
            if reply is None:
                self.close()
                break
            self._submit_next()
            value = reply.value()
            if reply.kind == "error":
                value.reraise()
            if self._claimed is not None:
                self._given = count_samples(self._claimed, self._given, reply.samples)
            return value
        raise StopIteration

    def _take_next(self) -> Reply | None:
        """The next reply, waited for; None where no task is under way."""
        while self._pending:
            if self._in_order:
                while self._next not in self._pending:  # ends of streams leave gaps
                    self._next += 1
                wanted = self._next
            else:
                wanted = next(iter(self._ready), -1)
            if wanted in self._ready:
                del self._pending[wanted]
                return self._ready.pop(wanted)
            self._receive_replies()
        return None

    def _receive_replies(self) -> None:
        try:
            inbox = self._pool.wait_for_reply(self._tag, self._timeout)
        except Interrupted:
            self._pending.clear()
            return
        while inbox:
            number, reply = inbox.popleft()
            rank = self._pending[number]
            self._load[rank] -= 1
            if reply.kind == "end":
                self._end_stream(rank, number)
            else:
                self._ready[number] = reply

    def _end_stream(self, rank: int, number: int) -> None:
        """Let the other workers go on where one's stream has ended."""
        del self._pending[number]
        if rank in self._active:
            at = self._active.index(rank)
            self._active.remove(rank)
            self._turn -= at < self._turn
        self._submit_next()

    def interrupt(self) -> None:
        """End it while another thread waits for its next batch."""
        self._done = True
        self._pool.interrupt(self._tag)

    def close(self) -> None:
        """End this iteration, and with it the workers unless they persist."""
        self._done = True
        self._ready.clear()
        self._pending.clear()
        self._finalizer()
        if self._ends_workers:
            self._pool.close()

    def _shutdown_workers(self) -> None:
        """As libraries end an iteration for good: with workers that persist, too."""
        self.close()
        self._pool.close()


_warned: set[str] = set()  # reasons for which workers were forked


def start_workers(loader: Any, base_seed: int) -> WorkerPool:
    """Start a loader's workers: spawned where nobody has chosen, or forked, with a warning, where the dataset or a function cannot be sent to new
    processes. Raises PicklingError, where another way was chosen, and RuntimeError."""
    refuse_nested_workers()
    dataset_pickle = DatasetPickle((loader.dataset, loader.collate_fn, loader.worker_init_fn))
    settings = {
        "streams": loader._streams,
        "batched": loader.batch_sampler is not None,
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
    }
    context = choose_context(loader.multiprocessing_context)
    if context is None and not loader._forks:
        try:
            return WorkerPool(multiprocessing.get_context("spawn"), loader.num_workers, dataset_pickle, base_seed, settings)
        except CannotBeSent as error:  # before any process was started
            _warn_once(str(error))
            loader._forks = True
    return WorkerPool(context or multiprocessing.get_context("fork"), loader.num_workers, dataset_pickle, base_seed, settings)


def _warn_once(why: str) -> None:
    if why not in _warned:
        _warned.add(why)
        warnings.warn(
            f"{why}. Its workers are forked, as PyTorch's are: copies of this program, in which device cuda cannot be used",
            ForkedWorkersWarning,
            stacklevel=6,
        )


def iterate_workers(loader: Any, pool: WorkerPool, base_seed: int, tasks: Iterator[Task] | None) -> Any:
    """The batches of one epoch, pinned where the loader pins."""
    if tasks is None:  # of a stream: the next batch, for ever
        tasks = itertools.repeat((None, None)) if loader._streams else ((indices, None) for indices in loader._index_sampler)
    iterator = WorkerIterator(loader, pool, base_seed, tasks)
    return PinnedIterator(iterator, pin_tensors) if loader._pins else iterator
