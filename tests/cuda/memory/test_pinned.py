"""Pinned host memory: its cache over a fake driver with faults, and tensors in it on the emulated device."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as tt
from tests.cuda.memory.fake_source import Fault
from tritensor.cuda.memory import pinned
from tritensor.cuda.memory.pinned import PinnedCache, block_of
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.errors import DeviceError, OutOfMemoryError
from tritensor.ground.thread_state import here


class Driver:
    """Pins real memory, up to `most` bytes; events pass when their stream is finished; raises Fault at the calls in `fail_at`."""

    def __init__(self, most: int = 1 << 20) -> None:
        self.most = most
        self.blocks: dict[int, np.ndarray] = {}
        self.events: dict[int, tuple[int, int] | None] = {}  # where it was recorded; None: nowhere, or it has passed
        self.copying: dict[int, set[tuple[int, int]]] = {}  # what the copies of a stream use
        self.log: list[str] = []
        self.fail_at: set[int] = set()

    def _call(self, name: str) -> None:
        self.log.append(name)
        if len(self.log) in self.fail_at:
            raise Fault(f"{name}, call {len(self.log)}")

    def pinned_allocate(self, nbytes: int) -> int:
        self._call("pin")
        if nbytes + sum(b.nbytes for b in self.blocks.values()) > self.most:
            raise OutOfMemoryError("cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY")
        block = np.empty(nbytes, np.uint8)
        self.blocks[block.ctypes.data] = block
        return block.ctypes.data

    def pinned_free(self, pointer: int) -> None:
        self._call("unpin")
        assert not self.copying.get(pointer), "unpinned while a copy uses it"
        del self.blocks[pointer]

    def event_create(self, index: int, timing: bool, blocking: bool) -> int:
        self._call("create")
        assert not timing
        number = len(self.log)
        self.events[number] = None
        return number

    def event_record(self, index: int, event: int, stream: int) -> None:
        self._call("record")
        self.events[event] = (index, stream)

    def event_query(self, index: int, event: int) -> bool:
        self._call("query")
        return self.events[event] is None

    def event_synchronize(self, index: int, event: int) -> None:
        self._call("wait")
        where = self.events[event]
        if where is not None:
            self.finish(*where)

    def event_destroy(self, index: int, event: int) -> None:
        del self.events[event]

    def finish(self, index: int, stream: int) -> None:
        """All copies that a stream was given are done."""
        self.events = {e: None if where == (index, stream) else where for e, where in self.events.items()}
        for streams in self.copying.values():
            streams.discard((index, stream))


def fresh(most: int = 1 << 20) -> tuple[Driver, PinnedCache]:
    driver = Driver(most)
    return driver, PinnedCache(driver)  # type: ignore[arg-type]


def test_a_dead_block_serves_the_next_request() -> None:
    driver, cache = fresh()
    block = cache.take(5000)
    pointer = block.pointer
    assert (cache.live, cache.reserved) == (5120, 5120)
    del block
    again = cache.take(4900)
    assert again.pointer == pointer
    assert driver.log == ["pin"]
    assert cache.live == cache.peak == cache.peak_reserved == 5120


def test_a_block_that_a_copy_uses_waits_for_it() -> None:
    driver, cache = fresh()
    block = cache.take(5000)
    pointer = block.pointer
    block.used.add((0, 7))
    block.used.add((1, 8))
    del block
    second = cache.take(5000)
    assert second.pointer != pointer
    driver.finish(0, 7)
    third = cache.take(5000)
    assert third.pointer != pointer, "stream 8 may still read it"
    driver.finish(1, 8)
    assert cache.take(5000).pointer == pointer
    assert not driver.events


def test_a_full_host_returns_the_cache_after_waiting() -> None:
    driver, cache = fresh(40_000)
    block = cache.take(20_000)
    block.used.add((0, 7))
    del block
    kept = cache.take(36_000)
    assert "wait" in driver.log
    assert kept.size == cache.reserved
    with pytest.raises(OutOfMemoryError, match=r"pinned memory: 8192 bytes asked, 36864 held by pinned tensors.*swapped"):
        cache.take(8192)
    assert cache.live == cache.reserved == 36864


def test_a_capture_neither_asks_nor_records(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, cache = fresh()
    block = cache.take(5000)
    block.used.add((0, 7))
    driver.copying[block.pointer] = {(0, 7)}
    monkeypatch.setattr(here, "capture", object(), raising=False)
    del block
    cache.take(5000)
    assert driver.log == ["pin", "pin"]
    monkeypatch.undo()
    one = cache.take(5000)
    driver.finish(0, 7)
    two = cache.take(5000)
    assert driver.log.count("pin") == 2
    assert one.pointer != two.pointer


def check(cache: PinnedCache, driver: Driver, live: list[Any]) -> None:
    spans = sorted((b.pointer, b.pointer + b.size) for b in live)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False)), "two live blocks overlap"
    held = sum(b.nbytes for b in driver.blocks.values())
    assert cache.reserved == held
    waiting = sum(block.size for block in cache._waiting)
    free = sum(size * len(kept) for size, kept in cache._free.items())
    dead = sum(size for _, size, _ in cache.returned)
    assert cache.live == sum(b.size for b in live) + dead
    assert cache.live + waiting + free == cache.reserved
    assert len(driver.events) == sum(len(block.events) for block in cache._waiting)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from([1, 5000, 40_000, 100_000])),
        st.tuples(st.just("drop"), st.integers(0, 20)),
        st.tuples(st.just("copy"), st.integers(0, 20)),
        st.tuples(st.just("finish"), st.integers(0, 2)),
        st.tuples(st.just("empty"), st.just(0)),
    ),
    min_size=5,
    max_size=30,
)


def play(steps: list[tuple[str, int]], fail_at: set[int]) -> int:
    """Run a story, the books checked after each step; how many calls reached the driver."""
    driver, cache = fresh(300_000)
    driver.fail_at = fail_at
    live: list[Any] = []
    for what, n in steps:
        try:
            if what == "take":
                live.append(cache.take(n))
                assert not driver.copying.get(live[-1].pointer), "handed out while a copy uses it"
            elif what == "drop" and live:
                del live[n % len(live)]
            elif what == "copy" and live:
                block = live[n % len(live)]
                block.used.add((0, n % 3))
                driver.copying.setdefault(block.pointer, set()).add((0, n % 3))
                del block
            elif what == "finish":
                driver.finish(0, n)
            elif what == "empty":
                cache.empty()
        except (Fault, OutOfMemoryError):
            pass  # the point: whatever failed, the books below are right
        check(cache, driver, live)
    driver.fail_at = set()
    calls = len(driver.log)
    live.clear()
    cache.empty()
    check(cache, driver, live)
    assert not driver.blocks, "memory was lost"
    return calls


@given(STEPS, st.sets(st.integers(1, 50), max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_story_with_any_faults(steps: list[tuple[str, int]], fail_at: set[int]) -> None:
    play(steps, fail_at)


def test_a_fault_at_every_call() -> None:
    story = [
        ("take", 5000), ("copy", 0), ("take", 5000), ("drop", 0), ("take", 40_000), ("copy", 1), ("copy", 4), ("drop", 1), ("take", 5000),
        ("finish", 0), ("take", 40_000), ("finish", 1), ("take", 5000), ("drop", 0), ("copy", 0), ("drop", 0), ("take", 100_000), ("empty", 0),
    ]  # fmt: skip
    calls = play(story, set())
    assert calls > 15
    for n in range(1, calls + 1):
        play(story, {n})
        play(story, {n, n + 1})


# tensors
def test_pin_memory() -> None:
    x = tt.arange(6.0).reshape(2, 3)
    p = x.pin_memory()
    assert not x.is_pinned()
    assert p.is_pinned()
    assert p.device.type == "cpu"
    np.testing.assert_array_equal(p.numpy(), x.numpy())
    assert p.pin_memory() is p
    assert p[1:].is_pinned(), "a view lies in the same memory"
    assert p.numpy().T.base is not None
    assert not (p + 1).is_pinned()
    assert not x.to("cuda").is_pinned()
    p[0, 0] = 9.0
    assert x[0, 0].item() == 0.0


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.bool, tt.int64, tt.float8_e4m3fn, tt.complex64])
def test_every_type_can_be_pinned(dtype: Any) -> None:
    x = tt.ones(5).to(dtype)
    p = x.pin_memory()
    assert p.is_pinned()
    assert p.dtype is dtype
    assert p.numpy().tobytes() == x.numpy().tobytes()


def test_odd_shapes_can_be_pinned() -> None:
    assert tt.tensor(3.0).pin_memory().item() == 3.0
    assert tt.zeros(0, 4).pin_memory().shape == (0, 4)
    x = tt.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(x.T.pin_memory().numpy(), x.numpy().T)
    np.testing.assert_array_equal(x[:, ::2].pin_memory().to("cuda", non_blocking=True).cpu().numpy(), x.numpy()[:, ::2])


def test_tensors_made_pinned() -> None:
    for made in (
        tt.zeros(3, pin_memory=True),
        tt.ones(3, pin_memory=True),
        tt.empty(3, pin_memory=True),
        tt.tensor([1, 2], pin_memory=True),
    ):
        assert made.is_pinned()
    assert tt.ones(3, pin_memory=True, requires_grad=True).is_leaf
    with pytest.raises(DeviceError, match="pin_memory: the tensor is on cuda:0"):
        tt.zeros(3, device="cuda", pin_memory=True)


def test_the_memory_outlives_the_tensor_as_long_as_an_array_needs_it() -> None:
    array = tt.arange(1000.0).pin_memory().numpy()[500:]
    gc.collect()
    others = [tt.zeros(1000).pin_memory() for _ in range(3)]
    np.testing.assert_array_equal(array, np.arange(500.0, 1000.0))
    assert len(others) == 3


def test_memory_comes_back_to_the_cache() -> None:
    before = tt.cuda.host_memory_stats()
    x = tt.zeros(30_000).pin_memory()
    during = tt.cuda.host_memory_stats()
    assert during["allocated_bytes.current"] - before["allocated_bytes.current"] == block_of(x.numpy()).size  # type: ignore[union-attr]
    pointer = x.data_ptr()
    del x
    after = tt.cuda.host_memory_stats()
    assert after["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert tt.ones(30_000).pin_memory().data_ptr() == pointer
    gc.collect()
    tt.cuda.empty_cache()
    found = tt.cuda.host_memory_stats()
    assert found["reserved_bytes.current"] == found["allocated_bytes.current"] <= before["reserved_bytes.current"]


def test_gradients_pass_through() -> None:
    x = tt.ones(3, requires_grad=True)
    (x.pin_memory().to("cuda", non_blocking=True) * 2.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


class Spy:
    """Sees how copies are asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, bool]] = []
        served: Any = runtime()
        for name, place in (("copy_to_device", 3), ("copy_to_host", 3)):
            plain = getattr(served, name)

            def call(*args: Any, plain: Any = plain, name: str = name, place: int = place, **kwargs: Any) -> Any:
                self.seen.append((name, kwargs.get("wait", args[place] if len(args) > place else True)))
                return plain(*args, **kwargs)

            monkeypatch.setattr(served, name, call)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def test_copies_wait_only_where_they_must(spy: Spy) -> None:
    x = tt.arange(6.0).reshape(2, 3)
    p = x.pin_memory()
    y = p.to("cuda", non_blocking=True)
    assert spy.seen == [("copy_to_device", False)]
    assert block_of(p._array).used == {(0, 0)}  # type: ignore[union-attr]
    p.cuda()
    x.cuda(non_blocking=True)
    x.to("cuda", tt.float32, True)
    assert spy.seen[1:] == [("copy_to_device", True), ("copy_to_device", False), ("copy_to_device", False)]
    spy.seen.clear()
    back = y.to("cpu", non_blocking=True)
    assert spy.seen == [("copy_to_host", False)]
    assert back.is_pinned()
    assert block_of(back._array).used == {(0, 0)}  # type: ignore[union-attr]
    tt.cuda.synchronize()
    np.testing.assert_array_equal(back.numpy(), x.numpy())
    assert not y.cpu().is_pinned()
    assert spy.seen[-1] == ("copy_to_host", True)


def test_what_the_host_computes_on_is_there(spy: Spy) -> None:
    y = tt.arange(6.0, device="cuda").reshape(2, 3)
    down = y.T.to("cpu", tt.float64, non_blocking=True)  # laid out and cast on the GPU, then copied
    assert spy.seen == [("copy_to_host", False)]
    assert down.dtype is tt.float64
    assert down.stride() == (1, 3)  # as y.T lies
    np.testing.assert_array_equal(down.numpy(), y.cpu().numpy().T)
    spy.seen.clear()
    assert (
        y.to("cpu", tt.complex64, non_blocking=True).dtype is tt.complex64
    )  # no kernel makes complex numbers: the host does, after waiting
    assert spy.seen == [("copy_to_host", True)]
    spy.seen.clear()
    tt.zeros(2, 3).copy_(y, non_blocking=True)
    assert spy.seen == [("copy_to_host", True)], "the host reads the values at once"
    tt.zeros(2, 3, device="cuda").copy_(tt.ones(2, 3).pin_memory(), non_blocking=True)
    assert ("copy_to_device", False) in spy.seen


def test_itself_where_nothing_changes() -> None:
    x = tt.ones(3)
    y = x.cuda()
    assert x.to("cpu", non_blocking=True) is x
    assert y.to("cuda", non_blocking=True) is y
    assert y.to("cuda:0", tt.float32, True) is y
    assert y.to("cuda", tt.float32, False, True) is not y


def test_between_gpus() -> None:
    x = tt.arange(12.0, device="cuda:0").reshape(3, 4)
    for part in (x, x.T, x[:, 1:3], x[1], tt.zeros(0, device="cuda:0")):
        there = part.to("cuda:1", non_blocking=True)
        assert str(there.device) == "cuda:1"
        np.testing.assert_array_equal(there.cpu().numpy(), part.cpu().numpy())
    there[...] = 5.0


def test_record_stream() -> None:
    side = tt.cuda.Stream()
    x = tt.ones(3, device="cuda")
    x.record_stream(side)
    with pytest.raises(DeviceError, match="on the CPU"):
        tt.ones(3).record_stream(side)
    with pytest.raises(DeviceError, match="belongs to cuda:0"):
        tt.ones(3, device="cuda:1").record_stream(side)


def test_a_graph_keeps_the_memory_it_copies_from(monkeypatch: pytest.MonkeyPatch) -> None:
    class Capture:
        def takes(self, index: int) -> bool:
            return index == 0

    p = tt.ones(3).pin_memory()
    monkeypatch.setattr(here, "capture", Capture(), raising=False)
    pinned.used(p._array, 0, 5)
    monkeypatch.undo()
    pointer = p.data_ptr()
    returned = pinned.cache().returned
    del p
    gc.collect()
    assert pointer not in [place for place, _, _ in returned]
