"""Many small jobs in forked processes: kernels need no pickling, and a process that dies costs only the job it was at."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

BATCH = 24  # jobs of one process: a fork costs about as much as a tenth of a job


class Died(NamedTuple):
    """A job whose process ended without an answer: the compiler crashed, or the machine had no memory left."""

    exitcode: int | None

    def __str__(self) -> str:
        return f"the process died (exit code {self.exitcode})"


def _work(work: Callable[[Any], Any], jobs: Sequence[Any], numbers: Sequence[int], answers: Connection) -> None:
    for n in numbers:
        answers.send((n, work(jobs[n])))
    answers.close()


def each(work: Callable[[Any], Any], jobs: Sequence[Any], processes: int | None = None) -> Iterator[tuple[int, Any]]:
    """(place of the job, work(job)) for every job, in the order in which they end; a Died in place of what a dead process owed.

    `processes`: how many at a time (None: one for each core this process may use). `work` should not raise: an exception ends the
    process like a crash. Its results are pickled, jobs are not.
    """
    fork = multiprocessing.get_context("fork")
    todo = [list(range(i, min(i + BATCH, len(jobs)))) for i in range(0, len(jobs), BATCH)]
    todo.reverse()
    running: dict[Connection, tuple[Any, list[int]]] = {}
    try:
        while todo or running:
            while todo and len(running) < (processes or len(os.sched_getaffinity(0))):
                numbers = todo.pop()
                here, there = fork.Pipe(duplex=False)
                process = fork.Process(target=_work, args=(work, jobs, numbers, there), daemon=True)
                process.start()
                there.close()
                running[here] = (process, numbers)
            for answers in wait(list(running)):
                assert isinstance(answers, Connection)
                process, numbers = running[answers]
                try:
                    n, result = answers.recv()
                except EOFError:  # all sent, or dead
                    del running[answers]
                    process.join()
                    if numbers:
                        yield numbers[0], Died(process.exitcode)
                        if numbers[1:]:
                            todo.append(numbers[1:])
                else:
                    numbers.remove(n)
                    yield n, result
    finally:  # an interrupted run leaves nobody behind
        for process, _ in running.values():
            process.terminate()
