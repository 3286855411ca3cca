"""Refusals and surprises of a real driver, in scenes that a program can come to: forks, threads, old drivers."""

from __future__ import annotations

import ctypes.util
import os
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.cuda.runtime import active
from tritensor.ground import nvtx
from tritensor.ground.errors import CaptureError, DeviceError
from tritensor.ground.thread_state import here


def in_thread(run: Callable[[], Any]) -> BaseException | None:
    """What a function raises in a thread of its own."""
    raised: list[BaseException] = []

    def body() -> None:
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return raised[0] if raised else None


# old drivers
@on_stub(STUB_DRIVER_VERSION=12000)
def test_the_oldest_driver_serves_the_newest_bindings() -> None:
    """cuda-python 13 asks for cuEventElapsedTime in a form that came with 12.8."""
    start, end = (tt.cuda.Event(enable_timing=True) for _ in range(2))
    x = tt.ones(10, device="cuda", requires_grad=True)
    start.record()
    (x * 2).sum().backward()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    with tt.cuda.graph() as g:
        x.detach() + 1
    g.replay()
    tt.from_numpy(np.ones(5)).pin_memory().to("cuda", non_blocking=True)
    tt.cuda.synchronize()
    tt.cuda.empty_cache()


@on_stub(STUB_DRIVER_VERSION=12040)
def test_a_function_that_the_driver_does_not_have() -> None:
    driver: Any = active.runtime().driver  # type: ignore[attr-defined]

    class Newer:
        def __getattr__(self, name: str) -> Any:
            return getattr(before, name)

        def cuStreamQuery(self, *args: Any) -> Any:
            raise RuntimeError('Function "cuStreamQuery_v9" not found')

    before, driver.api = driver.api, Newer()
    with pytest.raises(DeviceError, match=r"cuStreamQuery_v9.* made for CUDA 12\.4 .*'cuda-python<13'"):
        tt.cuda.current_stream().query()
    with pytest.raises(DeviceError, match="cuFromTheFuture"):
        driver.function("cuFromTheFuture", 12000)
    with pytest.raises(DeviceError, match="cuEventQuery"):  # in the words of a driver newer than this one
        driver.function("cuEventQuery", 13000)


# numbers
@on_stub()
def test_a_float_beyond_its_type_is_infinite() -> None:
    x = tt.ones(4, device="cuda")
    for value, want in ((1e39, np.inf), (-1e300, -np.inf), (3.4e38, np.float32(3.4e38))):
        control.reset()
        x * value
        (launch,) = control.launches()
        bits = struct.pack("<f", want)
        assert bits in launch.raw, (value, launch.raw)


# forks
@on_stub()
def test_a_forked_child_gives_nothing_back_and_says_why_nothing_goes() -> None:
    x = tt.ones(10, device="cuda")
    event = tt.cuda.Event()
    event.record()
    with tt.cuda.graph() as graph:
        x + 1
    side = tt.cuda.Stream()
    x.record_stream(side)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        import sys

        said: list[str] = []
        sys.unraisablehook = lambda it: said.append(f"in a finalizer: {it.exc_value!r}")
        try:
            del event, graph
            said.append(tt.cuda.why())
            x + 1
        except DeviceError as error:
            said.append(f"DeviceError: {error}")
        except BaseException as error:
            said.append(repr(error))
        del x
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    first, second = said.splitlines()
    assert "forked" in first, said
    assert "DeviceError" in second, said
    assert "forked" in second, said
    assert (x + 1).shape == (10,), "the parent works on"
    graph.replay()


# captures and threads
@on_stub()
def test_another_threads_wait_for_the_gpu_does_not_break_a_capture() -> None:
    x = tt.ones(10, device="cuda")
    x + 1
    with tt.cuda.graph() as g:
        y = x + 1
        raised = in_thread(tt.cuda.synchronize)
        assert isinstance(raised, CaptureError)
        assert "another thread" in str(raised)
        assert isinstance(in_thread(tt.cuda.graph().__enter__), CaptureError)
        assert in_thread(lambda: tt.ones(1 << 20, device="cuda") + 1) is None
        y = y + 1
    g.replay()
    tt.cuda.synchronize()
    assert in_thread(tt.cuda.synchronize) is None


@on_stub()
@pytest.mark.parametrize("name", ["pool_use", "capture_begin"])
def test_the_cache_may_be_emptied_while_a_capture_begins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used: Any = active.runtime()
    x = tt.ones(10, device="cuda")
    step = getattr(used, name)

    def then_empty(*args: Any) -> None:
        step(*args)
        assert in_thread(tt.cuda.empty_cache) is None

    with tt.cuda.graph() as g:
        x + 1
    del g  # its pool is given up, which waits for the GPU
    monkeypatch.setattr(used, name, then_empty)
    with tt.cuda.graph() as g:
        x + 1
    g.replay()


@on_stub()
def test_two_threads_do_not_capture_one_stream() -> None:
    stream = tt.cuda.Stream()
    x = tt.ones(10, device="cuda")
    x + 1

    def again() -> None:
        with tt.cuda.stream(stream):
            tt.cuda.CUDAGraph().capture_begin()

    with tt.cuda.graph(stream=stream) as g:
        raised = in_thread(again)
        assert isinstance(raised, CaptureError)
        assert "stream of its own" in str(raised)
        y = x + 1
    g.replay()
    assert y.shape == (10,)


@on_stub(STUB_DEVICES=2)
def test_memory_for_a_capture_while_another_gpu_is_current() -> None:
    x, there = tt.ones(10, device="cuda:0"), tt.ones(10, device="cuda:1")
    there + 1
    with tt.cuda.graph() as g:
        there + 1
        assert here.context == 1
        z = tt.empty(3 << 20, device="cuda:0")
        y = x + 1
    g.replay()
    assert y.shape == (10,)
    assert z.shape == (3 << 20,)


# contexts
class Dropping(np.ndarray):
    """An array that drops something when its bytes are asked for: what the collector may do between any two calls."""

    held: list[Any]

    @property
    def ctypes(self) -> Any:
        self.held.clear()
        return np.ndarray.ctypes.__get__(self)  # type: ignore[attr-defined]


def _event() -> Any:
    event = tt.cuda.Event()
    event.record()
    return event


def _graph() -> Any:
    x = tt.ones(10, device="cuda")
    with tt.cuda.graph() as g:
        x + 1
    return g


def _plain() -> Any:
    return tt.ones(10, device="cuda")


def _elsewhere() -> Any:
    x = tt.ones(10, device="cuda")
    x.record_stream(tt.cuda.Stream())
    return x


@on_stub(STUB_DEVICES=2)
@pytest.mark.parametrize("make", [_event, _graph, _plain, _elsewhere])
@pytest.mark.parametrize("caching", [True, False])
def test_a_finalizer_leaves_the_gpu_current_that_was(make: Callable[[], Any], caching: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy to one GPU goes there though an object of the other one dies between its first and its last call."""
    if not caching:
        monkeypatch.setenv("TRITENSOR_NO_MEMORY_CACHING", "1")
    target = tt.zeros(4, device="cuda:0")
    source = np.ones(4, np.float32).view(Dropping)
    with tt.cuda.device(1):
        source.held = [make()]
    target._array.storage.write(source, 0)  # type: ignore[union-attr]
    assert source.held == []
    assert here.context == 0
    assert control.complaints() == []


@on_stub()
def test_a_thread_without_a_context_unpins_memory() -> None:
    tt.from_numpy(np.ones(5)).pin_memory()
    assert control.pinned()[0] == 1
    assert in_thread(tt.cuda.empty_cache) is None
    assert control.pinned() == (0, 0)


# NVTX
def test_an_nvtx_library_without_the_functions_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx, "_LIBRARIES", (ctypes.util.find_library("c") or "libc.so.6",))
    nvtx._listener.cache_clear()
    try:
        nvtx.mark("nobody hears")
        assert nvtx.provider() in ("", "the package nvtx")
    finally:
        nvtx._listener.cache_clear()
