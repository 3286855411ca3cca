"""Time on the GPU alone: calls captured in a graph and replayed between two events, on data that does not fit the cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tritensor import cuda

Run = Callable[[], Any]
REPLAY_MS = 1.0  # what one replay takes at least, where so many calls fit
CALLS = 64  # of one graph at most


def microseconds(runs: Sequence[Run], seconds: float) -> float:
    """The median time of a call, given as several with data of their own, in about `seconds`.

    Calls that no graph can capture are queued one after another between the events, where short ones show the host's cost instead.
    """
    stream = cuda.Stream()
    cuda.synchronize()  # what the calls read was made on another stream
    with cuda.stream(stream):
        for run in runs:  # compiles, records
            run()
        first = _between(stream, runs)
        rounds = max(1, min(int(REPLAY_MS / max(first / len(runs), 1e-3) / len(runs)), CALLS // len(runs)))
        everything = list(runs) * rounds
        replay = _captured(everything)
        again = [replay] if replay is not None else everything
        # once for nothing: the first replay of a graph uploads it
        _between(stream, again)
        found: list[float] = []
        end = time.perf_counter() + seconds
        while len(found) < 3 or (time.perf_counter() < end and len(found) < 100):
            found.append(_between(stream, again))
        return 1e3 * statistics.median(found) / len(everything)


def _between(stream: Any, runs: Sequence[Run]) -> float:
    """Milliseconds of calls between two events."""
    start, stop = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record(stream)
    for run in runs:
        run()
    stop.record(stream)
    stop.synchronize()
    return float(start.elapsed_time(stop))


def _captured(runs: Sequence[Run]) -> Run | None:
    """What replays these calls; None where a graph cannot hold them (they wait for the device, or copy from the host)."""
    graph = cuda.CUDAGraph()
    cuda.synchronize()
    graph.capture_begin()
    try:
        for run in runs:
            run()
    except RuntimeError:  # CaptureError and what the driver says of a call that it does not capture; a broken device says so again at once
        graph.capture_abandon()
        cuda.synchronize()
        return None
    graph.capture_end()
    return graph.replay


def copies(nbytes: int, cache: int) -> int:
    """How many sets of `nbytes` of data do not fit a cache of `cache` bytes together: one to sixteen."""
    return max(1, min(16, -(-2 * cache // max(nbytes, 1))))
