"""The driver's road where several streams, GPUs, graphs or threads are at work: whose block, whose context, whose parameters."""

from __future__ import annotations

import functools
import threading
import time
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tests.threads.together import together
from tritensor.cuda.jit import deferred as deferred_jit
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime import active
from tritensor.ground.device import device
from tritensor.ops import replay
from tritensor.ops.array import CudaArray, empty

GPU = device("cuda", 0)
F32 = np.dtype(np.float32)


@triton.jit
def shifted(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def added(x, y, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i) + tl.load(y + i))


@on_stub(STUB_DEVICES=2)
def test_a_kernel_is_loaded_on_the_gpu_that_it_runs_on() -> None:
    x, y = (empty((64,), F32, device("cuda", i)) for i in range(2))
    empty((64,), F32, device("cuda", 1))  # this thread works on the other one now, and nothing below asks the driver for memory
    for a, index in ((x, 0), (y, 1), (x, 0)):
        launch(shifted, (1,), a, a, 64, BLOCK=64)
        assert control.launches()[-1].device == index


@on_stub()
def test_a_block_that_was_only_copied_to_on_its_stream_waits_for_others() -> None:
    side = tt.cuda.Stream()
    with tt.cuda.stream(side):
        x = tt.tensor(np.ones(300, np.float32), device="cuda")  # no launch: the runtime sees this stream with the allocation only
    pointer = x.data_ptr()
    (x + x).tanh()
    control.slow(launches=50_000)
    y = x + x  # read on the default stream, for a while
    del x
    with tt.cuda.stream(side):
        assert tt.empty(300, device="cuda").data_ptr() != pointer, "handed out while the default stream reads it"
    tt.cuda.synchronize()
    assert y.shape == (300,)


@on_stub()
def test_graphs_leave_no_places_behind() -> None:
    used: Any = active.runtime()
    x = tt.ones(64, device="cuda")
    counts = []
    for _ in range(4):
        graph = tt.cuda.CUDAGraph()
        with tt.cuda.graph(graph):
            x + x
        del graph
        counts.append(len(used._places))
    assert counts == counts[:1] * 4


@on_stub()
def test_a_corner_with_memory_of_its_own_is_never_replayed() -> None:
    kept = empty((64,), F32, GPU)

    def with_kept(x: CudaArray) -> CudaArray:
        y = empty(x.shape, F32, GPU)
        launch(added, (1,), x, kept, y, BLOCK=64)
        return y

    corner = replay.Corner(with_kept)
    for _ in range(2):
        corner(empty((64,), F32, GPU))
    assert not corner.recordings
    assert kept.data_ptr() in control.launches()[-1].values


@on_stub()
def test_threads_that_launch_at_once_pack_into_blocks_of_their_own() -> None:
    arrays, streams = [tt.ones(64, device="cuda") for _ in range(4)], [tt.cuda.Stream() for _ in range(4)]

    def work(x: Any, stream: Any) -> None:
        with tt.cuda.stream(stream):
            for _ in range(100):
                x + x

    together(*[functools.partial(work, *pair) for pair in zip(arrays, streams, strict=True)])
    reads = {s.cuda_stream: x.data_ptr() for x, s in zip(arrays, streams, strict=True)}
    seen = [each for each in control.launches() if each.stream]
    assert len(seen) == 400
    for each in seen:
        assert set(each.values[1:3]) == {reads[each.stream]}


def test_threads_construct_a_deferred_kernel_once() -> None:
    constructed = []

    class Slow(deferred_jit.DeferredJITFunction):
        def __setattr__(self, name: str, value: Any) -> None:
            time.sleep(0.001)  # lets the other threads look at the half-made object
            constructed.append(name)
            super().__setattr__(name, value)

    kernel = Slow(shifted.fn)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append((kernel.constructed, len(kernel.params), kernel.cache_key))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [n for _, n, _ in found] == [4] * 4
    assert len({key for _, _, key in found}) == 1
    assert constructed.count("constructed") == 1
    with pytest.raises(AttributeError, match="no_such_thing"):
        kernel.no_such_thing  # noqa: B018
