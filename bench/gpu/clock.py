"""Time on a GPU: ours and torch's through one door (events, streams, graphs), medians of calls whose data is not in the cache."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Run = Callable[[], object]
GRAPH_MS = 2.0  # what one replay of a measured graph should take at least
MOST_IN_GRAPH = 64  # calls in one graph at most
LONG_MS = 20.0  # a call from which on the host's cost is nothing: its events tell the device's time
HOST_CALLS = 100  # calls in a row that are queued without a wait: fewer than a driver's queue holds


class Timing(NamedTuple):
    """One call's times. `ms`: on the device alone, from a replayed graph, or from events where `note` says why not. `spread`: distance
    of the quartiles over the median. `eager_ms`, `eager_spread`: called one after another, the host's cost included where it is what
    limits. `host_us`: what the call costs the host."""

    ms: float
    spread: float
    eager_ms: float
    host_us: float
    note: str = ""
    eager_spread: float = 0.0


class Ours:
    """tritensor on device cuda."""

    name = "tritensor"

    def __init__(self) -> None:
        import tritensor as tt

        self.t: Any = tt
        self.device = tt.device("cuda", 0)
        self._stream = tt.cuda.Stream()

    def working(self) -> Any:
        """The stream that everything is measured on: not the default one, which no graph can capture."""
        return self.t.cuda.stream(self._stream)

    def synchronize(self) -> None:
        self.t.cuda.synchronize()

    def mark(self) -> Any:
        """A point in the stream's time."""
        event = self.t.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def between(self, start: Any, end: Any) -> float:
        """Milliseconds between two marks; waits for the second."""
        end.synchronize()
        return start.elapsed_time(end)

    def capture(self, run: Run) -> Run:
        """What replays the work that `run` queues. Not through cuda.graph(), which empties the memory cache at every capture."""
        graph = self.t.cuda.CUDAGraph()
        self.synchronize()
        graph.capture_begin()
        try:
            run()
        except BaseException:
            self._abandon(graph)
            raise
        graph.capture_end()
        return graph.replay

    def _abandon(self, graph: Any) -> None:
        graph.capture_abandon()

    def free(self) -> None:
        """Give unused memory back, for the other library to have."""
        gc.collect()
        self.t.cuda.empty_cache()

    def seed(self) -> None:
        self.t.manual_seed(0)


class Torch(Ours):
    """torch on device cuda."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self.t = torch
        self.device = torch.device("cuda", 0)
        self._stream = torch.cuda.Stream()

    def _abandon(self, graph: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the capture is broken already: the error of `run` is the one to tell
            graph.capture_end()


class HostClock(Ours):
    """A library that computes on the host and at once: its marks are the clock on the wall, its graphs the call itself."""

    def working(self) -> Any:
        return contextlib.nullcontext()

    def synchronize(self) -> None:
        pass  # the CPU computes at once

    def mark(self) -> Any:
        return time.perf_counter()

    def between(self, start: Any, end: Any) -> float:
        return max((end - start) * 1e3, 1e-6)

    def capture(self, run: Run) -> Run:
        return run

    def free(self) -> None:
        gc.collect()


class TorchOnHost(HostClock):
    """torch on the CPU, where tests let it stand in for torch on a GPU."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self.t = torch
        self.device = torch.device("cpu")


def measure(lib: Ours, runs: Sequence[Run], seconds: float, graph: bool = True) -> Timing:
    """Time one call, given as several with data of their own (so many that they do not fit the cache), in about `seconds`."""
    lib.synchronize()  # what the calls read may have been made on another stream
    with lib.working():
        for run in runs:
            run()
        lib.synchronize()
        eager = _eager(lib, runs, seconds / 3)
        host = _host(lib, runs, eager[0], seconds / 6)
        if not graph or eager[0] > LONG_MS:
            return Timing(eager[0], eager[1], eager[0], host, eager_spread=eager[1])
        try:
            ms, spread = _graph(lib, runs, eager[0], seconds / 2)
        except Exception as error:  # an op that cannot be captured is still timed, and the row says so
            lib.synchronize()
            return Timing(eager[0], eager[1], eager[0], host, f"no graph: {type(error).__name__}: {str(error)[:200]}", eager[1])
        return Timing(ms, spread, eager[0], host, eager_spread=eager[1])


def _eager(lib: Ours, runs: Sequence[Run], seconds: float) -> tuple[float, float]:
    """(median ms of a call, spread), called in turn between two marks."""

    def once(count: int) -> float:
        start = lib.mark()
        for i in range(count):
            runs[i % len(runs)]()
        return lib.between(start, lib.mark()) / count

    first = once(len(runs))
    # So many calls that a tenth of the time passes, for the two marks to weigh nothing.
    count = max(len(runs), min(int(seconds * 100 / max(first, 1e-3)), HOST_CALLS))
    return _median(_repeat(lambda: once(count), seconds, 3 if first * count < 500 else 1, 200))


def _repeat(once: Callable[[], float], seconds: float, least: int, most: int) -> list[float]:
    """What `once` says, again and again while the time lasts."""
    found: list[float] = []
    end_by = time.perf_counter() + seconds
    while len(found) < least or (time.perf_counter() < end_by and len(found) < most):
        found.append(once())
    return found


def _host(lib: Ours, runs: Sequence[Run], ms: float, seconds: float) -> float:
    """Microseconds that a call costs the host: calls queued without waiting, the best round of three to thirty."""
    least = 3 if ms < LONG_MS else 1
    calls = max(min(HOST_CALLS, int(50 / max(ms, 1e-3))), least)

    def once() -> float:
        lib.synchronize()
        start = time.perf_counter()
        for i in range(calls):
            runs[i % len(runs)]()
        return (time.perf_counter() - start) / calls

    found = _repeat(once, seconds, least, 30)
    lib.synchronize()
    return min(found) * 1e6


def _graph(lib: Ours, runs: Sequence[Run], ms: float, seconds: float) -> tuple[float, float]:
    """(median ms of a call, spread) of calls replayed from a graph: the device alone."""
    rounds = max(1, min(int(GRAPH_MS / max(ms, 1e-3) / len(runs)) + 1, MOST_IN_GRAPH // len(runs) or 1))

    def all_of_them() -> None:
        for _ in range(rounds):
            for run in runs:
                run()

    replay = lib.capture(all_of_them)
    replay()
    lib.synchronize()

    def once() -> float:
        start = lib.mark()
        replay()
        return lib.between(start, lib.mark()) / (rounds * len(runs))

    return _median(_repeat(once, seconds, 5, 200))


def _median(found: Sequence[float]) -> tuple[float, float]:
    """(median, distance of the quartiles over it)."""
    middle = statistics.median(found)
    low, _, high = statistics.quantiles(found, n=4) if len(found) > 1 else (middle,) * 3
    return middle, (high - low) / middle if middle else 0.0
