"""Two libraries timed in turn, each in a process of its own: threads that the one leaves spinning after its work are not in the other's way.

Inside one process a BLAS thread goes on asking for work for tens of milliseconds after a product, and takes a core from whoever comes next:
with two threads on two cores a step of PyTorch's took up to five times as long beside ours as alone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from bench.cpu.timing import Paired, medians, once

REST = 0.15  # seconds before a turn, in which the other's threads go to sleep
ROUNDS = 9


def _serve(answers: Connection, build: Callable[..., Callable[[], object]], given: tuple[Any, ...]) -> None:
    """Builds what is timed and answers numbers of calls with the seconds that one took."""
    run = build(*given)
    run()
    run()
    while (calls := answers.recv()) is not None:
        answers.send(once(run, calls))


class Timed:
    """`build(*given)` called in a process of its own, which inherits the environment and nothing else. A context."""

    def __init__(self, build: Callable[..., Callable[[], object]], *given: Any) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, there = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(there, build, given), daemon=True)
        self._process.start()
        there.close()

    def once(self, calls: int) -> float:
        """Seconds that one of so many calls took."""
        try:
            self._pipe.send(calls)
            return float(self._pipe.recv())
        except (EOFError, OSError) as error:
            raise RuntimeError("bench: the process that was timed has ended; what it said stands above") from error

    def __enter__(self) -> Timed:
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self._pipe.send(None)
        self._process.join()


def paired(
    build: Callable[..., Callable[[], object]], ours: tuple[Any, ...], peer: tuple[Any, ...] | None, seconds: float = 0.0, calls: int = 0, rounds: int = ROUNDS
) -> Paired:  # fmt: skip
    """build(*ours) and build(*peer) timed in alternating rounds of so many calls, or that take about `seconds` beside the rests."""
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(Timed(build, *given)) for given in (ours, peer) if given is not None]
        calls = calls or max(1, int(seconds / rounds / sum(side.once(3) for side in sides)))

        def once_rested(side: Timed) -> float:
            if len(sides) > 1:
                time.sleep(REST)
            return side.once(calls)

        return medians([[once_rested(side) for side in sides] for _ in range(rounds)])
