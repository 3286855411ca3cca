"""Timing two programs fairly on a noisy machine: in turn, many short rounds, medians, and the ratio round by round."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Paired(NamedTuple):
    """Median seconds per call of ours and of the peer's (None without a peer), and the median of the ratios."""

    ours: float
    peer: float | None
    ratio: float | None


def once(f: Callable[[], object], calls: int) -> float:
    """Seconds per call over `calls` calls."""
    start = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - start) / calls


def least(ours: Callable[[], object], peer: Callable[[], object] | None, seconds: float = 0.5, rounds: int = 15) -> Paired:
    """Least CPU seconds of this thread over many short rounds in turn, and the ratio of the two: what others do on the machine leaves it alone."""
    sides = [f for f in (ours, peer) if f is not None]
    for f in sides:
        f()
    each = max(sum(cpu_once(f, 1) for f in sides), 1e-7)
    calls = max(1, int(seconds / rounds / each))
    found = [[cpu_once(f, calls) for f in sides] for _ in range(min(rounds, max(3, int(seconds / each))))]
    a, *b = (min(times) for times in zip(*found, strict=True))
    return Paired(a, b[0], a / b[0]) if b else Paired(a, None, None)


def quartiles(f: Callable[[], object], seconds: float = 0.4, rounds: int = 9) -> tuple[float, float]:
    """(median seconds per call, distance of the quartiles over it) of short rounds that fit in about `seconds`."""
    f()
    calls = max(1, int(seconds / rounds / max(once(f, 1), 1e-7)))
    found = [once(f, calls) for _ in range(rounds)]
    low, middle, high = statistics.quantiles(found, n=4)
    return middle, (high - low) / middle


def cpu_once(f: Callable[[], object], calls: int) -> float:
    """CPU seconds of this thread per call over `calls` calls."""
    start = time.thread_time()
    for _ in range(calls):
        f()
    return (time.thread_time() - start) / calls


def paired(ours: Callable[[], object], peer: Callable[[], object] | None, seconds: float = 3.0, rounds: int = 25) -> Paired:
    """Time both in alternating rounds that fit in about `seconds`."""
    sides = [f for f in (ours, peer) if f is not None]
    for f in sides:
        f()
        f()
    calls = max(1, int(seconds / rounds / max(sum(once(f, 3) for f in sides), 1e-7)))
    return medians([[once(f, calls) for f in sides] for _ in range(rounds)])


def medians(rounds: Sequence[Sequence[float]]) -> Paired:
    """Of rounds (ours,) or (ours, the peer's): the median seconds of each, and of the ratios."""
    a, *b = zip(*rounds, strict=True)
    if not b:
        return Paired(statistics.median(a), None, None)
    return Paired(statistics.median(a), statistics.median(b[0]), statistics.median(x / y for x, y in rounds))


def torch_or_none(threads: int = 1) -> object | None:
    """torch, if installed, on `threads` threads."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(threads)
    return torch


def line(label: str, result: Paired, unit: float = 1e6, name: str = "us") -> str:
    """One row of a table: ours, torch's, the ratio."""
    text = f"{label:<52}{result.ours * unit:>10.2f} {name}"
    if result.peer is not None:
        text += f"{result.peer * unit:>10.2f} {name}{result.ratio:>8.2f} x torch"
    return text
