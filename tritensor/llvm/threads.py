"""Machine code on several threads: as many as numpy's BLAS uses, so that one setting rules both."""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.ground.process import locks
from tritensor.llvm import workers
from tritensor.llvm.blas import Blas as Blas
from tritensor.llvm.blas import blas as blas


def count() -> int:
    """How many threads products, convolutions and loops use: as many as numpy's BLAS, 1 where that does not tell."""
    found = blas()
    return single_threaded_blas.meant or int(found.get()) if found else 1


def free() -> int:
    """How many would share work now: 1 where they are at work for another thread, or this one is of them. Who asks first spares what is handed over."""
    found = count()
    others = workers.of_count(found - 1) if found > 1 else None
    return 1 if others is None or others.at_work else found


class _Alone:
    """Inside it numpy's BLAS uses one thread. Its own go on looking for work long after a product, and take a core from who comes next: so large
    products are shared by the threads that share loops. Several of Python's threads may be inside at once."""

    def __init__(self) -> None:
        self.lock = locks.lock()
        self.inside = 0
        self.meant = 0  # what is set again when the last has left

    def __enter__(self) -> None:
        found = blas()
        assert found is not None
        # the first to enter finds the user's number, the last to leave sets it again
        with self.lock:
            if not self.inside:
                self.meant = int(found.get())
                found.set(1)
            self.inside += 1

    def __exit__(self, *exc: object) -> None:
        found = blas()
        assert found is not None
        with self.lock:
            self.inside -= 1
            if not self.inside:
                found.set(self.meant)
                self.meant = 0

    def in_child(self) -> None:
        """A forked child has none of the threads that were inside."""
        if self.inside:
            self.inside = 0
            count_of_all, self.meant = self.meant, 0
            if (found := blas()) is not None:
                found.set(count_of_all)


single_threaded_blas = _Alone()  # `with threads.single_threaded_blas:`
locks.in_child(single_threaded_blas.in_child)


def share(work: Callable[[int, int], Any], total: int) -> None:
    """Call work(low, high) for parts of range(total), one a thread, and wait for all. It must release Python's lock for most of its time, as ctypes does."""
    parts = min(count(), total)
    others = workers.of_count(count() - 1) if parts > 1 else None
    if others is None or not others.share([functools.partial(work, low, high) for low, high in _ranges(total, parts)]):
        work(0, total)


def run_shared(function: Any, total: int, arguments: Callable[[int, int], Sequence[int]], alone: bool = False) -> None:
    """A machine function called with arguments(low, high) for parts of range(total), one a thread; at once for all where it is to be `alone`."""
    if alone or call(workers.address(function), total, arguments) is None:
        function(*arguments(0, total))


Call = tuple[Any, Sequence[int]]  # a machine function with its arguments


def run_programs(programs: Sequence[Sequence[Call]]) -> None:
    """Several programs, one a thread, of calls one after the other; the programs one after another where threads are at work."""
    if len(programs) > 1 and try_programs(programs):
        return
    for calls in programs:
        for function, its in calls:
            function(*its)


def try_programs(programs: Sequence[Sequence[Call]]) -> bool:
    """Such programs, one a thread; False where others are at work."""
    given = [[n for f, its in calls for n in (workers.address(f), *its, *[0] * (workers.ARGUMENTS - len(its)))] for calls in programs]
    tables = [array("q", row) for row in given]
    return call_parts(workers.calling(), [(t.buffer_info()[0], len(calls)) for t, calls in zip(tables, programs, strict=True)]) is not None


def run_tables(tables: Sequence[tuple[int, int]]) -> None:
    """Programs as tables of calls (see workers.calling), each an address and how many there are, one a thread; one after another where threads are too few,
    or others are at work."""
    if len(tables) < 2 or count() < len(tables) or call_parts(workers.calling(), tables) is None:
        for at, count_of_calls in tables:
            workers.call_all(at, count_of_calls)


def call(function: int, total: int, arguments: Callable[[int, int], Sequence[int]]) -> int | None:
    """The machine function at an address, called with arguments(low, high) for parts of range(total), one a thread; the answers or-ed. None where
    there is one thread, or others are at work: the caller then calls it for all."""
    parts = min(free(), total)
    return None if parts < 2 else call_parts(function, [arguments(low, high) for low, high in _ranges(total, parts)])


def call_parts(function: int, parts: Sequence[Sequence[int]]) -> int | None:
    """The machine function at an address, called once for each part's arguments; the answers or-ed. None where others are at work."""
    others = workers.of_count(max(count() - 1, 1))
    return None if others is None else others.call(function, parts)


def _ranges(total: int, parts: int) -> list[tuple[int, int]]:
    ends = [total * i // parts for i in range(parts + 1)]
    return list(itertools.pairwise(ends))
