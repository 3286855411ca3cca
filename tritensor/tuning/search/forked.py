"""Many compilations in forked processes: one that dies or hangs costs one job."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any, NamedTuple


class Lost(NamedTuple):
    """A job whose process ended or was ended without an answer, in words."""

    why: str


class _Worker:
    """A process that does one job at a time; `at` is the one it is at, since `since` (a monotonic time)."""

    def __init__(self, work: Callable[[Any], Any], jobs: Sequence[Any], others: list[Any]) -> None:
        fork = multiprocessing.get_context("fork")  # kernels and their constants need no pickling
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=self._run, args=(work, jobs, theirs, others), daemon=True)
        self.process.start()
        theirs.close()
        self.at, self.since = -1, 0.0

    def _run(self, work: Callable[[Any], Any], jobs: Sequence[Any], pipe: Any, others: list[Any]) -> None:
        for parents in (self.pipe, *others):  # inherited: while one is open here, its worker does not see that the parent is gone
            parents.close()
        while True:
            try:
                n = pipe.recv()
                pipe.send(work(jobs[n]))
            except (EOFError, ConnectionError, KeyboardInterrupt):  # the parent is done, or gone
                return

    def give(self, n: int) -> None:
        self.at, self.since = n, time.monotonic()
        self.pipe.send(n)


def each(
    work: Callable[[Any], Any], jobs: Sequence[Any], processes: int | None = None, seconds: float = 120.0
) -> Iterator[tuple[int, Any]]:
    """(place of the job, work(job)) in the order in which they end; a Lost for a job that ended its process or took longer than `seconds`.

    `work` must not raise: an exception ends its process like a crash. Results are pickled, jobs are not. The caller must not have started the
    GPU's driver, which does not live through a fork.
    """
    todo = list(reversed(range(len(jobs))))
    running: dict[Any, _Worker] = {}
    most = processes or len(os.sched_getaffinity(0))
    try:
        while todo or running:
            while todo and len(running) < most:
                worker = _Worker(work, jobs, list(running))
                running[worker.pipe] = worker
                worker.give(todo.pop())
            ready: Any
            for ready in wait(list(running), timeout=1.0):
                worker = running[ready]
                n = worker.at
                try:
                    result = ready.recv()
                except (EOFError, ConnectionError):
                    worker.process.join()
                    del running[ready]
                    yield n, Lost(f"the compiler's process died ({cause(worker.process.exitcode)})")
                    continue
                if todo:
                    worker.give(todo.pop())
                else:
                    ready.close()
                    worker.process.join()
                    del running[ready]
                yield n, result
            for pipe, worker in list(running.items()):
                if time.monotonic() - worker.since > seconds:
                    worker.process.kill()
                    worker.process.join()
                    del running[pipe]
                    yield worker.at, Lost(f"the compiler took longer than {seconds:.0f} s")
    finally:  # an interrupted run leaves nobody behind
        for worker in running.values():
            worker.process.kill()


def cause(code: int | None) -> str:
    """An exit code in words."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
