"""The profile of device cuda: emulated, and on the stub driver, whose streams are busy for as long as a test says."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor import nn
from tritensor.cuda.runtime import active
from tritensor.ground.errors import LaunchError
from tritensor.ops.replay.corner import recordings
from tritensor.profiler import ProfilerActivity, profile, record_function, schedule
from tritensor.profiler.metadata import EMULATED
from tritensor.profiler.results.events import DeviceType
from tritensor.profiler.results.roofline import find_gpu_roof

CUDA = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def train() -> Any:
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU()).to("cuda")
    opt = tt.optim.SGD(net.parameters(), lr=0.1)
    x = tt.ones(3, 8).to("cuda")

    def run() -> None:
        net(x).sum().backward()
        opt.step()
        opt.zero_grad()

    for _ in range(3):
        run()
    return run


def kernels_of(prof: profile) -> list[Any]:
    return [e for e in prof.events() if e.kind == "kernel"]


# emulated
def test_kernels_belong_to_ops() -> None:
    run = train()
    with profile(activities=CUDA) as prof:
        run()
    found = [(k.metadata["kernel"], k.launched_by.cpu_parent.name) for k in kernels_of(prof) if k.launched_by.cpu_parent]
    assert ("_matmul_kernel", "linear_activation_by_result") in found
    assert ("_kernel", "LinearActivationByResultBackward0") in found
    assert ("_step", "Optimizer.step#SGD.step") in found
    linear = next(e for e in prof.events() if e.name == "linear_activation_by_result")
    assert linear.device_time_total == linear.self_device_time_total > 0
    assert [k.name for k in linear.kernels] == ["_matmul_kernel"]
    averages = prof.key_averages()
    assert averages.self_device_time_total == pytest.approx(sum(k.time_range.elapsed_us() for k in kernels_of(prof)) + 0.0)
    table = averages.table(sort_by="cuda_time_total")
    assert EMULATED in table
    assert "_matmul_kernel (linear_act" in table


def test_copies_and_waits() -> None:
    x = tt.ones(100)
    with profile(activities=CUDA) as prof:
        y = x.to("cuda")
        y.to("cpu")
        y.clone().copy_(y)
        tt.cuda.synchronize()
        tt.cuda.current_stream().synchronize()
        event = tt.cuda.Event()
        event.record()
        event.synchronize()
        y.sum().item()
    names = [e.name for e in prof.events()]
    assert names.count("Memcpy HtoD") == 1
    assert names.count("Memcpy DtoH") == 2
    assert {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"} <= set(names)
    assert next(e for e in prof.events() if e.name == "Memcpy HtoD").metadata["bytes"] == 400


def test_memory_of_the_device() -> None:
    with profile(activities=CUDA, profile_memory=True) as prof, record_function("made"):
        x = tt.zeros(1000, device="cuda")
    made = next(e for e in prof.events() if e.name == "made")
    assert made.device_memory_usage == 4000
    assert made.self_device_memory_usage == 0
    assert x.numel() == 1000


def test_the_processor_alone_sees_no_kernels() -> None:
    run = train()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        run()
    assert not any(e.device_type is DeviceType.CUDA for e in prof.events())
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        run()
    assert {e.kind for e in prof.events()} == {"kernel", "runtime"}


def test_a_graph_is_seen_when_it_runs() -> None:
    x = tt.ones(8, device="cuda")
    y = x * 2
    with profile(activities=CUDA) as prof:
        with tt.cuda.graph() as g:
            y = x * 2
        captured = len(prof.profiler.recording.fired)  # type: ignore[union-attr]
        g.replay()
    assert captured == 0, "what a capture records does not run"
    assert y.tolist() == [2.0] * 8
    assert prof.events()


def test_a_kernel_that_fails_ends_its_events() -> None:
    x, place = tt.ones(3, device="cuda"), tt.tensor([7]).to("cuda")

    def fail() -> None:
        x[place]
        tt.cuda.synchronize()

    with profile(activities=CUDA) as prof, pytest.raises(IndexError):
        fail()
    assert any(e.name.startswith("index_get") for e in prof.events())


# on the driver
@on_stub()
def test_kernels_are_timed_by_events() -> None:
    run = train()
    control.slow(launches=300)
    with profile(activities=CUDA) as prof:
        run()
    times = [k.time_range.elapsed_us() for k in kernels_of(prof)]
    assert len(times) == len([e for e in prof.events() if e.name == "cuLaunchKernelEx"]) >= 6
    assert min(times) > 299
    assert sorted(times)[len(times) // 4] == pytest.approx(300, abs=1), "one that finds the stream idle waits for the host's launch as well"
    for k in kernels_of(prof):
        assert k.time_range.start >= k.launched_by.time_range.start - 20, "the two clocks agree"
    ends = [k.time_range for k in kernels_of(prof)]
    assert all(a.end <= b.start + 2 for a, b in zip(ends, ends[1:], strict=False)), "a stream does one thing after the other"
    matmul = next(k for k in kernels_of(prof) if k.metadata["kernel"] == "_matmul_kernel")
    assert set(matmul.metadata) == {"grid", "block", "shared memory", "registers per thread", "kernel"}
    assert matmul.metadata["registers per thread"] > 0
    assert EMULATED not in prof.key_averages().table()


@on_stub()
def test_nothing_waits_before_the_end() -> None:
    run = train()
    waits = ("cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize")
    prof = profile(activities=CUDA)
    prof.start()
    with control.counted() as calls:
        run()
    launches = calls["cuLaunchKernelEx"]
    assert not any(calls.get(w) for w in waits)
    assert calls["cuEventRecord"] == 2 * launches
    prof.stop()
    assert len(kernels_of(prof)) == launches
    assert control.calls("cuEventDestroy") == control.calls("cuEventCreate")


@on_stub()
def test_recordings_launch_as_before_when_it_is_over() -> None:
    run = train()
    start = active.runtime().kernels.start  # type: ignore[attr-defined]

    def cells() -> list[Any]:
        found = [dict(zip(r.__code__.co_freevars, r.__closure__ or (), strict=True)) for r in recordings() if hasattr(r, "__code__")]
        return [c["start"].cell_contents for c in found if "start" in c]

    assert cells()
    assert all(c is start for c in cells())
    for _ in range(2):
        with profile(activities=CUDA):
            run()
            (tt.ones(5, device="cuda") * 3.0).exp()  # recordings that are made meanwhile
            assert not any(c is start for c in cells())
        assert active.runtime().kernels.start is start  # type: ignore[attr-defined]
        assert all(c is start for c in cells())
    with control.counted() as calls:
        run()
    assert "cuEventRecord" not in calls


@on_stub()
def test_copies_are_timed_as_well() -> None:
    x = tt.ones(1000)
    y = x.to("cuda")
    control.slow(copies=500)
    with profile(activities=CUDA) as prof:
        y = x.to("cuda")
        y.to("cpu")
        y.clone()
    found = {e.name: e for e in prof.events() if e.kind == "memcpy"}
    assert set(found) == {"Memcpy HtoD", "Memcpy DtoH"}
    assert found["Memcpy DtoH"].time_range.elapsed_us() > 495
    wait = [e for e in prof.events() if e.name == "cuStreamSynchronize"]
    assert len(wait) == 2, wait
    assert max(e.cpu_time_total for e in wait) > 400


@on_stub()
def test_streams_and_threads() -> None:
    x = tt.ones(64, device="cuda")
    other = tt.cuda.Stream()
    x * 2

    together = threading.Barrier(3)

    def work() -> None:
        together.wait()
        with tt.cuda.stream(other):
            for _ in range(10):
                x * 2

    control.slow(launches=100)
    with profile(activities=CUDA) as prof:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        work()
        for t in threads:
            t.join()
        x * 2
    found = kernels_of(prof)
    assert sorted({k.stream for k in found}) == [0, other.cuda_stream]
    assert len([k for k in found if k.stream]) == 30
    assert len({k.thread for k in found}) == 3
    assert all(k.launched_by.cpu_parent.thread == k.thread for k in found)
    trace_rows = {(e.device_index, e.stream) for e in found}
    assert len(trace_rows) == 2


@on_stub()
def test_warm_up_gives_its_events_back() -> None:
    run = train()
    with profile(activities=CUDA, schedule=schedule(wait=0, warmup=2, active=1, repeat=1)) as prof:
        for _ in range(4):
            run()
            prof.step()
    names = [e.name for e in prof.events()]
    assert names.count("linear_activation_by_result") == 1
    assert control.calls("cuEventDestroy") == control.calls("cuEventCreate")


@on_stub()
def test_a_device_that_starts_inside() -> None:
    assert not active.started()
    with profile(activities=CUDA) as prof:
        tt.ones(8).to("cuda").exp()
    assert any(k.metadata.get("kernel") == "_kernel" for k in kernels_of(prof))
    assert active._choose.__name__ == "choose"


@on_stub()
def test_a_lost_device_leaves_the_calls() -> None:
    run = train()
    with profile(activities=CUDA) as prof:
        run()
        control.fail_at("cuLaunchKernelEx", 1, control.ILLEGAL_ADDRESS, sticky=True)
        with pytest.raises(LaunchError):
            run()
    table = prof.key_averages().table()
    assert "linear_activation_by_result" in table
    assert "no device times" in table
    control.complaints()


@on_stub()
def test_the_roof_of_a_gpu() -> None:
    roof = find_gpu_roof(0)
    assert roof is not None
    p = tt.cuda.get_device_properties(0)
    assert roof.bandwidth == pytest.approx(p.memory_clock_rate_khz * 2e3 * p.memory_bus_width / 8)
    assert roof.flops["bfloat16"] > roof.flops["float32"] > 0
    a = tt.ones(256, 256, device="cuda")
    a @ a
    a * 2
    control.slow(launches=2000)
    with profile(activities=CUDA, roofline=True) as prof:
        a * 2
        a @ a
    row = next(e for e in prof.key_averages() if e.key == "matmul")
    took = 2e-3 * len([k for k in kernels_of(prof) if k.launched_by.cpu_parent.name == "matmul"])
    assert row.flops == 2 * 256**3
    assert row.nbytes == 3 * 4 * 256**2
    assert row.tflops == pytest.approx(row.flops / took / 1e12, rel=0.01)
    least = max(row.flops / roof.flops["float32"], row.nbytes / roof.bandwidth)
    assert row.roofline == pytest.approx(least / took, rel=0.01)
    table = prof.key_averages().table()
    assert "Roofline of" in table
