"""Pinned host memory, which a GPU copies from and to by itself: a cache of it, and numpy arrays that lie in it.

A block comes back to the cache when the last array on it dies. If a copy that does not wait has used it, it is handed out again only
when events recorded on those streams after its death have passed. What `__del__` does is one append to a deque, so that the collector
may run it anywhere.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from tritensor.cuda.memory.size_classes import size_class
from tritensor.cuda.runtime import active
from tritensor.cuda.runtime.active import Runtime, runtime
from tritensor.ground.errors import OutOfMemoryError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here

_LEAST = 4096  # the driver pins whole pages


class _Block:
    """Pinned bytes that an array lies on (it is the array's `base`); `used` holds the (GPU, stream) of copies that did not wait."""

    __slots__ = ("__weakref__", "cache", "forever", "nbytes", "pointer", "size", "used")

    def __init__(self, cache: PinnedCache, pointer: int, size: int, nbytes: int) -> None:
        self.cache = cache
        self.pointer = pointer
        self.size = size
        self.nbytes = nbytes
        self.used: set[tuple[int, int]] = set()
        self.forever = False  # a captured graph copies from here at each replay

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.pointer, False), "version": 3}

    def __del__(self) -> None:
        if not self.forever:
            self.cache.returned.append((self.pointer, self.size, tuple(self.used)))


class _Waiting:
    """A dead block: (GPU, stream) of copies that no event stands behind yet, and (GPU, event) to be waited for."""

    __slots__ = ("events", "pointer", "size", "unmarked")

    def __init__(self, pointer: int, size: int, unmarked: list[tuple[int, int]]) -> None:
        self.pointer = pointer
        self.size = size
        self.unmarked = unmarked
        self.events: list[tuple[int, int]] = []


class PinnedCache:
    """Pinned blocks by size class (bytes, as `size_classes.size_class` rounds them, 4 KiB at least).

    Counts in bytes: `live` in arrays, `peak`, `reserved` pinned, `peak_reserved`. `returned` holds dead blocks not looked at yet.
    """

    def __init__(self, on: Runtime) -> None:
        self.runtime = on
        self.returned: deque[tuple[int, int, tuple[tuple[int, int], ...]]] = deque()
        self.live = self.peak = self.reserved = self.peak_reserved = 0
        self.allocations = self.frees = 0
        self._free: dict[int, list[int]] = {}
        self._waiting: deque[_Waiting] = deque()
        self._lock = locks.rlock()

    def take(self, nbytes: int) -> _Block:
        """A block for `nbytes`. Raises OutOfMemoryError where no more host memory can be pinned; nothing has changed then."""
        size = size_class(max(nbytes, _LEAST))
        with self._lock:
            self._sort()
            kept = self._free.get(size)
            if kept:
                pointer = kept.pop()
            else:
                pointer = self._pin(size)
                self.allocations += 1
                self.reserved += size
                self.peak_reserved = max(self.peak_reserved, self.reserved)
            self.live += size
            self.peak = max(self.peak, self.live)
        return _Block(self, pointer, size, nbytes)

    def _pin(self, size: int) -> int:
        try:
            return self.runtime.pinned_allocate(size)
        except OutOfMemoryError:
            if here.capture is not None:
                raise
        self.empty()
        try:
            return self.runtime.pinned_allocate(size)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"pinned memory: {size} bytes asked, {self.live} held by pinned tensors, {self.reserved} pinned by this process: {error}; "
                "pinned pages cannot be swapped out: pin less at a time, or use ordinary memory"
            ) from error

    def _sort(self) -> None:
        """Put dead blocks on their lists, those that copies have used when their events have passed. Nothing while a graph is captured."""
        if here.capture is not None:  # an event recorded or asked now would be part of the graph
            return
        while self.returned:
            pointer, size, used = self.returned.popleft()
            self.live -= size
            if used:
                self._waiting.append(_Waiting(pointer, size, list(used)))
            else:
                self._free.setdefault(size, []).append(pointer)
        for block in tuple(self._waiting):
            while block.unmarked:  # one that fails is tried again at the next request
                self._mark(block, *block.unmarked[-1])
                block.unmarked.pop()
        # in the order in which they died: one in use holds up those behind it, but only one is asked at each request
        while self._waiting and all([self.runtime.event_query(*event) for event in self._waiting[0].events]):
            self._take_back()

    def _mark(self, block: _Waiting, index: int, stream: int) -> None:
        """Record an event behind the copies that a stream was given."""
        event = self.runtime.event_create(index, False, False)
        try:
            self.runtime.event_record(index, event, stream)
        except BaseException:
            self.runtime.event_destroy(index, event)
            raise
        block.events.append((index, event))

    def _take_back(self) -> None:
        """Take the first of those that wait back, for good."""
        block = self._waiting[0]
        while block.events:
            self.runtime.event_destroy(*block.events.pop())
        self._waiting.popleft()
        self._free.setdefault(block.size, []).append(block.pointer)

    def empty(self) -> None:
        """Wait for the copies that use dead blocks, and unpin everything that no array holds."""
        with self._lock:
            self._sort()
            while self._waiting:
                for event in self._waiting[0].events:
                    self.runtime.event_synchronize(*event)
                self._take_back()
            for size, kept in self._free.items():
                while kept:
                    # popped afterwards: one that the driver does not take back stays on the books
                    self.runtime.pinned_free(kept[-1])
                    kept.pop()
                    self.reserved -= size
                    self.frees += 1


_cache: PinnedCache | None = None
_making = locks.lock()


def _forget() -> None:
    """Another runtime serves the device: blocks of the one before go back to their own cache."""
    global _cache
    _cache = None


active.when_changed.append(_forget)


def cache() -> PinnedCache:
    """The cache of the runtime in use. Raises DeviceError where there is no GPU."""
    global _cache
    with _making:
        if _cache is None:
            _cache = PinnedCache(runtime())
        return _cache


def empty_cache() -> None:
    """Unpin what no array holds, if anything was ever pinned."""
    if _cache is not None:
        _cache.empty()


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised C-ordered array in pinned memory. Raises OutOfMemoryError; DeviceError without a GPU."""
    nbytes = math.prod(shape) * dtype.itemsize
    block = cache().take(nbytes)
    return np.ndarray(shape, dtype, np.asarray(block))


def block_of(x: np.ndarray) -> _Block | None:
    """The pinned block that an array lies in, or None."""
    base = x.base
    # a view's base may be a view
    while isinstance(base, np.ndarray):
        base = base.base
    return base if type(base) is _Block else None


def used(x: np.ndarray, index: int, stream: int) -> None:
    """Note that a copy which is not waited for was queued on a stream of a GPU, from or to an array in pinned memory."""
    block = block_of(x)
    if block is not None:
        block.used.add((index, stream))
        if here.capture is not None and here.capture.takes(index):
            block.forever = True


def stats() -> dict[str, int]:
    """Counters of pinned memory, under PyTorch's names (bytes)."""
    found = _cache
    if found is None:
        return dict.fromkeys(_NAMES, 0)
    with found._lock:
        found._sort()
        return dict(zip(_NAMES, (found.live, found.peak, found.reserved, found.peak_reserved, found.allocations, found.frees), strict=True))


_NAMES = (
    "allocated_bytes.current", "allocated_bytes.peak", "reserved_bytes.current", "reserved_bytes.peak", "num_host_alloc", "num_host_free",
)  # fmt: skip
