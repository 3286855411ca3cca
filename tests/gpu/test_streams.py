"""Order on the GPU: streams, events, copies from pinned memory, and copies between two GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tests.gpu.scale import real, scaled

pytestmark = pytest.mark.gpu

N = scaled(4 << 20, 1 << 10)


def test_events_time_work() -> None:
    x = tt.ones(N, device="cuda")
    (x * 2.0).sum().item()
    start, end = (tt.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(10):
        x = x * 1.0
    end.record()
    end.synchronize()
    assert end.query()
    elapsed = start.elapsed_time(end)
    assert 0 < elapsed < 10_000, f"{elapsed} ms"
    if real():
        moved = 10 * 2 * 4 * N  # bytes
        assert moved / elapsed / 1e6 < 20_000, f"{moved / elapsed / 1e6:.0f} GB/s: no GPU is that fast; the events did not wait"


def test_streams_wait_for_one_another() -> None:
    """Twenty hand-overs between two streams, each ordered by an event or by wait_stream."""
    one, two = tt.cuda.Stream(), tt.cuda.Stream()
    x = tt.zeros(N, device="cuda")
    one.wait_stream(tt.cuda.current_stream())
    for n in range(scaled(20, 3)):
        with tt.cuda.stream(one):
            x = x + 1.0
        ready = tt.cuda.Event()
        ready.record(one)
        two.wait_event(ready)
        with tt.cuda.stream(two):
            x = x * 2.0
        one.wait_stream(two)
        del ready, n
    tt.cuda.current_stream().wait_stream(one)
    tt.cuda.current_stream().wait_stream(two)
    want = np.float32(0)
    for _ in range(scaled(20, 3)):
        want = (want + np.float32(1)) * np.float32(2)
    np.testing.assert_array_equal(x.cpu().numpy(), np.full(N, want))


def test_memory_of_another_stream_is_not_reused_too_early() -> None:
    """A tensor made on one stream, read on another and dropped at once: its memory waits for the reader."""
    side = tt.cuda.Stream()
    kept = []
    for n in range(scaled(50, 3)):
        x = tt.full((N,), float(n), device="cuda")
        side.wait_stream(tt.cuda.current_stream())
        with tt.cuda.stream(side):
            y = x * 1.0
            for _ in range(3):
                y = y + 1.0
        x.record_stream(side)
        del x
        tt.full((N,), -1.0, device="cuda")  # takes freed memory, if there is any, and spoils it
        kept.append(y[:: max(N // 64, 1)])
        del y
    tt.cuda.current_stream().wait_stream(side)
    for n, y in enumerate(kept):
        assert set(y.cpu().numpy().tolist()) == {n + 3.0}


def test_pinned_copies() -> None:
    values = np.arange(N, dtype=np.float32)
    x = tt.from_numpy(values).pin_memory()
    assert x.is_pinned()
    y = x.to("cuda", non_blocking=True)
    back = (y + 1.0).to("cpu", non_blocking=True)
    tt.cuda.synchronize()
    np.testing.assert_array_equal(back.numpy(), values + 1)


def test_a_stream_of_its_own_synchronizes() -> None:
    side = tt.cuda.Stream()
    with tt.cuda.stream(side):
        assert tt.cuda.current_stream() == side
        x = tt.ones(N, device="cuda").sum()
    side.synchronize()
    assert side.query()
    assert tt.cuda.current_stream() != side
    assert x.item() == N


def test_two_gpus() -> None:
    if tt.cuda.device_count() < 2:
        assert not real() or tt.cuda.device_count() == 1
        pytest.skip("this machine has one GPU; copies between two need two")
    values = np.arange(N, dtype=np.float32)
    x = tt.from_numpy(values).to("cuda:0")
    y = (x + 1.0).to("cuda:1")
    z = (y * 2.0).to("cuda:0")
    assert str(z.device) == "cuda:0"
    np.testing.assert_array_equal((z + x).cpu().numpy(), (values + 1) * 2 + values)
    with tt.cuda.device(1):
        assert tt.cuda.current_device() == 1
        assert str(tt.ones(3, device="cuda").device) == "cuda:1"
