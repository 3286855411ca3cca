"""The memory of a GPU that is not there: addresses handed out first-fit from a small device, streams and events by hand, faults on order."""

from __future__ import annotations

from tritensor.cuda.memory.caching_allocator import CachingAllocator, FreeList

MB = 1 << 20
START = 1 << 21  # the first address


class Fault(RuntimeError):
    """What the fake driver raises on order."""


class FakeSource:
    """A device of `total` bytes. Every call is counted; `fail_at` names the number of the call that raises Fault.

    Work of a stream is the number of things queued on it: `work(stream)` queues one, `finish(stream)` runs them all.
    """

    def __init__(self, total: int = 64 * MB, others: int = 0) -> None:
        self.total = total
        self.others = others
        self.blocks: dict[int, tuple[int, int]] = {}
        self.calls = 0
        self.log: list[str] = []
        self.fail_at: set[int] = set()
        self.queued: dict[int, int] = {}
        self.done: dict[int, int] = {}
        self.events: dict[int, tuple[int, int]] = {}
        self.capturing = False
        self._next_event = 1

    def _call(self, name: str) -> None:
        self.calls += 1
        self.log.append(name)
        if self.calls in self.fail_at:
            raise Fault(f"{name}, call {self.calls}")

    def used(self) -> int:
        return sum(n for n, _ in self.blocks.values())

    def allocate(self, nbytes: int, stream: int) -> int:
        self._call("allocate")
        at = START
        for base, (n, _) in sorted(self.blocks.items()):
            if at + nbytes <= base:
                break
            at = base + n
        if at + nbytes > START + self.total - self.others:
            return 0
        self.blocks[at] = (nbytes, stream)
        return at

    def allocate_for_capture(self, nbytes: int) -> int:
        assert self.capturing, "allocate_for_capture outside a capture"
        return self.allocate(nbytes, -1)

    def free(self, pointer: int, stream: int) -> None:
        self._call("free")
        assert not self.capturing, "free during a capture"
        del self.blocks[pointer]

    def info(self) -> tuple[int, int]:
        return self.total - self.others - self.used(), self.total

    def work(self, stream: int) -> None:
        self.queued[stream] = self.queued.get(stream, 0) + 1

    def finish(self, stream: int) -> None:
        self.done[stream] = self.queued.get(stream, 0)

    def record(self, stream: int) -> int:
        self._call("record")
        assert not self.capturing, "record during a capture"
        event, self._next_event = self._next_event, self._next_event + 1
        self.events[event] = (stream, self.queued.get(stream, 0))
        return event

    def passed(self, event: int) -> bool:
        self._call("passed")
        assert not self.capturing, "query during a capture"
        stream, at = self.events[event]
        return self.done.get(stream, 0) >= at

    def wait(self, event: int) -> None:
        self._call("wait")
        stream, at = self.events[event]
        self.done[stream] = max(self.done.get(stream, 0), at)

    def release(self, event: int) -> None:
        del self.events[event]

    def synchronize(self) -> None:
        self._call("synchronize")
        assert not self.capturing, "synchronize during a capture"
        self.done = dict(self.queued)

    def trim(self) -> None:
        self._call("trim")


class Caller:
    """Takes and frees as Storage does, and knows what is live."""

    def __init__(self, allocator: CachingAllocator) -> None:
        self.allocator = allocator
        self.live: dict[int, FreeList] = {}
        self.busy: list[tuple[int, int, int, int]] = []  # start, end of a freed block; a stream that uses it until so much is done

    def take(self, nbytes: int, stream: int = 0) -> int:
        a = self.allocator
        free_list = a.by_request.get((nbytes, stream)) or a.free_list(nbytes, stream)
        free = free_list.free
        if free:
            pointer = free.pop()
            n = a.live + free_list.size
            a.live = n
            if n > a.peak:
                a.peak = n
        else:
            pointer = a.take(free_list, nbytes)
        assert pointer not in self.live
        self.live[pointer] = free_list
        done = a.source.done  # type: ignore[attr-defined]
        self.busy = [b for b in self.busy if done.get(b[2], 0) < b[3]]
        for start, end, user, _ in self.busy:
            assert pointer >= end or pointer + free_list.size <= start, f"{pointer:#x} was handed out while stream {user} may use it"
        return pointer

    def free(self, pointer: int, *streams: int) -> None:
        free_list = self.live.pop(pointer)
        if streams:
            queued = self.allocator.source.queued  # type: ignore[attr-defined]
            self.busy += [(pointer, pointer + free_list.size, s, queued.get(s, 0)) for s in streams]
            self.allocator.give_back_later(pointer, free_list, streams)
        else:
            self.allocator.live -= free_list.size
            free_list.free.append(pointer)


def check_books(allocator: CachingAllocator, caller: Caller, source: FakeSource) -> None:
    """Every byte reserved is live, free, in limbo or uncut; blocks do not overlap; the books agree with the source."""
    spans = sorted((p, p + s.size) for p, s in caller.live.items())
    for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
        assert end <= start, f"two live blocks overlap at {start:#x}"
    bounds = sorted((b, b + n) for b, (n, _) in source.blocks.items())
    for start, end in spans:
        assert any(lo <= start and end <= hi for lo, hi in bounds), f"live block {start:#x} is not in memory of the source"
    live = sum(s.size for s in caller.live.values())
    assert allocator.live == live
    assert allocator.reserved == source.used()
    assert allocator.peak >= allocator.live
    assert allocator.peak_reserved >= allocator.reserved
    rows = allocator.rows()
    free = sum(r.size * r.free for r in rows)
    assert sum(r.live for r in rows) == len(caller.live)
    assert sum(r.size * r.limbo for r in rows) == allocator.limbo_bytes
    assert allocator.live + free + allocator.limbo_bytes + allocator.uncut_bytes() == allocator.reserved
    assert set(allocator.large) == {p for p, s in caller.live.items() if s.size >= MB}
    assert len(source.events) == sum(e is not None for entry in allocator._limbo for e in entry.events)


def fresh(total: int = 64 * MB) -> tuple[FakeSource, CachingAllocator, Caller]:
    source = FakeSource(total)
    allocator = CachingAllocator(source, 0)
    return source, allocator, Caller(allocator)
