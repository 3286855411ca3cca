"""Timer: the time that a statement takes. It waits for the GPU, sets the number of threads, and warms up."""

from __future__ import annotations

import contextlib
import enum
import sys
import textwrap
import time
import timeit
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from tritensor.cuda.runtime import active
from tritensor.ground.errors import ArgumentError
from tritensor.llvm import threads
from tritensor.utils.benchmark.measurement import Measurement, TaskSpec

_MAX_RUNS = 10_000_000_000  # runs in one look at the clock


def timer() -> float:
    """Seconds of a clock, when all work of the current GPU that was used is done."""
    if active.started():  # no GPU is started only to be waited for
        from tritensor.cuda import synchronize

        synchronize()
    return time.perf_counter()


class Language(enum.Enum):
    """The language of a statement. PYTHON is served."""

    PYTHON = 0
    CPP = 1


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Within the block ops use n threads of the processor, where numpy's BLAS can be told."""
    if n < 1:
        raise ArgumentError(f"set_torch_threads: {n} threads; give 1 or more")
    found, before = threads.blas(), threads.count()
    if found is None or before == n:  # a BLAS that cannot be told runs with what it has
        yield
        return
    try:
        found.set(n)
        yield
    finally:
        found.set(before)


class Timer:
    """`Timer("x @ x", globals={"x": x}).blocked_autorange()` measures a statement.

    Args:
        stmt: the statement, or lines of them, as text.
        setup: what runs once before each look at the clock.
        global_setup: of statements in C++ alone; must stay empty.
        timer: gives seconds; the default waits for the GPU.
        globals: the names that the statement sees; this library is among them as `torch` and `tritensor`.
        label, sub_label, description, env: what a table of Compare calls it.
        num_threads: of the processor.
        language: PYTHON. Raises ArgumentError for C++, which nothing here compiles.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str) or not isinstance(setup, str):
            raise TypeError(
                f"Timer: stmt is a {type(stmt).__name__}, setup a {type(setup).__name__}; give the statements as text, what they use in globals="
            )
        if language not in (Language.PYTHON, "py", "python") or global_setup:
            raise ArgumentError("Timer: statements in C++ are not served; give Python as text")
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        names = dict(globals or {})
        front = sys.modules["tritensor"]  # a floor above, which whoever calls has imported
        names.setdefault("torch", front)
        names.setdefault("tritensor", front)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)

    def _time_runs(self, number: int) -> float:
        """Seconds of so many runs, never 0."""
        return max(self._timer.timeit(number=max(number, 1)), 1e-9)  # a coarse clock gives 0, by which others divide

    def timeit(self, number: int = 1000000) -> Measurement:
        """Time so many runs at once, after a hundredth of them as a warm-up."""
        if not isinstance(number, int) or number < 1:
            raise ArgumentError(f"Timer.timeit: number is {number!r}; give a whole number, 1 or more")
        with set_torch_threads(self._task_spec.num_threads):
            self._time_runs(min(max(number // 100, 2), number))
            return Measurement(number, [self._time_runs(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Not served, in PyTorch neither: blocked_autorange gives several times and their spread."""
        raise NotImplementedError("Timer.repeat: see Timer.blocked_autorange")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> NoReturn:
        """Not served, in PyTorch neither: blocked_autorange does it."""
        raise NotImplementedError("Timer.autorange: see Timer.blocked_autorange")

    def _runs_per_block(self, min_run_time: float) -> int:
        """So many runs that one look at the clock does not count: it takes a ten-thousandth of them at most, and they a thousandth of the whole time."""
        overhead = float(np.median([self._time_runs(0) for _ in range(5)]))
        number = 1
        while True:
            took = self._time_runs(number)
            if took >= min_run_time / 1000 and overhead / took < 1e-4:
                return number
            if took > min_run_time or number >= _MAX_RUNS:  # a statement of nothing never outweighs the clock
                return number
            number *= 10

    def _time_blocks(
        self, min_run_time: float, enough: Callable[[list[float]], bool], callback: Callable[[int, float], Any] | None
    ) -> Measurement:
        with set_torch_threads(self._task_spec.num_threads):
            number = self._runs_per_block(min_run_time)
            times: list[float] = []
            while not times or not enough(times):
                times.append(self._time_runs(number))
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2) -> Measurement:
        """Time blocks of runs, so many that the clock does not count, for `min_run_time` seconds. `callback(number, seconds)` is called after each."""
        return self._time_blocks(min_run_time, lambda times: sum(times) >= min_run_time, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Time blocks until the interquartile range is below `threshold` of the median, at least `min_run_time` and at most `max_run_time` seconds."""

        def enough(times: list[float]) -> bool:
            took = sum(times)
            if took < min_run_time or len(times) < 4:  # quartiles of fewer than four mean nothing
                return took >= max_run_time
            return took >= max_run_time or Measurement(1, times, self._task_spec).meets_confidence(threshold)

        return self._time_blocks(min_run_time, enough, callback)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not served: it counts the instructions of PyTorch's own binaries."""
        raise NotImplementedError("Timer.collect_callgrind: nothing here counts instructions; `perf stat` counts those of a whole program")
