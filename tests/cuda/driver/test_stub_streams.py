"""The stub driver's streams and events: slow copies, captures and what they forbid, a fork and a thread without a context."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.cuda.driver.stub_calls import ask, context, downloaded, objected, ready, refused, stream, uploaded
from tests.stub import control
from tests.stub.child import on_stub

GLOBAL = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


@on_stub()
def test_slow_copies_keep_a_stream_busy() -> None:
    context()
    x = uploaded(np.zeros(4, np.float32))
    busy, other = stream(), stream()
    pinned = int(ask("cuMemHostAlloc", 16, 0))
    source = np.frombuffer((ctypes.c_char * 16).from_address(pinned), np.float32)
    source[:] = 1
    control.slow(copies=200_000)
    start, done = ask("cuEventCreate", 0), ask("cuEventCreate", 0)
    ask("cuEventRecord", start, busy)
    ask("cuMemcpyHtoDAsync", x, pinned, 16, busy)
    ask("cuEventRecord", done, busy)
    refused("NOT_READY", "cuStreamQuery", busy)
    refused("NOT_READY", "cuEventQuery", done)
    refused("NOT_READY", "cuEventElapsedTime", start, done)
    ask("cuStreamQuery", other)
    source[:] = 2  # too early: the copy reads its source when it runs
    ask("cuStreamWaitEvent", other, done, 0)
    before = time.perf_counter()
    ask("cuStreamSynchronize", other)
    assert time.perf_counter() - before > 0.05
    ask("cuEventQuery", done)
    assert ask("cuEventElapsedTime", start, done) >= 200
    control.slow()
    assert downloaded(x, 4) == [2, 2, 2, 2]


@on_stub()
def test_capture_and_replay() -> None:
    launch = ready()
    x = launch.values[0]
    capturing, side = stream(), stream()
    launch.config.hStream = capturing
    control.reset()
    ask("cuStreamBeginCapture", capturing, GLOBAL)
    assert launch() == "CUDA_SUCCESS"
    fork, joined = ask("cuEventCreate", 0), ask("cuEventCreate", 0)
    ask("cuEventRecord", fork, capturing)
    ask("cuStreamWaitEvent", side, fork, 0)
    ask("cuMemsetD32Async", x, 0, 4, side)
    ask("cuEventRecord", joined, side)
    ask("cuStreamWaitEvent", capturing, joined, 0)
    graph = ask("cuStreamEndCapture", capturing)
    assert control.launches() == []
    assert np.isnan(downloaded(x, 4)).all()
    assert ask("cuGraphGetNodes", graph)[1] == 2
    ready_graph = ask("cuGraphInstantiate", graph, 0)
    ask("cuGraphDestroy", graph)
    for _ in range(2):
        ask("cuGraphLaunch", ready_graph, capturing)
    ask("cuStreamSynchronize", capturing)
    assert downloaded(x, 4) == [0, 0, 0, 0]
    assert [seen.from_graph for seen in control.launches()] == [True, True]
    ask("cuMemFree", x)
    ask("cuGraphLaunch", ready_graph, capturing)
    objected("memory of node 1 was freed after the capture")


@pytest.mark.parametrize(
    ("name", "status"),
    [("alloc", "STREAM_CAPTURE_UNSUPPORTED"), ("wait", "STREAM_CAPTURE_UNSUPPORTED"), ("query", "STREAM_CAPTURE_UNSUPPORTED")]
    + [("copy", "STREAM_CAPTURE_UNSUPPORTED"), ("legacy", "STREAM_CAPTURE_IMPLICIT"), ("sync", "STREAM_CAPTURE_UNSUPPORTED")],
)
@on_stub()
def test_what_a_capture_forbids(name: str, status: str) -> None:
    context()
    x = uploaded(np.ones(4, np.float32))
    capturing = stream(0)
    host = np.zeros(4, np.float32)
    ask("cuStreamBeginCapture", capturing, GLOBAL)
    forbidden: dict[str, tuple[Any, ...]] = {
        "alloc": ("cuMemAlloc", 16),
        "wait": ("cuStreamSynchronize", capturing),
        "query": ("cuStreamQuery", capturing),
        "copy": ("cuMemcpyDtoH", host.ctypes.data, x, 16),
        "legacy": ("cuMemsetD8Async", x, 0, 16, 0),
        "sync": ("cuCtxSynchronize",),
    }
    refused(status, *forbidden[name])
    refused("STREAM_CAPTURE_INVALIDATED", "cuMemsetD8Async", x, 0, 16, capturing)
    refused("STREAM_CAPTURE_INVALIDATED", "cuStreamEndCapture", capturing)
    ask("cuMemsetD8Async", x, 0, 16, capturing)
    assert downloaded(x, 4) == [0, 0, 0, 0]


@on_stub()
def test_a_relaxed_capture_lets_others_allocate_and_unjoined_work_is_refused() -> None:
    context()
    capturing, side = stream(), stream()
    ask("cuStreamBeginCapture", capturing, RELAXED)
    x = ask("cuMemAlloc", 16)
    event = ask("cuEventCreate", 0)
    ask("cuEventRecord", event, capturing)
    ask("cuStreamWaitEvent", side, event, 0)
    ask("cuMemsetD8Async", x, 0, 16, side)
    refused("STREAM_CAPTURE_UNJOINED", "cuStreamEndCapture", capturing)
    refused("STREAM_CAPTURE_UNSUPPORTED", "cuStreamBeginCapture", 0, GLOBAL)


@on_stub(STUB_DEVICES=2)
def test_what_breaks_a_relaxed_capture_too() -> None:
    """What names captured work itself, or the context that holds it; a context of another device may be waited for."""
    other, own = context(1), context(0)
    capturing, event = stream(), ask("cuEventCreate", 0)

    def broken() -> None:
        refused("STREAM_CAPTURE_INVALIDATED", "cuStreamEndCapture", capturing)

    ask("cuStreamBeginCapture", capturing, RELAXED)
    ask("cuEventRecord", event, capturing)
    refused("CAPTURED_EVENT", "cuEventQuery", event)
    broken()

    def elsewhere(which: Any) -> None:
        ask("cuCtxSetCurrent", which)
        statuses.append(driver.cuCtxSynchronize()[0].name)

    for which, status in ((other, "CUDA_SUCCESS"), (own, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")):
        statuses: list[str] = []
        ask("cuStreamBeginCapture", capturing, RELAXED)
        thread = threading.Thread(target=elsewhere, args=(which,))
        thread.start()
        thread.join()
        assert statuses == [status]
        if which is own:
            broken()
        else:
            ask("cuGraphDestroy", ask("cuStreamEndCapture", capturing))


@on_stub()
def test_a_fork_and_a_thread_without_a_context_get_no_answer() -> None:
    context()
    event = ask("cuEventCreate", 0)
    child = os.fork()
    if not child:
        found = [driver.cuInit(0)[0], driver.cuDeviceGetCount()[0], driver.cuEventDestroy(event)[0], driver.cuCtxSynchronize()[0]]
        os._exit(0 if {status.name for status in found} == {"CUDA_ERROR_NOT_INITIALIZED"} else 1)
    assert os.waitpid(child, 0)[1] == 0
    statuses: list[str] = []
    thread = threading.Thread(target=lambda: statuses.append(driver.cuEventDestroy(event)[0].name))
    thread.start()
    thread.join()
    assert statuses == ["CUDA_ERROR_INVALID_CONTEXT"]
    ask("cuEventDestroy", event)
