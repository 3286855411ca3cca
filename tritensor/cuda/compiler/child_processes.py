"""Jobs in forked processes: kernels need no pickling, and a process that dies costs only the job it was at."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

RENEWED = 48  # jobs after which a process makes room for a new one: a compiler keeps what it once allocated


class Died(NamedTuple):
    """A job whose process ended without an answer: the compiler crashed, or the machine had no memory left."""

    exitcode: int | None
    seconds: float | None = None  # that it was given, where it was ended for taking longer

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"the compiler took longer than {self.seconds:.0f} s"
        if self.exitcode is not None and self.exitcode < 0:
            return f"the process died (killed by signal {-self.exitcode}: is there memory enough?)"
        return f"the process died (exit code {self.exitcode})"


def _answer(work: Callable[[Any], Any], jobs: Sequence[Any], pipe: Connection) -> None:
    """Answer each number that comes with the result of that job."""
    while True:
        try:
            n = pipe.recv()
        except (EOFError, ConnectionError):  # the parent is done, or gone
            return
        answer = work(jobs[n])
        try:
            pipe.send(answer)
        except ConnectionError:
            return


class _Child:
    """A process that works, one job at a time; `at` is the one it is at."""

    def __init__(self, work: Callable[[Any], Any], jobs: Sequence[Any], others: Sequence[Connection]) -> None:
        # kernels are not pickled: a child has them, and their sources, as they were
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=self._run, args=(work, jobs, theirs, others), daemon=True)
        self.process.start()
        theirs.close()
        self.at, self.done, self.since = -1, 0, 0.0

    def _run(self, work: Callable[[Any], Any], jobs: Sequence[Any], pipe: Connection, others: Sequence[Connection]) -> None:
        for parents in (self.pipe, *others):  # inherited: while one is open here, its child does not see that the parent is gone
            parents.close()
        _answer(work, jobs, pipe)

    def give(self, n: int) -> None:
        self.at, self.since = n, time.monotonic()
        self.pipe.send(n)

    def dismiss(self) -> None:
        self.pipe.close()
        self.process.join()


def each(
    work: Callable[[Any], Any], jobs: Sequence[Any], processes: int | None = None, seconds: float | None = None
) -> Iterator[tuple[int, Any]]:
    """(place of the job, work(job)) for every job, in the order in which they end; a Died in place of what a dead process owed.

    `processes`: how many at a time (None: one for each core this process may use). `seconds`: how long a job may take,
    then its process is ended. `work` should not raise: an exception ends the
    process like a crash. Its results are pickled, jobs are not. The caller must not have started the GPU's driver, which does not live through a fork.
    """
    most = processes or len(os.sched_getaffinity(0))
    todo = list(reversed(range(len(jobs))))
    running: dict[Any, _Child] = {}
    try:
        while todo or running:
            while todo and len(running) < most:
                child = _Child(work, jobs, list(running))
                running[child.pipe] = child
                child.give(todo.pop())
            ready: Any
            for ready in wait(list(running), None if seconds is None else 1.0):
                child = running[ready]
                n = child.at
                try:
                    answer = ready.recv()
                except (EOFError, ConnectionError):
                    child.process.join()
                    del running[ready]
                    yield n, Died(child.process.exitcode)
                    continue
                child.done += 1
                if todo and child.done < RENEWED:
                    child.give(todo.pop())
                else:
                    del running[ready]
                    child.dismiss()
                yield n, answer
            for pipe in [p for p, child in running.items() if seconds is not None and time.monotonic() - child.since > seconds]:
                child = running.pop(pipe)
                child.process.kill()
                child.process.join()
                yield child.at, Died(child.process.exitcode, seconds)
    finally:  # an interrupted run leaves nobody behind
        for child in running.values():
            child.process.terminate()
