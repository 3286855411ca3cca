"""Memory through the driver's own calls, on the stub: the cache, other streams, limits, and copies that run while the host goes on."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.ground.errors import OutOfMemoryError

MB = 1 << 20
SLOW = 30_000  # microseconds


@on_stub()
def test_a_cached_block_costs_no_driver_call() -> None:
    for n in (10, 100_000, 1 << 20):
        del_me = tt.empty(n, device="cuda")
        del del_me
        with control.counted() as calls:
            again = tt.empty(n, device="cuda")
            del again
        assert calls == {}, (n, calls)


@on_stub()
def test_the_books_are_the_drivers() -> None:
    kept = [tt.empty(n, device="cuda") for n in (10, 300_000, 1 << 20)]
    assert sum(control.live_allocations().values()) == tt.cuda.memory_reserved() == 2 * MB + 1_310_720 + 4 * MB
    assert tt.cuda.memory_allocated() == 512 + 1_310_720 + 4 * MB
    del kept[1:]
    assert tt.cuda.memory_reserved() == 2 * MB + 1_310_720 + 4 * MB
    assert tt.cuda.max_memory_allocated() == 512 + 1_310_720 + 4 * MB
    tt.cuda.empty_cache()
    assert sum(control.live_allocations().values()) == tt.cuda.memory_reserved() == 2 * MB, "the slab holds a live tensor"
    kept.clear()
    tt.cuda.empty_cache()
    assert control.live_allocations() == {}
    assert control.bytes_in_use() == 0, "the driver's pool kept memory back"
    assert tt.cuda.memory_stats()["num_device_free"] == 3


@on_stub()
def test_large_blocks_know_their_line_again_after_reuse() -> None:
    x = tt.empty(1 << 20, device="cuda")  # first
    pointer = x.data_ptr()
    del x
    y = tt.empty(1 << 20, device="cuda")  # second
    assert y.data_ptr() == pointer
    assert "# second" in tt.cuda.memory_summary()
    assert "# first" not in tt.cuda.memory_summary()
    assert "# second" not in tt.cuda.memory_summary(abbreviated=True)
    del y
    assert "# second" not in tt.cuda.memory_summary()


@on_stub(STUB_MEMORY=64 * MB)
def test_a_limit() -> None:
    tt.cuda.set_per_process_memory_fraction(0.5)
    kept = tt.empty(24 * MB, dtype=tt.uint8, device="cuda")
    with pytest.raises(OutOfMemoryError, match=r"allows this process 32\.00 MiB(.|\n)*the limit, not the device, refuses"):
        tt.empty(16 * MB, dtype=tt.uint8, device="cuda")
    tt.cuda.set_per_process_memory_fraction(1.0)
    tt.empty(16 * MB, dtype=tt.uint8, device="cuda")
    assert kept.numel() == 24 * MB


@on_stub(STUB_MEMORY=64 * MB)
def test_garbage_is_collected_before_memory_runs_out() -> None:
    gc.collect()
    gc.disable()
    for _ in range(5):
        cycle: list[object] = [tt.empty(20 * MB, dtype=tt.uint8, device="cuda")]
        cycle.append(cycle)
    assert tt.cuda.memory_stats()["num_ooms"] == 0
    assert tt.cuda.memory_stats()["num_alloc_retries"] >= 1


@on_stub()
def test_a_block_used_on_another_stream_waits_for_it() -> None:
    side = tt.cuda.Stream()
    x = tt.empty(1 << 20, device="cuda")
    pointer = x.data_ptr()
    control.slow(launches=SLOW)
    with tt.cuda.stream(side):
        y = x + 1.0  # reads x on the side stream, for a while
    del x
    z = tt.empty(1 << 20, device="cuda")
    assert z.data_ptr() != pointer, "handed out while the side stream reads it"
    assert tt.cuda.memory_stats()["active_bytes.all.current"] > tt.cuda.memory_allocated()
    side.synchronize()
    w = tt.empty(1 << 20, device="cuda")
    assert w.data_ptr() == pointer
    assert y.shape == z.shape
    with tt.cuda.stream(side):
        y = w + 1.0  # the same from a recording
    del w
    assert tt.empty(1 << 20, device="cuda").data_ptr() != pointer


@on_stub()
def test_a_recording_of_several_launches_marks_the_stream_of_its_inputs() -> None:
    side = tt.cuda.Stream()
    with tt.cuda.stream(side):
        for _ in range(3):  # learnt, then replayed
            tt.empty(1 << 20, device="cuda").sum()
        side.synchronize()
        x = tt.empty(1 << 20, device="cuda")
        control.reset()
        x.sum()
        assert len(control.launches()) == 2, "a long sum is two launches"
    del x
    tt.cuda.synchronize()
    w = tt.empty(1 << 20, device="cuda")  # of the default stream
    pointer = w.data_ptr()
    control.slow(launches=SLOW)
    with control.counted() as calls, tt.cuda.stream(side):
        w.sum()
    assert set(calls) == {"cuLaunchKernelEx"}, "it was no replay"
    del w
    assert tt.empty(1 << 20, device="cuda").data_ptr() != pointer, "handed out while the other stream may read it"
    side.synchronize()
    blocks = [tt.empty(1 << 20, device="cuda") for _ in range(2)]
    assert pointer in [t.data_ptr() for t in blocks]


@on_stub()
def test_record_stream() -> None:
    side = tt.cuda.Stream()
    control.slow(launches=SLOW)
    x = tt.empty(1 << 20, device="cuda")
    pointer = x.data_ptr()
    with tt.cuda.stream(side):
        tt.zeros(10, device="cuda")
    x.record_stream(side)
    del x
    assert tt.empty(1 << 20, device="cuda").data_ptr() != pointer
    side.synchronize()
    assert pointer in [tt.empty(1 << 20, device="cuda").data_ptr(), *[tt.empty(1 << 20, device="cuda").data_ptr()]]


# pinned memory
@on_stub()
def test_a_copy_from_pinned_memory_does_not_wait() -> None:
    values = np.arange(100_000, dtype=np.float32)
    p = tt.from_numpy(values).pin_memory()
    control.slow_copies(SLOW)
    start = time.perf_counter()
    with control.counted() as calls:
        x = p.to("cuda", non_blocking=True)
    assert time.perf_counter() - start < SLOW / 2e6, "the host waited"
    assert calls["cuMemcpyHtoDAsync"] == 1
    assert not {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"} & set(calls)
    tt.cuda.synchronize()
    control.slow()
    np.testing.assert_array_equal(x.cpu().numpy(), values)


@on_stub()
def test_pinned_memory_is_not_used_again_while_a_copy_reads_it() -> None:
    values = np.arange(100_000, dtype=np.float32)
    p = tt.from_numpy(values).pin_memory()
    pointer = p.data_ptr()
    zeros = tt.zeros(100_000)  # before the copy: the first one loads a file, which takes as long
    control.slow_copies(SLOW)
    x = p.to("cuda", non_blocking=True)
    del p
    other = zeros.pin_memory()
    assert other.data_ptr() != pointer, "handed out while the GPU reads it"
    tt.cuda.synchronize()
    assert tt.zeros(100_000).pin_memory().data_ptr() == pointer
    control.slow()
    np.testing.assert_array_equal(x.cpu().numpy(), values)


@on_stub()
def test_a_copy_to_the_host_does_not_wait() -> None:
    values = np.arange(100_000, dtype=np.float32)
    x = tt.from_numpy(values).cuda()
    control.slow_copies(SLOW)
    start = time.perf_counter()
    y = x.to("cpu", non_blocking=True)
    assert time.perf_counter() - start < SLOW / 2e6, "the host waited"
    assert y.is_pinned()
    done = tt.cuda.Event()
    done.record()
    done.synchronize()
    np.testing.assert_array_equal(y.numpy(), values)


@on_stub()
def test_a_copy_to_the_host_on_another_stream_keeps_its_source() -> None:
    side = tt.cuda.Stream()
    x = tt.from_numpy(np.arange(1 << 20, dtype=np.float32)).cuda()
    pointer = x.data_ptr()
    control.slow_copies(SLOW)
    with tt.cuda.stream(side):
        y = x.to("cpu", non_blocking=True)
    del x
    assert tt.empty(1 << 20, device="cuda").data_ptr() != pointer
    side.synchronize()
    assert y[-1].item() == (1 << 20) - 1


@on_stub()
def test_a_result_dropped_before_its_copy_is_done_is_not_overwritten_into() -> None:
    x = tt.from_numpy(np.arange(100_000, dtype=np.float32)).cuda()
    zeros = tt.zeros(100_000)  # made before: the first op of a process loads Triton, and the copy would be done
    control.slow_copies(SLOW)
    y = x.to("cpu", non_blocking=True)
    pointer = y.data_ptr()
    del y
    z = zeros.pin_memory()
    assert z.data_ptr() != pointer
    tt.cuda.synchronize()
    assert z.sum().item() == 0, "a copy that was still running wrote into memory that had a new owner"


@on_stub()
def test_ordinary_memory_is_taken_over_before_the_call_returns() -> None:
    values = np.arange(100_000, dtype=np.float32)
    control.slow_copies(SLOW)
    x = tt.from_numpy(values).to("cuda", non_blocking=True)
    values[:] = -1.0
    tt.cuda.synchronize()
    control.slow()
    np.testing.assert_array_equal(x.cpu().numpy(), np.arange(100_000, dtype=np.float32))


@on_stub()
def test_pinned_memory_is_given_back() -> None:
    before = control.pinned()[1]
    kept = [tt.zeros(100_000).pin_memory() for _ in range(3)]
    assert control.pinned()[1] - before == tt.cuda.host_memory_stats()["reserved_bytes.current"] == 3 * 425_984
    del kept[1:]
    tt.cuda.empty_cache()
    assert control.pinned()[1] - before == 425_984
    kept.clear()
    tt.cuda.empty_cache()
    assert control.pinned()[1] == before


@on_stub()
def test_too_much_pinned_memory() -> None:
    kept = tt.zeros(100_000).pin_memory()
    control.fail_at("cuMemHostAlloc", 1, control.OUT_OF_MEMORY, times=2)
    with pytest.raises(OutOfMemoryError, match="pinned memory: 851968 bytes asked, 425984 held by pinned tensors"):
        tt.zeros(200_000).pin_memory()
    assert tt.zeros(200_000).pin_memory().is_pinned()
    assert kept.is_pinned()


@on_stub(STUB_DEVICES=2)
def test_between_gpus() -> None:
    values = np.arange(1000, dtype=np.float32)
    x = tt.from_numpy(values).to("cuda:0")
    with control.counted() as calls:
        y = x.to("cuda:1")
    assert calls["cuMemcpyPeerAsync"] == 1
    assert not {"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuCtxSynchronize", "cuStreamSynchronize"} & set(calls)
    np.testing.assert_array_equal(y.cpu().numpy(), values)


@on_stub()
def test_why_alive_on_the_driver() -> None:
    x = tt.empty(1 << 20, device="cuda")
    text = tt.cuda.why_alive(device=0)
    assert "4.00 MiB, made at " in text
    assert "held by local variable x of test_why_alive_on_the_driver" in text
    assert x.is_cuda
