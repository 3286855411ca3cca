"""Machine code on several threads: as many as numpy's BLAS uses, so that one setting rules both."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

# The names under which BLAS libraries set and tell their number of threads; numpy's wheels bring the first.
_THREADS = (
    ("scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_"),
    ("openblas_set_num_threads64_", "openblas_get_num_threads64_"),
    ("openblas_set_num_threads", "openblas_get_num_threads"),
    ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads"),
)
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, since threads do not survive a fork, and number


@functools.cache
def blas() -> tuple[Any, Any] | None:
    """(set, get) the number of threads of the BLAS that numpy has loaded."""
    lines = []
    if os.path.exists("/proc/self/maps"):
        with open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
    for path in sorted({found[1] for line in lines if (found := re.search(r" (/.*(?:blas|mkl_rt)[^/]*\.so[^/ ]*)$", line))}):
        library = ctypes.CDLL(path)
        for setter, getter in _THREADS:
            if hasattr(library, setter) and hasattr(library, getter):
                return getattr(library, setter), getattr(library, getter)
    return None


def count() -> int:
    """How many threads a product of matrices uses, 1 where numpy's BLAS does not tell."""
    found = blas()
    return int(found[1]()) if found else 1


def _pool(parts: int) -> ThreadPoolExecutor:
    """This process's threads beside the one that asks."""
    key = (os.getpid(), parts)
    return _pools.get(key) or _pools.setdefault(key, ThreadPoolExecutor(parts - 1, thread_name_prefix="tritensor"))


def share(work: Callable[[int, int], Any], total: int) -> None:
    """Call work(low, high) for parts of range(total), one a thread, and wait for all. It must release Python's lock for most of its time, as ctypes does."""
    parts = min(count(), total)
    if parts < 2:
        work(0, total)
        return
    ends = [total * i // parts for i in range(parts + 1)]
    waiting: list[Future[Any]] = []
    try:
        for low, high in zip(ends[1:-1], ends[2:], strict=True):
            waiting.append(_pool(parts).submit(work, low, high))
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        work(ends[1 + len(waiting)], total)  # the interpreter is ending (atexit), and starts nothing: the rest is this thread's
    try:
        work(0, ends[1])
    finally:
        wait(waiting)  # whatever failed, nobody writes any more
    for other in waiting:
        other.result()
