"""Names for stretches of a program in a profiler's time line (NVTX): ranges and marks, as in torch.cuda.nvtx.

They go to NVIDIA's NVTX library (libnvtx3interop or libnvToolsExt, of the CUDA toolkit) or to the Python package nvtx, whichever is
found first. Without one they do nothing, so that a program may keep its ranges; mistakes in their nesting are errors either way.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

_LIBRARIES = ("libnvtx3interop.so.1", "libnvToolsExt.so.1")


class Listener(NamedTuple):
    """Who is told: push(message) and pop() of ranges of a thread, mark(message), start(message) and stop(what that gave) of ranges between threads."""

    name: str
    push: Callable[[str], Any]
    pop: Callable[[], Any]
    mark: Callable[[str], Any]
    start: Callable[[str], Any]
    stop: Callable[[Any], Any]


def _ignore(*_: Any) -> None:
    """Nobody is told."""


SILENT = Listener("", _ignore, _ignore, _ignore, _ignore, _ignore)


def _load_library(name: str) -> Listener:
    """NVIDIA's C library. Raises OSError where it is not there, AttributeError where it lacks the functions."""
    library = ctypes.CDLL(name)
    push, mark, start, stop = library.nvtxRangePushA, library.nvtxMarkA, library.nvtxRangeStartA, library.nvtxRangeEnd
    for function in (push, mark, start):
        function.argtypes = (ctypes.c_char_p,)
    start.restype, stop.argtypes = ctypes.c_uint64, (ctypes.c_uint64,)
    return Listener(name, lambda m: push(m.encode()), library.nvtxRangePop, lambda m: mark(m.encode()), lambda m: start(m.encode()), stop)


@cache
def _listener() -> Listener:
    """Who is told of ranges, looked for once."""
    for name in _LIBRARIES:
        try:
            return _load_library(name)
        except (OSError, AttributeError):
            continue  # not on this machine, or without the functions
    # the library first: the package costs an import and wraps the same functions
    if importlib.util.find_spec("nvtx") is None:
        return SILENT
    package: Any = importlib.import_module("nvtx")
    return Listener("the package nvtx", package.push_range, package.pop_range, package.mark, package.start_range, package.end_range)


_local = threading.local()
_open: dict[int, Any] = {}  # ranges of range_start: number -> the library's handle
_numbers = itertools.count(1)


def provider() -> str:
    """What ranges go to; "" where nothing was found and they do nothing."""
    return _listener().name


def range_push(msg: str) -> int:
    """Begin a range on this thread, inside the one begun last; returns its depth, 0 for an outermost one."""
    depth = getattr(_local, "depth", 0)
    _listener().push(msg)
    _local.depth = depth + 1
    return depth


def range_pop() -> int:
    """End the range that this thread began last; returns its depth. Raises RuntimeError where there is none."""
    # libraries count for themselves, and do not refuse a pop too many
    depth = getattr(_local, "depth", 0)
    if not depth:
        raise RuntimeError("nvtx.range_pop: this thread has no range to end; each range_pop() ends one range_push() of the same thread")
    _listener().pop()
    _local.depth = depth - 1
    return depth - 1


def mark(msg: str) -> None:
    """Name this moment."""
    _listener().mark(msg)


def range_start(msg: str) -> int:
    """Begin a range that may end on any thread and need not nest; returns what `range_end` wants."""
    number = next(_numbers)
    _open[number] = _listener().start(msg)
    return number


def range_end(range_id: int) -> None:
    """End a range of `range_start`. Raises RuntimeError for one that is not open."""
    if range_id not in _open:
        raise RuntimeError(f"nvtx.range_end: {range_id} is no open range; give what range_start() returned, once")
    _listener().stop(_open.pop(range_id))


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """`with range("step {}", i): ...`, or `@range("forward")` before a function: a range around a block. The message is
    formatted with the arguments that follow it. Raises RuntimeError where the block ended ranges that it did not begin."""
    depth = range_push(msg.format(*args, **kwargs) if args or kwargs else msg)
    try:
        yield
    except BaseException:
        while getattr(_local, "depth", 0) > depth:  # what the block had begun ends with it
            range_pop()
        raise
    more = getattr(_local, "depth", 0) - depth - 1
    while getattr(_local, "depth", 0) > depth:
        range_pop()
    if more > 0:
        raise RuntimeError(f"nvtx.range: the block began {more} ranges more than it ended; each range_push() needs a range_pop()")
    if more < 0:
        raise RuntimeError("nvtx.range: the block ended ranges that it did not begin; it called range_pop() too often")
