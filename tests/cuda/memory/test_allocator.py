"""The caching allocator over a fake GPU: classes, reuse, streams, a full device, private pools of graphs."""

from __future__ import annotations

import pytest

from tests.cuda.memory.fake_source import MB, check_books, fresh
from tritensor.cuda.memory.caching_allocator import LARGE, SLAB, size_class
from tritensor.ground.errors import OutOfMemoryError


def test_a_class_wastes_at_most_an_eighth() -> None:
    sizes = [1, 512, 513, 4095, 4096, 4097, 5000, MB - 1, MB, MB + 1, 3 * MB + 7, 300 * MB + 1, (9 << 30) + 1]
    sizes += [(1 << k) + d for k in range(9, 36) for d in (-1, 0, 1)]
    for n in sizes:
        block = size_class(n)
        assert block >= n
        assert block % 512 == 0
        assert size_class(block) == block, "a class serves itself"
        assert block - n < (512 if n <= 4096 else min(n / 8, 16 * MB)), n
    small = {size_class(n) for n in range(1, LARGE, 512)}
    assert len(small) == 8 + 8 * 8, "8 classes to 4 KiB, then 8 to each doubling"


def test_without_a_cache_every_block_is_an_allocation_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITENSOR_NO_MEMORY_CACHING", "1")
    source, allocator, caller = fresh()
    blocks = [caller.take(nbytes) for nbytes in (40, 700, 700, 5 * MB)]
    assert sorted(n for n, _ in source.blocks.values()) == [40, 700, 700, 5 * MB], "nothing rounded, nothing shared"
    caller.free(blocks[1])
    assert sorted(n for n, _ in source.blocks.values()) == [40, 700, 5 * MB], "returned at once"
    assert allocator.reserved == allocator.live == source.used()
    for pointer in (blocks[0], blocks[2], blocks[3]):
        caller.free(pointer)
    assert not source.blocks
    assert allocator.reserved == allocator.live == 0
    assert not allocator.large


def test_a_freed_block_is_the_next_one_of_its_class() -> None:
    source, allocator, caller = fresh()
    for nbytes in (40, 700, 5 * MB):
        first = caller.take(nbytes)
        caller.free(first)
        calls = source.calls
        assert caller.take(nbytes) == first
        assert source.calls == calls, "the second request must not reach the driver"
    check_books(allocator, caller, source)


def test_small_blocks_share_a_slab() -> None:
    source, allocator, caller = fresh()
    blocks = [caller.take(1000) for _ in range(SLAB // 1024)]
    assert allocator.reserved == SLAB
    assert source.log == ["allocate"]
    caller.take(1000)
    assert allocator.reserved == 2 * SLAB
    assert max(blocks) - min(blocks) < SLAB
    check_books(allocator, caller, source)


def test_a_slab_serves_what_still_fits() -> None:
    _, allocator, caller = fresh()
    caller.take(900 << 10)
    caller.take(900 << 10)  # 256 KiB are left
    caller.take(900 << 10)
    caller.take(200 << 10)
    caller.take(200 << 10)
    assert allocator.reserved == 2 * SLAB, "the tail of the first slab was not used"


def test_streams_do_not_share_blocks() -> None:
    source, allocator, caller = fresh()
    for nbytes in (600, 3 * MB):
        mine = caller.take(nbytes, 1)
        caller.free(mine)
        assert caller.take(nbytes, 2) != mine
        assert caller.take(nbytes, 1) == mine
    check_books(allocator, caller, source)


def test_the_peaks() -> None:
    _, allocator, caller = fresh()
    a, b = caller.take(4 * MB), caller.take(2 * MB)
    caller.free(a)
    caller.free(b)
    assert (allocator.live, allocator.peak, allocator.reserved) == (0, 6 * MB, 6 * MB)
    allocator.empty_cache()
    assert (allocator.reserved, allocator.peak_reserved) == (0, 6 * MB)


@pytest.mark.parametrize("nbytes", [600, 3 * MB])
def test_a_block_used_elsewhere_waits_for_the_other_stream(nbytes: int) -> None:
    source, allocator, caller = fresh()
    block = caller.take(nbytes)
    source.work(7)
    source.work(8)
    caller.free(block, 7, 8)
    assert allocator.live == 0
    assert allocator.limbo_bytes == size_class(nbytes)
    source.finish(7)
    assert caller.take(nbytes) != block, "handed out while stream 8 may still use it"
    check_books(allocator, caller, source)
    source.finish(8)
    others = [caller.take(nbytes) for _ in range(2)]
    assert block in others
    assert allocator.limbo_bytes == 0
    check_books(allocator, caller, source)


def test_a_full_device_waits_for_limbo_before_it_gives_up() -> None:
    source, allocator, caller = fresh(16 * MB)
    block = caller.take(12 * MB)
    source.work(7)
    caller.free(block, 7)
    caller.take(14 * MB)
    assert "wait" in source.log
    assert allocator.retries == 1
    check_books(allocator, caller, source)


def test_a_full_device_returns_the_cache_and_tries_again() -> None:
    source, allocator, caller = fresh(16 * MB)
    for nbytes in (3 * MB, 5 * MB, 6 * MB):
        caller.free(caller.take(nbytes))
    caller.take(16 * MB)
    assert (allocator.retries, allocator.ooms, allocator.reserved) == (1, 0, 16 * MB)
    check_books(allocator, caller, source)


def test_a_full_device_collects_garbage_before_it_gives_up() -> None:
    source, allocator, caller = fresh(16 * MB)

    class Holder:
        def __init__(self) -> None:
            self.block = caller.take(10 * MB)
            self.me = self  # only the collector can free it

        def __del__(self) -> None:
            caller.free(self.block)

    Holder()
    caller.take(12 * MB)
    check_books(allocator, caller, source)


def test_out_of_memory_leaves_the_books_right() -> None:
    source, allocator, caller = fresh(16 * MB)
    kept = caller.take(10 * MB)
    with pytest.raises(OutOfMemoryError):
        caller.take(8 * MB)
    with pytest.raises(OutOfMemoryError):
        caller.take(17 * MB)
    assert allocator.ooms == 2
    check_books(allocator, caller, source)
    caller.free(kept)
    caller.take(15 * MB)
    check_books(allocator, caller, source)


def test_a_limit_is_a_full_device() -> None:
    source, allocator, caller = fresh()
    allocator.limit = 8 * MB
    caller.free(caller.take(6 * MB))
    caller.take(5 * MB)
    with pytest.raises(OutOfMemoryError):
        caller.take(4 * MB)
    allocator.limit = None
    caller.take(4 * MB)
    check_books(allocator, caller, source)


def test_empty_cache_keeps_a_slab_with_a_live_block() -> None:
    source, allocator, caller = fresh()
    blocks = [caller.take(64 << 10) for _ in range(64)]  # two slabs
    for block in blocks[1:]:
        caller.free(block)
    caller.free(caller.take(3 * MB))
    allocator.empty_cache()
    assert allocator.reserved == SLAB
    check_books(allocator, caller, source)
    assert caller.take(64 << 10) in blocks[1:32], "the rest of the kept slab is used first"
    caller.free(blocks[0])
    check_books(allocator, caller, source)


def test_empty_cache_then_everything_again() -> None:
    source, allocator, caller = fresh()
    for _ in range(3):
        blocks = [caller.take(n) for n in (100, 5000, 300_000, 2 * MB)]
        for block in blocks:
            caller.free(block)
        allocator.empty_cache()
        assert allocator.reserved == source.used() == 0
    assert "trim" in source.log


def test_large_blocks_know_who_asked() -> None:
    _, allocator, caller = fresh()
    small, large = caller.take(600), caller.take(2 * MB)
    assert small not in allocator.large
    nbytes, code, _ = allocator.large[large]
    assert (nbytes, code.co_name) == (2 * MB, "take"), "the caller's frame, not the allocator's"
    caller.free(large)
    assert not allocator.large

    def other() -> int:
        return allocator.take(allocator.free_list(2 * MB, 0))

    assert other() == large
    assert allocator.large[large][1] is other.__code__, "a block handed out again has a new owner"


# private pools
def test_a_graph_owns_its_blocks() -> None:
    source, allocator, caller = fresh()
    eager = caller.take(600, 3)
    caller.free(eager)
    pool = allocator.private_pool()
    allocator.capture_begin(pool, 3)
    source.capturing = True
    inside = [caller.take(600, 3), caller.take(3 * MB, 3)]
    assert eager not in inside
    freed = inside.pop()
    caller.free(freed)
    assert caller.take(3 * MB, 3) == freed, "the graph itself uses its blocks again"
    source.capturing = False
    allocator.capture_end(3)
    caller.free(freed)
    caller.free(inside[0])
    check_books(allocator, caller, source)
    assert caller.take(600, 3) == eager
    assert caller.take(3 * MB, 3) != freed
    reserved = allocator.reserved
    allocator.empty_cache()
    assert allocator.reserved == reserved, "empty_cache took memory that the graph replays into"
    allocator.release_pool(pool)
    assert {caller.take(600, 3), caller.take(3 * MB, 3)} == {inside[0], freed}
    check_books(allocator, caller, source)


def test_a_live_block_of_a_dead_graph_comes_back_to_everyone() -> None:
    source, allocator, caller = fresh()
    pool = allocator.private_pool()
    allocator.capture_begin(pool, 3)
    source.capturing = True
    output = caller.take(600, 3)
    source.capturing = False
    allocator.capture_end(3)
    allocator.release_pool(pool)
    check_books(allocator, caller, source)
    caller.free(output)
    assert caller.take(600, 3) == output
    check_books(allocator, caller, source)


def test_two_graphs_may_share_a_pool() -> None:
    _, allocator, _ = fresh()
    pool = allocator.private_pool()
    assert allocator.private_pool(pool) == pool
    allocator.release_pool(pool)
    assert allocator.free_list(600, 3, pool).pool == pool
    allocator.release_pool(pool)
    with pytest.raises(ValueError, match="pool"):
        allocator.private_pool(pool)


def test_a_capture_neither_waits_nor_frees() -> None:
    source, allocator, caller = fresh(16 * MB)
    cached = caller.take(6 * MB)
    crossed, other = caller.take(600), caller.take(600)
    caller.free(cached)
    pool, dead = allocator.private_pool(), allocator.private_pool()
    source.work(7)
    caller.free(other, 7)
    allocator.capture_begin(pool, 3)
    source.capturing = True
    caller.free(crossed, 7)
    allocator.release_pool(dead)
    allocator.empty_cache()
    with pytest.raises(OutOfMemoryError, match="captured"):
        caller.take(12 * MB, 3)
    source.capturing = False
    allocator.capture_end(3)
    check_books(allocator, caller, source)
    source.finish(7)
    assert {caller.take(600), caller.take(600), caller.take(600)} >= {crossed, other}
    check_books(allocator, caller, source)


def test_a_graphs_block_used_on_another_stream_waits_for_the_graphs_end() -> None:
    source, allocator, caller = fresh()
    pool = allocator.private_pool()
    allocator.capture_begin(pool, 3)
    source.capturing = True
    block = caller.take(600, 3)
    caller.free(block, 7)
    source.capturing = False
    allocator.capture_end(3)
    check_books(allocator, caller, source)
    assert allocator.limbo_bytes == 1024
    allocator.release_pool(pool)
    assert allocator.limbo_bytes == 0
    check_books(allocator, caller, source)
