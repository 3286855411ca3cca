"""The caching allocator of one GPU: blocks of rounded sizes, kept per stream and handed out again in stream order.

A block goes back to the free list (size class, stream) it came from. Work on one stream runs in order, so the next owner on that
stream may write at once; a block that other streams have used as well waits in limbo until events on those streams have passed.

Size classes: steps of 512 bytes to 4 KiB, then eight to each power of two, so that beyond 4 KiB less than 12.5 % is rounding;
steps grow no wider than 16 MiB, so that a block of many GiB wastes no more than that. Eight is the number at which a run whose
shapes vary by a few percent still meets the same classes again. Blocks under 1 MiB are cut from slabs of 2 MiB (the driver's own
granule); each larger one is an allocation of its own, and it remembers the line of the user's program that asked for it.

Threads and the garbage collector. Callers pop and append on `FreeList.free` and add to `live` without a lock: between a look and
the act there is no call, and CPython switches threads and starts the collector only at calls and backward jumps. Everything else
holds one RLock, which the collector may enter again: it can free a Storage at any allocation of a Python object in here. So no
list is iterated while it is worked on; entries are popped one by one, which makes them ours, and put back in case of an error.
"""

from __future__ import annotations

import gc
import os
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable
from itertools import count
from types import CodeType

from tritensor.cuda.memory.size_classes import LARGE, SLAB, FreeList, Limbo, Row, Slab, Source, size_class
from tritensor.ground.call_site import user_instruction
from tritensor.ground.errors import OutOfMemoryError
from tritensor.ground.process import locks

_REMEMBERED = 8192  # exact sizes whose free list is remembered
_PATIENCE = 4  # blocks in limbo that one poll may find still in use before it stops asking


class _Full(Exception):
    """The device has no room, even after the cache was given back."""


class CachingAllocator:
    """Hands out the memory of one GPU.

    A caller's fast path, which must stay free of calls between a read and its write:
        free_list = a.by_request.get((nbytes, stream)) or a.free_list(nbytes, stream)
        free = free_list.free
        if free: p = free.pop(); n = a.live + free_list.size; a.live = n; if n > a.peak: a.peak = n
        else: p = a.take(free_list, nbytes)
    and to free: `a.live -= free_list.size; free_list.free.append(p)`, or `a.give_back_later(p, free_list, streams)` when streams other than
    the free list's own have used the block.

    Attributes (bytes): `live` handed out, by size class; `peak`; `reserved` from the source; `peak_reserved`; `limbo_bytes` freed but
    waited for; `limit` on `reserved`, or None. `large`: address -> (bytes, code, instruction) of live blocks of 1 MiB and more.
    `caching`: False where TRITENSOR_NO_MEMORY_CACHING=1 is set: each request is an allocation of exactly its bytes, returned when it
    is freed, which is what compute-sanitizer must see to tell one tensor from the next.
    `several`: whether more than one stream has had blocks or used them (see `note`); until then no block can be used out of order.
    Counts: `retries` (times the cache was given back to serve a request), `ooms`, `source_allocations`, `source_frees`.
    """

    def __init__(self, source: Source, index: int) -> None:
        self.source = source
        self.index = index
        self.live = self.peak = self.reserved = self.peak_reserved = self.limbo_bytes = 0
        self.retries = self.ooms = self.source_allocations = self.source_frees = 0
        self.limit: int | None = None
        self.several = False
        self.caching = os.environ.get("TRITENSOR_NO_MEMORY_CACHING", "0") in ("", "0")
        self.large: dict[int, tuple[int, CodeType, int]] = {}
        self.by_request: dict[tuple[int, int], FreeList] = {}
        self._lock = locks.rlock()
        self._free_lists: dict[tuple[int, int, int | None], FreeList] = {}
        self._slabs: dict[int, Slab] = {}
        self._open: dict[tuple[int, int | None], list[Slab]] = {}  # slabs with room left
        self._limbo: deque[Limbo] = deque()
        self._deferred: deque[tuple[int, FreeList, tuple[int, ...]]] = deque()  # given back while a graph was captured
        self._routes: dict[int, int] = {}  # capturing stream: private pool that serves it
        self._pools: dict[int, int] = {}  # private pool: graphs that use it
        self._dying: list[int] = []  # pools released while a graph was captured
        self._numbers = count(1)
        self._streams: set[int] = set()

    # handing out
    def free_list(self, nbytes: int, stream: int, pool: int | None = None) -> FreeList:
        """The free list that serves requests of `nbytes` on a stream; from a private pool where one is named or the stream captures into one."""
        if not pool:
            known = self.by_request.get((nbytes, stream))
            if known is not None:
                return known
        with self._lock:
            asked = pool = pool or None
            if pool is None:
                pool = self._routes.get(stream)
            size = size_class(nbytes) if self.caching else max(nbytes, 1)
            found = self._free_lists.get((size, stream, pool))
            if found is None:
                found = self._free_lists[size, stream, pool] = FreeList(self, size, stream, pool)
                self.note(stream)
            if asked is None:
                if len(self.by_request) >= _REMEMBERED:
                    self.by_request.clear()
                self.by_request[nbytes, stream] = found
            return found

    def note(self, stream: int) -> None:
        """A stream gets blocks, or begins to use those of others."""
        self._streams.add(stream)
        self.several = len(self._streams) > 1

    def take(self, free_list: FreeList, nbytes: int = 0) -> int:
        """A block of a free list: one that was returned, a piece of a slab, or fresh from the source.

        Args:
            free_list: where the block will go back to.
            nbytes: the bytes asked for, where known; only the error text shows them.

        Raises:
            OutOfMemoryError: no room after blocks in limbo were waited for, the cache was given back and garbage was collected.
            Exception: whatever else the source raises; nothing has changed then.
        """
        try:
            pointer = self._take(free_list)
        except _Full:
            gc.collect()  # tensors in reference cycles, such as a caught exception's traceback, may be all that fills the device
            try:
                pointer = self._take(free_list)
            except _Full:
                from tritensor.cuda.memory.report import out_of_memory

                self.ooms += 1
                raise OutOfMemoryError(out_of_memory(self, nbytes or free_list.size, bool(self._routes))) from None
        live = self.live + free_list.size
        self.live = live
        if live > self.peak:
            self.peak = live
        if free_list.size >= LARGE:
            self.large[pointer] = (free_list.size, *user_instruction())
        return pointer

    def _take(self, free_list: FreeList) -> int:
        with self._lock:
            if self._limbo and not self._routes:  # an event must not be asked while a graph is captured
                self._poll()
            try:
                return free_list.kept.pop()  # no look before it: a finalizer may append, or another thread take, in between
            except IndexError:
                pointer = self._ask(free_list.size, free_list) if free_list.size >= LARGE or not self.caching else self._cut(free_list)
            self._free_lists[free_list.size, free_list.stream, free_list.pool].made += 1  # the free list itself, or the one it has joined
            return pointer

    def _cut(self, free_list: FreeList) -> int:
        """A new small block, from the youngest slab that has room for it."""
        size = free_list.size
        slabs = self._open.get((free_list.stream, free_list.pool), ())
        # the youngest first: the older ones are full but for sizes that did not fit
        slab = next((s for s in reversed(slabs) if s.cut + size <= SLAB), None)
        if slab is None:
            base = self._ask(SLAB, free_list)
            slab = self._slabs[base] = Slab(base, free_list.stream, free_list.pool)
            self._open.setdefault((slab.stream, slab.pool), []).append(slab)
        pointer = slab.base + slab.cut
        slab.cut += size
        if slab.cut == SLAB:
            self._open[slab.stream, slab.pool].remove(slab)
        return pointer

    def _ask(self, nbytes: int, free_list: FreeList) -> int:
        """Fresh memory from the source, after giving it the cache back if need be; raises _Full."""
        pointer = self._ask_once(nbytes, free_list)
        if not pointer and not self._routes:  # a capture forbids to wait and to free
            self.retries += 1
            self._wait_limbo()
            self.empty_cache()
            pointer = self._ask_once(nbytes, free_list)
        if not pointer:
            raise _Full
        self.source_allocations += 1
        reserved = self.reserved + nbytes
        self.reserved = reserved
        if reserved > self.peak_reserved:
            self.peak_reserved = reserved
        return pointer

    def _ask_once(self, nbytes: int, free_list: FreeList) -> int:
        if self.limit is not None and self.reserved + nbytes > self.limit:
            return 0
        if free_list.pool is not None and self._routes:
            return self.source.allocate_for_capture(nbytes)
        return self.source.allocate(nbytes, free_list.stream)

    # blocks that other streams have used
    def give_back_later(self, pointer: int, free_list: FreeList, streams: Iterable[int]) -> None:
        """Free a block that `streams`, besides the free list's own, have used: it is handed out again when their work so far is done.

        Raises what recording an event raises; the block is then kept back until the whole device has been waited for.
        """
        with self._lock:
            self.live -= free_list.size
            self.large.pop(pointer, None)
            self.limbo_bytes += free_list.size
            if self._routes:  # an event recorded now would become part of the graph
                self._deferred.append((pointer, free_list, tuple(streams)))
            else:
                self._to_limbo(pointer, free_list, streams)

    def _to_limbo(self, pointer: int, free_list: FreeList, streams: Iterable[int]) -> None:
        entry = Limbo(pointer, free_list)
        try:
            for stream in streams:
                entry.events.append(self.source.record(stream))
        except BaseException:
            entry.events.append(None)
            raise
        finally:
            self._limbo.append(entry)

    def _poll(self) -> None:
        """Put blocks whose events have passed back on their free lists; stops at the fourth that is still in use."""
        still: list[Limbo] = []
        try:
            while self._limbo and len(still) < _PATIENCE:
                entry = self._limbo.popleft()
                still.append(entry)
                while entry.events and entry.events[-1] is not None and self.source.passed(entry.events[-1]):
                    self.source.release(entry.events.pop())
                if not entry.events:
                    still.pop()
                    self._take_back(entry)
        finally:
            self._limbo.extendleft(reversed(still))

    def _take_back(self, entry: Limbo) -> None:
        self.limbo_bytes -= entry.free_list.size
        entry.free_list.kept.append(entry.pointer)

    def _wait_limbo(self) -> None:
        """Wait until nothing is in limbo."""
        unrecorded = [entry for entry in tuple(self._limbo) if None in entry.events]
        if unrecorded:
            self.source.synchronize()
            for entry in unrecorded:
                entry.events.remove(None)
        while self._limbo:
            entry = self._limbo.popleft()
            try:
                while entry.events:
                    self.source.wait(entry.events[-1])
                    self.source.release(entry.events.pop())
            except BaseException:
                self._limbo.appendleft(entry)
                raise
            self._take_back(entry)

    # giving memory back to the source
    def empty_cache(self) -> None:
        """Return to the source what is free: large blocks, and slabs of which every block is free. Not what private pools keep.

        Does nothing while a graph is captured. Raises what the source raises; what was returned until then is off the books.
        """
        with self._lock:
            if self._routes:
                return
            self._release_dying()
            self._poll()  # what is done lies on no free list yet
            for free_list in tuple(self._free_lists.values()):
                if free_list.size >= LARGE and free_list.pool is None:
                    self._return_blocks(free_list)
            self._dissolve()
            for slab in tuple(self._slabs.values()):
                if not slab.cut and slab.pool is None:
                    self.source.free(slab.base, slab.stream)
                    del self._slabs[slab.base]
                    self._open[slab.stream, slab.pool].remove(slab)
                    self._count_return(SLAB)
            # frees are queued: the pool has the memory when the streams have come to them
            self.source.synchronize()
            self.source.trim()

    def give_up(self, pointer: int, free_list: FreeList) -> None:
        """Return a freed block to the source at once, for an allocator that does not cache."""
        with self._lock:
            free_list.kept.append(pointer)
            if not self._routes:
                self._return_blocks(free_list)

    def _return_blocks(self, free_list: FreeList) -> None:
        while free_list.kept:
            pointer = free_list.kept.pop()
            try:
                self.source.free(pointer, free_list.stream)
            except BaseException:
                free_list.kept.append(pointer)
                raise
            free_list.made -= 1
            self._count_return(free_list.size)

    def _count_return(self, nbytes: int) -> None:
        self.reserved -= nbytes
        self.source_frees += 1

    def _dissolve(self) -> None:
        """Make slabs of which every block is free uncut again."""
        bases = sorted(s.base for s in self._slabs.values() if s.pool is None)
        held: list[tuple[FreeList, list[int]]] = []
        covered = dict.fromkeys(bases, 0)
        for free_list in tuple(self._free_lists.values()):
            if free_list.size >= LARGE or free_list.pool is not None or not free_list.kept:
                continue
            ours: list[int] = []
            held.append((free_list, ours))
            while free_list.kept:
                pointer = free_list.kept.pop()
                ours.append(pointer)
                covered[bases[bisect_right(bases, pointer) - 1]] += free_list.size
        whole = {base for base in bases if covered[base] == self._slabs[base].cut}
        for free_list, ours in held:
            # popping has turned the order round: the last returned is to be taken first again
            stay = [p for p in reversed(ours) if bases[bisect_right(bases, p) - 1] not in whole]
            free_list.made -= len(ours) - len(stay)
            free_list.kept.extend(stay)
        for base in whole:
            self._slabs[base].cut = 0
        self._reopen()

    # what there is
    def reset_peaks(self) -> None:
        """Let both peaks start anew."""
        self.peak, self.peak_reserved = self.live, self.reserved

    def info(self) -> tuple[int, int]:
        """(free, total) bytes of the device."""
        return self.source.info()

    def rows(self) -> list[Row]:
        """One row per free list that has blocks."""
        with self._lock:
            waiting = Counter([id(entry.free_list.kept) for entry in tuple(self._limbo)])
            waiting.update([id(free_list.kept) for _, free_list, _ in tuple(self._deferred)])
            free_lists = [s for s in tuple(self._free_lists.values()) if s.made]
            return [Row(s.size, s.stream, s.pool, s.made, len(s.kept), waiting[id(s.kept)]) for s in free_lists]

    def uncut_bytes(self) -> int:
        """Bytes of slabs that no block has been cut from."""
        return sum([SLAB - s.cut for s in tuple(self._slabs.values())])

    def mapped(self) -> list[tuple[int, int, int, int | None]]:
        """(address, bytes, stream, pool) of every slab."""
        return [(s.base, SLAB, s.stream, s.pool) for s in tuple(self._slabs.values())]

    # private pools, for graphs
    def private_pool(self, shared: int | None = None) -> int:
        """A pool whose blocks serve nobody else while a graph uses it; `shared` names one that another graph of ours has as well.

        Each call is undone by one `release_pool`.
        """
        with self._lock:
            pool = next(self._numbers) if shared is None else shared
            if shared is not None and shared not in self._pools:  # a number of a pool that is gone may be another's by now
                raise ValueError(f"cuda:{self.index}: memory pool {shared} is not there: the graphs that used it are gone")
            self._pools[pool] = self._pools.get(pool, 0) + 1
            return pool

    def pool_of(self, stream: int) -> int | None:
        """The private pool that a capturing stream is served from; None for any other stream."""
        return self._routes.get(stream)

    def capture_begin(self, pool: int, stream: int) -> None:
        """From now on requests on `stream` are served from a private pool, and nothing is waited for or returned to the source."""
        with self._lock:
            self._routes[stream] = pool
            self._forget_requests(stream)

    def capture_end(self, stream: int) -> None:
        """The capture on `stream` has ended (or failed)."""
        with self._lock:
            self._routes.pop(stream, None)
            self._forget_requests(stream)
            if self._routes:
                return
            failed: Exception | None = None
            for _ in range(len(self._deferred)):
                pointer, free_list, streams = self._deferred.popleft()
                if free_list.pool is not None:  # within the graph nothing orders the other stream before the block's next use
                    self._deferred.append((pointer, free_list, streams))
                    continue
                try:
                    self._to_limbo(pointer, free_list, streams)
                except Exception as error:
                    failed = error
            if failed is not None:
                raise failed
            self._release_dying()

    def _forget_requests(self, stream: int) -> None:
        for key in [k for k in tuple(self.by_request) if k[1] == stream]:
            self.by_request.pop(key, None)

    def release_pool(self, pool: int) -> None:
        """A graph that used the pool is gone: after the last one, and after waiting for the device, its blocks serve everyone."""
        with self._lock:
            self._pools[pool] -= 1
            if self._pools[pool]:
                return
            del self._pools[pool]
            self._dying.append(pool)
            if not self._routes:
                self._release_dying()

    def _release_dying(self) -> None:
        if not self._dying:
            return
        self.source.synchronize()  # a replay of the graph may still run
        while self._dying:
            pool = self._dying.pop()
            for _ in range(len(self._deferred)):
                pointer, free_list, streams = self._deferred.popleft()
                if free_list.pool == pool:
                    self.limbo_bytes -= free_list.size
                    free_list.kept.append(pointer)
                else:
                    self._deferred.append((pointer, free_list, streams))
            for free_list in tuple(self._free_lists.values()):
                if free_list.pool == pool:
                    self._join(free_list)
            for slab in tuple(self._slabs.values()):
                if slab.pool == pool:
                    slab.pool = None
            self._reopen()

    def _reopen(self) -> None:
        """Sort the slabs with room left anew, after their streams or pools have changed."""
        self._open = {}
        for slab in tuple(self._slabs.values()):
            if slab.cut < SLAB:
                self._open.setdefault((slab.stream, slab.pool), []).append(slab)

    def _join(self, free_list: FreeList) -> None:
        """Join a free list of a pool that is gone to the general one; its live blocks come back there, too."""
        del self._free_lists[free_list.size, free_list.stream, free_list.pool]
        free_list.pool = None
        into = self._free_lists.setdefault((free_list.size, free_list.stream, None), free_list)
        if into is free_list:
            return
        old = free_list.kept
        free_list.kept = into.kept
        if free_list.size < LARGE:
            free_list.free = into.free
        while old:
            into.kept.append(old.pop())
        into.made += free_list.made
        free_list.made = 0
