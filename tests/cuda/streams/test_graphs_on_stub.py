"""CUDA graphs through the driver: which calls a capture and a replay make, what they do with memory, what survives a failure."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tests.stub.child import on_stub
from tritensor import nn, optim
from tritensor.ground.errors import CaptureError
from tritensor.ground.thread_state import here, stream_of
from tritensor.nn import functional as F

CUDA = "cuda"


def training_step(drop: bool) -> Callable[[], Any]:
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Dropout(0.5) if drop else nn.Identity(), nn.Linear(5, 3)).to(CUDA)
    optimizer = optim.Adam(model.parameters())
    x, target = tt.zeros(4, 6, device=CUDA), tt.zeros(4, dtype=tt.int64, device=CUDA)

    def step() -> tt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


@on_stub()
@pytest.mark.parametrize("drop", [False, True])
def test_a_replay_is_one_call_of_the_driver(drop: bool) -> None:
    from tests.stub import control

    tt.manual_seed(4)
    step = training_step(drop)
    step()
    step()
    control.reset()
    step()
    eager = [(x.name, x.grid) for x in control.launches()]
    g = tt.cuda.CUDAGraph()
    control.reset()
    with tt.cuda.graph(g):
        loss = step()
    assert control.calls("cuLaunchKernelEx") == len(eager)
    assert control.calls("cuStreamBeginCapture") == control.calls("cuGraphInstantiateWithFlags") == 1
    g.replay()
    control.reset()
    with control.counted() as calls:
        g.replay()
    assert calls == ({"cuMemsetD32Async": 1, "cuGraphLaunch": 1} if drop else {"cuGraphLaunch": 1})
    replayed = control.launches()
    assert [(x.name, x.grid) for x in replayed] == eager
    assert all(x.from_graph for x in replayed)
    tt.manual_seed(5)
    with control.counted() as calls:
        g.replay()
    assert calls.get("cuMemsetD32Async", 0) == (2 if drop else 0)  # seed and offset, whose high words stay 0
    with control.counted() as calls:
        g.reset()
    assert calls["cuGraphExecDestroy"] == 1
    assert loss.shape == ()


@on_stub()
def test_memory_of_a_graph_is_nobody_elses() -> None:
    from tests.stub import control

    x = tt.zeros(1000, device=CUDA)
    with tt.cuda.graph() as g:
        y = ((x + 1) * 2) - 1
    control.reset()
    g.replay()
    written = {v for a in control.launches() for v, is_pointer in zip(a.values, a.pointers, strict=True) if is_pointer} - {x.data_ptr()}
    others = [tt.zeros(1000, device=CUDA) for _ in range(20)]
    with tt.cuda.stream(tt.cuda.Stream()):
        others += [tt.zeros(1000, device=CUDA) for _ in range(20)]
    assert y.data_ptr() in written
    assert written.isdisjoint(o.data_ptr() for o in others)
    g.replay()
    del g, y, others
    gc.collect()
    tt.cuda.synchronize()
    assert {tt.zeros(1000, device=CUDA).data_ptr() for _ in range(3)}  # the pool's memory was given back without an error
    assert control.complaints() == []


@on_stub()
@pytest.mark.parametrize("mode", ["relaxed", "thread_local", "global"])
def test_kernels_may_be_loaded_and_memory_be_had_within_a_capture(mode: str) -> None:
    from tests.stub import control

    x = tt.zeros(77, device=CUDA)
    control.reset()
    with tt.cuda.graph(capture_error_mode=mode) as g:
        y = tt.erf(x)
        large = [tt.zeros(3_000_000, device=CUDA) for _ in range(3)]
    assert control.calls("cuModuleLoadData") == 2
    g.replay()
    assert control.launches()[-1].from_graph
    assert y.shape == (77,)
    assert len({x.data_ptr() for x in large}) == 3


@on_stub()
@pytest.mark.parametrize("where", ["cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuLaunchKernelEx"])
def test_a_capture_that_the_driver_refuses_leaves_the_thread_as_it_was(where: str) -> None:
    from tests.stub import control
    from tritensor.ground.errors import LaunchError

    x = tt.zeros(5, device=CUDA)
    y = x + 1
    control.fail_at(where, 1, 900)  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    with pytest.raises(LaunchError), tt.cuda.graph() as g:
        y = x + 1
    assert here.capture is None
    assert stream_of(0) == here.pool == 0
    control.no_faults()
    with tt.cuda.graph() as g:
        y = x + 1
    g.replay()
    assert y.shape == (5,)


@on_stub()
def test_what_is_refused_in_a_capture_does_not_reach_the_driver() -> None:
    from tests.stub import control

    x = tt.zeros(5, device=CUDA)
    with tt.cuda.graph() as g:
        y = x + 1
        control.reset()
        for does in (y.cpu, y.sum().item, tt.cuda.synchronize, lambda: tt.tensor([1.0], device=CUDA)):
            with pytest.raises(CaptureError):
                does()
        assert not {"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuStreamSynchronize", "cuCtxSynchronize"} & set(control.calls())
    g.replay()
