"""One iteration over a loader with workers: tasks handed out ahead, batches handed over in order."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from tritensor.data.batch_reader import noted
from tritensor.data.workers.worker_pool import Crew, Heard, Interrupted

Task = tuple[Any, Any]  # indices (None: the next of a stream), and what is entered while they are read (None: nothing)


class Course(NamedTuple):
    """How an iteration runs: batches ahead for each worker, whether they keep their order, seconds to wait for one (0: any), whether the workers
    end with it."""

    ahead: int
    in_order: bool
    timeout: float
    ends: bool


class WorkerIterator:
    """The batches of an epoch. Tasks go to the workers in turn, so that which worker makes a batch is set by its number; `in_order=False` gives
    them to whoever has least to do, and hands batches over as they come."""

    def __init__(self, crew: Crew, base_seed: int, tasks: Iterator[Task], course: Course, length: Any = None) -> None:
        self._crew, self._course, self._tasks = crew, course, tasks
        self._length = length
        self._there: dict[int, Heard] = {}
        self._asked: dict[int, int] = {}  # number of a task that has not been handed over: the worker's rank
        self._load = [0] * len(crew.workers)
        self._active = list(range(len(crew.workers)))  # those that have not come to the end of their stream
        self._turn = self._sent = self._next = 0
        self._claimed: int | None = None  # samples of a stream, as its length has told
        self._given = 0  # samples of it so far
        self._done = False
        self._tag = crew.begin(base_seed)
        self._left = weakref.finalize(self, crew.forget, self._tag)
        self._left.atexit = False
        for _ in range(course.ahead * len(self._active)):
            self._ask()

    def __iter__(self) -> WorkerIterator:
        return self

    def __len__(self) -> int:
        return len(self._length)

    def _ask(self) -> None:
        """Hand out the next task, if there is one."""
        task = next(self._tasks, None) if self._active else None
        if task is None:
            return
        if self._course.in_order:
            rank = self._active[self._turn % len(self._active)]
            self._turn = (self._turn + 1) % len(self._active)
        else:
            rank = min(self._active, key=self._load.__getitem__)
        number = self._sent
        self._sent += 1
        self._asked[number] = rank
        self._load[rank] += 1
        self._crew.ask(rank, self._tag, number, *task)

    def __next__(self) -> Any:
        self._crew.need_own()
        while not self._done:
            heard = self._taken()
            if heard is None:
                self.close()
                break
            self._ask()
            value = heard.value()
            if heard.kind == "error":
                value.throw()
            if self._claimed is not None:
                self._given = noted(self._claimed, self._given, heard.samples)
            return value
        raise StopIteration

    def _taken(self) -> Heard | None:
        """What is next, waited for; None where nothing is under way."""
        while self._asked:
            if self._course.in_order:
                while self._next not in self._asked:  # ends of streams leave gaps
                    self._next += 1
                wanted = self._next
            else:
                wanted = next(iter(self._there), -1)
            if wanted in self._there:
                del self._asked[wanted]
                return self._there.pop(wanted)
            self._hear()
        return None

    def _hear(self) -> None:
        try:
            inbox = self._crew.wait(self._tag, self._course.timeout)
        except Interrupted:
            self._asked.clear()
            return
        while inbox:
            number, heard = inbox.popleft()
            rank = self._asked[number]
            self._load[rank] -= 1
            if heard.kind == "end":
                self._end_of(rank, number)
            else:
                self._there[number] = heard

    def _end_of(self, rank: int, number: int) -> None:
        """A worker's stream has ended: the others go on."""
        del self._asked[number]
        if rank in self._active:
            at = self._active.index(rank)
            self._active.remove(rank)
            self._turn -= at < self._turn
        self._ask()

    def expects(self, claimed: int) -> None:
        """Note how many samples a stream says that it has: a warning comes with the first batch that goes beyond."""
        self._claimed = claimed

    def interrupt(self) -> None:
        """End it while another thread waits for its next batch."""
        self._done = True
        self._crew.interrupt(self._tag)

    def close(self) -> None:
        """End this iteration, and with it the workers unless they persist."""
        self._done = True
        self._there.clear()
        self._asked.clear()
        self._left()
        if self._course.ends:
            self._crew.close()


def numbered(sampler: Any) -> Iterator[Task]:
    """The tasks of an index sampler."""
    return ((indices, None) for indices in sampler)


def endless() -> Iterator[Task]:
    """The tasks of streams: the next batch, for ever."""
    return itertools.repeat((None, None))
