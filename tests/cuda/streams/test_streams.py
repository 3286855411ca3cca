"""Streams, events, the current device, NVTX ranges: PyTorch's meaning, on the emulated device; the driver's calls on the stub."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tritensor as tt
from tests.stub.child import on_stub
from tritensor.ground import nvtx
from tritensor.ground.device import as_device, gpu
from tritensor.ground.errors import DeviceError
from tritensor.ground.thread_state import here, stream_of

CUDA = "cuda"


# --- streams
def test_the_current_stream_is_this_threads() -> None:
    s = tt.cuda.Stream()
    assert tt.cuda.current_stream() == tt.cuda.default_stream()
    seen = []
    with tt.cuda.stream(s):
        assert tt.cuda.current_stream() == s
        assert stream_of(0) == s.cuda_stream
        other = threading.Thread(target=lambda: seen.append(tt.cuda.current_stream()))
        other.start()
        other.join()
        with tt.cuda.stream(None):
            assert tt.cuda.current_stream() == s
        with tt.cuda.Stream() as inner:
            assert tt.cuda.current_stream() == inner != s
        assert tt.cuda.current_stream() == s
    assert seen == [tt.cuda.default_stream()]
    assert tt.cuda.current_stream() == tt.cuda.default_stream()


def test_a_stream_of_another_gpu_makes_it_current() -> None:
    s = tt.cuda.Stream("cuda:1")
    with tt.cuda.stream(s):
        assert tt.cuda.current_device() == 1
        assert tt.ones(2, device=CUDA).device == tt.device("cuda:1")
        assert tt.cuda.current_stream() == s
        assert tt.cuda.current_stream(0) == tt.cuda.default_stream(0)
    with pytest.raises(ZeroDivisionError), tt.cuda.stream(s):
        1 / 0  # noqa: B018
    assert tt.cuda.current_device() == 0
    tt.cuda.set_stream(s)
    assert (tt.cuda.current_device(), tt.cuda.current_stream()) == (1, s)
    tt.cuda.set_stream(tt.cuda.default_stream(1))
    tt.cuda.set_stream(tt.cuda.default_stream(0))
    assert (tt.cuda.current_device(), stream_of(1)) == (0, 0)


def test_streams_are_equal_by_handle_and_have_priorities() -> None:
    low, high = tt.cuda.Stream.priority_range()
    assert low == 0 > high
    assert tt.cuda.Stream(priority=-1).priority == -1
    assert tt.cuda.Stream(priority=5).priority == low
    assert tt.cuda.Stream(priority=-1000).priority == high
    s = tt.cuda.Stream()
    assert s == tt.cuda.ExternalStream(s.cuda_stream)
    assert len({s, tt.cuda.ExternalStream(s.cuda_stream), tt.cuda.default_stream()}) == 2
    assert s != tt.cuda.Stream(1)
    assert s.device == tt.device("cuda:0")
    assert "cuda:0" in repr(s)


def test_streams_are_handed_out_in_turn() -> None:
    first = [tt.cuda.Stream("cuda:1", priority=-2) for _ in range(32)]
    assert len(set(first)) == 32
    assert [tt.cuda.Stream("cuda:1", priority=-2) for _ in range(32)] == first


# --- events
def test_an_event_marks_a_place_and_keeps_the_time() -> None:
    start, end = tt.cuda.Event(enable_timing=True), tt.cuda.Event(enable_timing=True)
    assert start.query()
    start.synchronize()  # nothing to wait for
    start.record()
    y = tt.ones(3000, device=CUDA) + 1
    end.record()
    end.synchronize()
    assert end.query()
    assert 0 < start.elapsed_time(end) < 60_000
    assert end.elapsed_time(start) < 0
    s = tt.cuda.Stream()
    s.wait_event(end)
    s.wait_stream(tt.cuda.current_stream())
    assert s.query()
    s.synchronize()
    assert float(y.sum()) == 6000


def test_what_an_event_refuses() -> None:
    timed, plain, unused = tt.cuda.Event(True), tt.cuda.Event(), tt.cuda.Event(True)
    timed.record()
    plain.record()
    for a, b, says in (
        (timed, plain, "keeps no time"),
        (unused, timed, "first event was not recorded"),
        (timed, unused, "second event was not"),
    ):
        with pytest.raises(ValueError, match=says):
            a.elapsed_time(b)
    with pytest.raises(ValueError, match="interprocess"):
        tt.cuda.Event(interprocess=True)
    with pytest.raises(ValueError, match="cuda:0 first"):
        timed.record(tt.cuda.Stream(1))


# --- devices
def test_the_current_device_is_what_cuda_means() -> None:
    with tt.cuda.device(1):
        assert tt.cuda.current_device() == here.index == 1
        assert tt.zeros(2, device=CUDA).device == tt.device("cuda:1")
        assert tt.zeros(2).cuda().device == tt.device("cuda:1")
        assert as_device("cuda:0") is gpu(0)
        with tt.cuda.device("cuda:0"), tt.cuda.device(-1), tt.cuda.device(None):
            assert tt.cuda.current_device() == 0
        assert tt.cuda.current_device() == 1
        with tt.cuda.device_of(tt.zeros(1, device="cuda:0")):
            assert tt.cuda.current_device() == 0
        with tt.cuda.device_of(tt.zeros(1)):
            assert tt.cuda.current_device() == 1
        seen = []
        other = threading.Thread(target=lambda: seen.append(tt.cuda.current_device()))
        other.start()
        other.join()
        assert seen == [0]
    assert tt.cuda.current_device() == 0
    tt.cuda.set_device("cuda:1")
    tt.cuda.set_device(-1)
    assert tt.cuda.current_device() == 1
    tt.cuda.set_device(0)
    assert as_device("cuda") is as_device("cuda") is gpu(0)


def test_a_device_that_is_not_there() -> None:
    for give in (
        lambda: tt.cuda.device(7),
        lambda: tt.cuda.set_device("cuda:7"),
        lambda: tt.cuda.Stream(7),
        lambda: tt.cuda.set_device("cpu"),
    ):
        with pytest.raises(DeviceError, match=r"cuda:7: no such device|cpu is not a GPU"):
            give()
    assert tt.cuda.current_device() == 0


def test_peers() -> None:
    assert tt.cuda.can_device_access_peer(0, 1)
    assert not tt.cuda.can_device_access_peer(1, "cuda:1")


# --- nvtx
def test_ranges_nest_with_a_library_or_without() -> None:
    assert nvtx.range_push("outer") == 0
    assert nvtx.range_push("inner") == 1
    nvtx.mark("here")
    assert nvtx.range_pop() == 1
    with nvtx.range("step {}", 3):
        assert nvtx.range_push("in the block") == 2
        nvtx.range_pop()
    assert nvtx.range_pop() == 0
    with pytest.raises(RuntimeError, match="no range to end"):
        nvtx.range_pop()
    number = nvtx.range_start("anywhere")
    nvtx.range_end(number)
    with pytest.raises(RuntimeError, match="no open range"):
        nvtx.range_end(number)


def test_a_range_finds_wrong_nesting_in_its_block() -> None:
    with pytest.raises(RuntimeError, match="1 ranges more than it ended"), nvtx.range("a"):
        nvtx.range_push("left open")
    with pytest.raises(RuntimeError, match="too often"), nvtx.range("b"):
        nvtx.range_pop()
    with pytest.raises(ZeroDivisionError), nvtx.range("c"):
        nvtx.range_push("left open by an error") / 0

    @nvtx.range("function")
    def f() -> int:
        return nvtx.range_push("deeper") + nvtx.range_pop()

    assert f() == f() == 2
    assert nvtx.range_push("back at the outside") == 0
    nvtx.range_pop()


@pytest.mark.parametrize("who", ["nobody", "library"])
def test_who_is_told_of_ranges(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    listener = nvtx.SILENT._replace(push=told.append, pop=lambda: told.append("pop"))
    monkeypatch.setattr(nvtx, "_listener", lambda: listener if who == "library" else nvtx.SILENT)
    with nvtx.range("{} of {}", 1, 2):
        pass
    assert told == (["1 of 2", "pop"] if who == "library" else [])


# --- the driver's calls
@on_stub(STUB_DEVICES=2)
def test_streams_and_events_call_the_driver_once_each() -> None:
    from tests.stub import control

    s, e = tt.cuda.Stream(priority=-1), tt.cuda.Event(enable_timing=True)
    end = tt.cuda.Event(enable_timing=True, blocking=True)
    x = tt.zeros(5, device=CUDA)
    control.reset()
    e.record(s)
    assert control.calls() == {"cuEventCreate": 1, "cuEventRecord": 1}
    control.reset()
    e.record(s)
    tt.cuda.default_stream().wait_event(e)
    assert s.query()
    s.synchronize()
    assert control.calls() == {"cuEventRecord": 1, "cuStreamWaitEvent": 1, "cuStreamQuery": 1, "cuStreamSynchronize": 1}
    with tt.cuda.stream(s):
        y = x + 1
        end.record()
    assert control.launches()[-1].stream == s.cuda_stream
    end.synchronize()
    assert e.elapsed_time(end) >= 0
    with tt.cuda.device(1):
        assert tt.zeros(3, device=CUDA).device == tt.device("cuda:1")
        other = tt.cuda.Stream()
        other.wait_event(end)
    assert other.device_index == 1
    assert tt.cuda.can_device_access_peer(0, 1)
    del e, end
    assert control.calls("cuEventDestroy") == 2
    assert y.shape == (5,)
    np.testing.assert_array_equal(tt.cuda.current_stream().cuda_stream, 0)


@on_stub()
def test_an_event_that_was_not_reached() -> None:
    from tests.stub import control

    x = tt.zeros(5, device=CUDA)
    start, end = tt.cuda.Event(enable_timing=True), tt.cuda.Event(enable_timing=True)
    start.record()
    control.slow(launches=200_000)
    y = x + 1
    end.record()
    assert not end.query()
    assert not tt.cuda.current_stream().query()
    with pytest.raises(RuntimeError, match="has not reached both events"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) > 0
    control.slow()
    assert y.shape == (5,)
