"""Parts of the caching allocator: the source of memory, size classes, their free lists, slabs, blocks in limbo."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

SLAB = 2 << 20  # bytes that small blocks are cut from
LARGE = 1 << 20  # a block of this size or more is an allocation of its own
WIDEST_STEP = 16 << 20  # between two size classes


class Source(Protocol):
    """The memory of one GPU as the driver gives it. Streams are raw handles, pointers and events are opaque numbers or objects."""

    def allocate(self, nbytes: int, stream: int) -> int:
        """Address of fresh memory, aligned to 512, usable in `stream`'s order; 0 when the device is full. Raises what else fails."""

    def allocate_for_capture(self, nbytes: int) -> int:
        """The same while a graph is being captured: must not become part of the graph."""

    def free(self, pointer: int, stream: int) -> None:
        """Give back what allocate gave, once the work queued on `stream` is done."""

    def info(self) -> tuple[int, int]:
        """(free, total) bytes of the device."""

    def record(self, stream: int) -> Any:
        """An event that passes when the work queued on `stream` so far is done."""

    def passed(self, event: Any) -> bool: ...

    def wait(self, event: Any) -> None: ...

    def release(self, event: Any) -> None: ...

    def synchronize(self) -> None:
        """Wait for all work of the device."""

    def trim(self) -> None:
        """Give what the driver's pool keeps back to the system."""


def size_class(nbytes: int) -> int:
    """The bytes of the block that serves a request."""
    if nbytes <= 4096:
        return -(-max(nbytes, 1) // 512) * 512
    # eight steps to a power of two: less than an eighth is lost to rounding
    step = min(1 << ((nbytes - 1).bit_length() - 4), WIDEST_STEP)
    return -(-nbytes // step) * step


class FreeList:
    """The free blocks of one size class on one stream. `free` is a list of addresses, the last returned taken first.

    For blocks of 1 MiB and more `free` looks empty always and passes what is appended on to `kept`, so that each of them is
    handed out by `CachingAllocator.take`, which notes who asked. For smaller ones `kept` and `free` are the same list. An allocator
    that does not cache has no list at all: what is appended goes back to the source.
    """

    __slots__ = ("allocator", "free", "kept", "made", "pool", "size", "stream")

    def __init__(self, allocator: Any, size: int, stream: int, pool: int | None) -> None:
        self.allocator = allocator
        self.size = size
        self.stream = stream
        self.pool = pool
        self.made = 0  # blocks of this free list that exist: live, free and in limbo
        self.kept: list[int] = []
        self.free: list[int] = _Returns(self) if size >= LARGE or not allocator.caching else self.kept


class _Returns(list[int]):
    """The `free` of a free list of large blocks: always empty; what is appended is forgotten as live and kept."""

    __slots__ = ("free_list",)

    def __init__(self, free_list: FreeList) -> None:
        self.free_list = free_list

    def append(self, pointer: int) -> None:
        free_list = self.free_list
        a = free_list.allocator
        a.large.pop(pointer, None)
        if a.caching or free_list.pool is not None:
            free_list.kept.append(pointer)
        else:
            a.give_up(pointer, free_list)


class Row(NamedTuple):
    """The blocks of one free list in numbers; `made` of them exist, of which `free` lie on it and `limbo` wait for other streams."""

    size: int
    stream: int
    pool: int | None
    made: int
    free: int
    limbo: int

    @property
    def live(self) -> int:
        return self.made - self.free - self.limbo


class Slab:
    """One allocation that small blocks are cut from, from the front; the first `cut` bytes are blocks."""

    __slots__ = ("base", "cut", "pool", "stream")

    def __init__(self, base: int, stream: int, pool: int | None) -> None:
        self.base = base
        self.cut = 0
        self.stream = stream
        self.pool = pool


class Limbo:
    """A block that waits for events on other streams. An event None stands for one that could not be recorded."""

    __slots__ = ("events", "free_list", "pointer")

    def __init__(self, pointer: int, free_list: FreeList) -> None:
        self.pointer = pointer
        self.free_list = free_list
        self.events: list[Any] = []
