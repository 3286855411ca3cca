"""Reports about a GPU's memory: statistics, summary, and the text of an out-of-memory error."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import pytest

import tritensor as tt
from tests.cuda.memory.fake_source import MB, Caller, FakeSource
from tritensor.cuda.memory import report
from tritensor.cuda.memory.caching_allocator import CachingAllocator
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.errors import OutOfMemoryError

GB = 1 << 30


def small_device(total: int = 64 * MB, others: int = 0) -> tuple[FakeSource, CachingAllocator, Caller]:
    source = FakeSource(total, others)
    allocator = CachingAllocator(source, 0)
    return source, allocator, Caller(allocator)


def refused(caller: Caller, nbytes: int) -> str:
    with pytest.raises(OutOfMemoryError) as raised:
        caller.take(nbytes)
    return str(raised.value)


# numbers
def test_statistics_under_pytorchs_names() -> None:
    _, allocator, caller = small_device()
    blocks = [caller.take(n) for n in (600, 600, 3 * MB, 5 * MB)]
    caller.free(blocks[0])
    caller.free(blocks[2])
    caller.free(blocks[1], 7)
    found = report.stats(allocator)
    assert found["allocated_bytes.all.current"] == 5 * MB
    assert found["allocated_bytes.all.peak"] == 8 * MB + 2048
    assert found["allocated_bytes.small_pool.current"] == 0
    assert found["allocated_bytes.large_pool.current"] == 5 * MB
    assert found["active_bytes.all.current"] == 5 * MB + 1024, "a block that waits for another stream is active"
    assert found["inactive_bytes.all.current"] == 3 * MB + 1024
    assert found["allocation.all.current"] == 1
    assert found["reserved_bytes.all.current"] == 10 * MB
    assert found["reserved_bytes.small_pool.current"] == 2 * MB
    assert found["segment.all.current"] == found["num_device_alloc"] == 3
    assert (found["segment.small_pool.current"], found["segment.large_pool.current"]) == (1, 2)
    assert found["uncut_bytes.all.current"] == 2 * MB - 2048
    assert (found["num_alloc_retries"], found["num_ooms"], found["num_device_free"]) == (0, 0, 0)


def test_every_reserved_byte_is_somewhere() -> None:
    _, allocator, caller = small_device()
    for i in range(60):
        block = caller.take((600, 70_000, 3 * MB)[i % 3], i % 2)
        if i % 4 == 0:
            caller.free(block, *((7,) if i % 8 == 0 else ()))
        elif i % 4 == 3 and i % 3 == 2:
            caller.free(block)
    s = report.stats(allocator)
    parts = s["active_bytes.all.current"] + s["inactive_bytes.all.current"] + s["uncut_bytes.all.current"]
    assert parts == s["reserved_bytes.all.current"]


def test_the_summary_names_sizes_and_lines() -> None:
    _, allocator, _ = small_device()
    free_list = allocator.free_list(3 * MB, 0)
    blocks = [allocator.take(free_list) for _ in range(2)]
    allocator.take(allocator.free_list(5000, 0))
    text = report.summary(allocator)
    assert re.search(r"3\.00 MiB +2 +0 +0 +6\.00 MiB", text), text
    assert re.search(
        r"6\.00 MiB in 2 allocations at tests/cuda/memory/test_memory_report\.py:\d+ in test_the_summary\w+\.?.*: blocks =", text
    ), text
    assert "5.00 KiB in blocks under 1 MiB" in text
    short = report.summary(allocator, abbreviated=True)
    assert "test_memory_report" not in short
    assert "64.00 MiB" in short
    snapshot = report.snapshot(allocator)
    assert [b["address"] for b in snapshot] == sorted(blocks)
    assert all(b["frames"][0]["filename"] == __file__ and b["size"] == 3 * MB for b in snapshot)


@pytest.mark.parametrize(("n", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (3 * GB // 2, "1.50 GiB"), (1 << 60, "1048576.00 TiB")])  # fmt: skip
def test_sizes_for_people(n: int, text: str) -> None:
    assert report.size(n) == text


# out of memory: what was asked, who holds what, and advice that fits
def test_the_text_says_who_holds_what() -> None:
    _, allocator, caller = small_device()

    def weights() -> list[int]:
        return [allocator.take(allocator.free_list(10 * MB, 0)) for _ in range(3)]

    def activations() -> int:
        return allocator.take(allocator.free_list(20 * MB, 0))

    weights()
    activations()
    text = refused(caller, 16 * MB)
    assert "cuda:0: out of memory: 16.00 MiB (16777216 bytes) asked, 14.00 MiB of 64.00 MiB are free" in text
    assert "reserved 50.00 MiB (live tensors hold 50.00 MiB, 0 B are cached)" in text
    lines = [line for line in text.splitlines() if "test_memory_report.py:" in line]
    assert "30.00 MiB in 3 allocations" in lines[0]
    assert "weights" in lines[0]
    assert "20.00 MiB at" in lines[1]
    assert "activations: return allocator.take(" in lines[1]
    assert "why_alive" in text


def test_advice_when_no_device_could_hold_it() -> None:
    _, _, caller = small_device()
    text = refused(caller, 100 * MB)
    assert "no device of 64.00 MiB can hold 100.00 MiB" in text
    assert "smaller batch" not in text


def test_advice_when_others_hold_the_memory() -> None:
    _, _, caller = small_device(others=40 * MB)
    caller.take(MB)
    text = refused(caller, 30 * MB)
    assert "other processes and the driver have 40.00 MiB" in text
    assert "other processes hold 40.00 MiB of this device; nvidia-smi" in text


def test_advice_when_a_limit_refuses() -> None:
    _, allocator, caller = small_device()
    allocator.limit = 8 * MB
    caller.take(6 * MB)
    text = refused(caller, 4 * MB)
    assert "set_per_process_memory_fraction allows this process 8.00 MiB" in text
    assert "the limit, not the device, refuses" in text
    assert "nvidia-smi" not in text


def test_advice_when_the_cache_is_in_pieces() -> None:
    _, _, caller = small_device(16 * MB)
    blocks = [caller.take(500 << 10) for _ in range(32)]
    for block in blocks:
        if (block - min(blocks)) % (2 * MB):  # all but the first of each slab
            caller.free(block)
    text = refused(caller, 6 * MB)
    assert "cached but in pieces" in text, text


def test_advice_when_a_graph_holds_the_memory() -> None:
    source, allocator, caller = small_device(16 * MB)
    pool = allocator.private_pool()
    allocator.capture_begin(pool, 3)
    source.capturing = True
    caller.free(caller.take(10 * MB, 3))
    during = refused(caller, 8 * MB)
    source.capturing = False
    allocator.capture_end(3)
    assert "a graph is being captured" in during
    text = refused(caller, 8 * MB)
    assert "10.00 MiB of the cache belong to captured graphs" in text
    assert "a graph is being captured" not in text


def test_advice_when_free_memory_is_in_pieces() -> None:
    source, _, caller = small_device(16 * MB)
    blocks = sorted(caller.take(2 * MB) for _ in range(8))
    for block in blocks[::2]:
        caller.free(block)
    assert source.used() == 16 * MB
    text = refused(caller, 4 * MB)
    assert "8.00 MiB are free but not in one piece" in text


def test_advice_when_gradients_are_recorded() -> None:
    w = tt.ones(1 << 18, device="cuda", requires_grad=True)
    accounts = runtime().allocator(0)  # type: ignore[attr-defined]
    y = (w * 2.0).exp()
    before = accounts.limit
    accounts.limit = accounts.live + 1000
    try:
        with pytest.raises(OutOfMemoryError) as raised:
            tt.ones(1 << 18, device="cuda")
    finally:
        accounts.limit = before
    assert re.search(r"\d\.\d\d MiB are saved for backward: no_grad\(\)", str(raised.value)), raised.value
    assert "test_memory_report.py" in str(raised.value)
    assert y._tracked


# the public functions, on the emulated device
@pytest.fixture
def fresh_peaks() -> Iterator[None]:
    gc.collect()
    with pytest.warns(FutureWarning, match="resets /all/ peak memory stats"):
        tt.cuda.reset_max_memory_allocated()
    yield
    tt.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.usefixtures("fresh_peaks")
def test_peaks_of_the_emulated_device() -> None:
    before = tt.cuda.memory_allocated()
    x = tt.ones(1000, device="cuda")
    held = tt.cuda.memory_allocated()
    assert held == before + 4000 == tt.cuda.memory_reserved()
    del x
    assert tt.cuda.memory_allocated() == before
    assert tt.cuda.max_memory_allocated() == held == tt.cuda.max_memory_reserved()
    tt.cuda.reset_peak_memory_stats()
    assert tt.cuda.max_memory_allocated() == before
    assert tt.cuda.memory_stats()["allocated_bytes.all.current"] == before
    assert tt.cuda.memory_allocated("cuda:1") == tt.cuda.memory_allocated(1)


@pytest.mark.usefixtures("fresh_peaks")
def test_a_limit_on_the_emulated_device() -> None:
    free, total = tt.cuda.mem_get_info()
    assert 0 < free <= total
    fraction = (tt.cuda.memory_allocated() + 100_000) / total
    tt.cuda.set_per_process_memory_fraction(fraction)
    assert abs(tt.cuda.get_per_process_memory_fraction() - fraction) < 1e-6
    ooms = tt.cuda.memory_stats()["num_ooms"]
    with pytest.raises(OutOfMemoryError, match="set_per_process_memory_fraction allows"):
        tt.ones(1_000_000, device="cuda")
    assert tt.cuda.memory_stats()["num_ooms"] == ooms + 1
    assert tt.ones(1000, device="cuda").sum().item() == 1000
    tt.cuda.empty_cache()
    for wrong in (-0.1, 1.5, "half"):
        with pytest.raises(ValueError, match="from 0 to 1"):
            tt.cuda.set_per_process_memory_fraction(wrong)


def test_the_summary_of_the_emulated_device() -> None:
    x = tt.ones(12345, device="cuda")
    text = tt.cuda.memory_summary()
    assert re.search(
        r"48\.22 KiB at tests/cuda/memory/test_memory_report\.py:\d+ in test_the_summary_of_the_emulated_device: x = tt\.ones", text
    )
    assert any(b["address"] == x.data_ptr() and b["size"] == 4 * 12345 for b in tt.cuda.memory_snapshot())
