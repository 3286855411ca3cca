"""The caching allocator's books when threads and the collector enter in the middle, and with a fault at every call."""

from __future__ import annotations

import functools
import gc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuda.memory.fake_source import MB, Caller, FakeSource, Fault, check_books, fresh
from tests.threads.together import together
from tritensor.cuda.memory.caching_allocator import CachingAllocator
from tritensor.ground.errors import OutOfMemoryError


# threads and the collector
@pytest.mark.slow
def test_the_collector_frees_in_the_middle_of_everything() -> None:
    source, allocator, caller = fresh(16 * MB)

    def collect(name: str, plain: Any) -> Any:
        def call(*args: Any) -> Any:
            garbage()
            gc.collect()
            return plain(*args)

        return call

    class Holder:
        def __init__(self, nbytes: int, *streams: int) -> None:
            self.block, self.streams = caller.take(nbytes), streams
            self.me = self

        def __del__(self) -> None:
            caller.free(self.block, *self.streams)

    waiting: list[tuple[int, ...]] = []

    def garbage() -> None:
        if waiting:
            Holder(*waiting.pop())

    for name in ("allocate", "free", "record", "passed", "wait", "synchronize", "trim"):
        setattr(source, name, collect(name, getattr(source, name)))
    for round in range(12):
        waiting += [(3000,), (2 * MB, 7), (3000, 8)]
        blocks = [caller.take(n) for n in (600, 2 * MB, 40_000, 4 * MB)]
        source.work(7)
        caller.free(blocks[0], 7)
        caller.free(blocks[1])
        check_books(allocator, caller, source)
        if round % 3 == 2:
            allocator.empty_cache()
        source.finish(7)
        for block in blocks[2:]:
            caller.free(block)
        gc.collect()
        check_books(allocator, caller, source)


def test_threads_keep_the_books() -> None:
    source, allocator, caller = fresh(256 * MB)

    def run(seed: int) -> None:
        mine = Caller(allocator)
        for i in range(600):
            block = mine.take((600, 600, 30_000, 2 * MB)[(i + seed) % 4], 0)
            if i % 50 == 49:
                allocator.empty_cache()
            mine.free(block, *((5,) if i % 7 == 0 else ()))

    together(*[functools.partial(run, k) for k in range(4)])
    check_books(allocator, caller, source)


# faults
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from([1, 600, 9000, 700_000, MB, 3 * MB, 5 * MB]), st.integers(0, 2)),
        st.tuples(st.just("free"), st.integers(0, 99), st.sampled_from([(), (), (), (1,), (2,), (1, 2)])),
        st.tuples(st.just("finish"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("empty"), st.just(0), st.just(0)),
        st.tuples(st.just("capture"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("captured"), st.just(0), st.just(0)),
    ),
    min_size=8,
    max_size=40,
)


def play(steps: list[Any], fail_at: set[int]) -> int:
    """Run a story, the books checked after each step; the number of calls that reached the source."""
    source = FakeSource(24 * MB)
    source.fail_at = fail_at
    allocator = CachingAllocator(source, 0)
    caller = Caller(allocator)
    capturing: tuple[int, int] | None = None
    for what, a, b in steps:
        try:
            if what == "take":
                caller.take(a, b)
                source.work(b)
            elif what == "free" and caller.live:
                block = sorted(caller.live)[a % len(caller.live)]
                others = tuple(s for s in b if s != caller.live[block].stream)
                for s in others:
                    source.work(s)
                caller.free(block, *others)
            elif what == "finish":
                source.finish(a)
            elif what == "empty":
                allocator.empty_cache()
            elif what == "capture" and capturing is None:
                capturing = (allocator.private_pool(), a)
                allocator.capture_begin(*capturing)
                source.capturing = True
            elif what == "captured" and capturing is not None:
                (pool, stream), capturing = capturing, None
                source.capturing = False
                try:
                    allocator.capture_end(stream)
                finally:
                    allocator.release_pool(pool)
        except (Fault, OutOfMemoryError):
            pass  # the point: whatever failed, the books below are right
        check_books(allocator, caller, source)
    source.fail_at = set()
    if capturing is not None:
        source.capturing = False
        allocator.capture_end(capturing[1])
        allocator.release_pool(capturing[0])
    calls = source.calls
    for block in list(caller.live):
        caller.free(block)
    source.synchronize()
    allocator._release_dying()
    allocator._wait_limbo()
    allocator.empty_cache()
    check_books(allocator, caller, source)
    assert source.used() == 0, "memory was lost"
    return calls


@given(STEPS, st.sets(st.integers(1, 60), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_story_with_any_faults(steps: list[Any], fail_at: set[int]) -> None:
    play(steps, fail_at)


@pytest.mark.slow
def test_a_fault_at_every_call() -> None:
    story: list[Any] = [
        ("take", 600, 0), ("take", 3 * MB, 0), ("take", 9000, 1), ("take", 5 * MB, 1), ("free", 1, (1,)), ("free", 0, (1, 2)),
        ("take", 3 * MB, 0), ("finish", 1, 0), ("take", 3 * MB, 0), ("capture", 1, 0), ("take", 3 * MB, 1), ("free", 0, (2,)),
        ("captured", 0, 0), ("free", 0, (2,)), ("take", 5 * MB, 2), ("take", 5 * MB, 0), ("take", 5 * MB, 0), ("free", 2, ()),
        ("take", MB, 2), ("empty", 0, 0), ("take", 700_000, 2), ("empty", 0, 0),
    ]  # fmt: skip
    calls = play(story, set())
    assert calls > 25
    for n in range(1, calls + 1):
        play(story, {n})
        play(story, {n, n + 1})
