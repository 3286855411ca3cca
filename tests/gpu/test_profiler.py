"""The profile of a GPU: its kernels' times lie within the wall's, one after the other, near what launched them."""

from __future__ import annotations

import time

import pytest

import tritensor as tt
from tests.gpu.scale import real
from tritensor.profiler import ProfilerActivity, profile

pytestmark = pytest.mark.gpu


def test_kernels_lie_where_they_ran() -> None:
    side = 2048 if real() else 16
    a, b = tt.ones(side, side, device="cuda"), tt.ones(side, side, device="cuda")
    a @ b
    tt.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], roofline=True) as prof:
        start = time.perf_counter()
        for _ in range(20):
            a @ b
        tt.cuda.synchronize()
        wall = 1e6 * (time.perf_counter() - start)
    kernels = [e for e in prof.events() if e.kind == "kernel"]
    assert len(kernels) >= 20
    assert sum(k.time_range.elapsed_us() for k in kernels) <= 1.02 * wall
    for first, second in zip(kernels, kernels[1:], strict=False):
        assert first.time_range.end <= second.time_range.start + 5
    for k in kernels:
        assert k.time_range.start >= k.launched_by.time_range.start - 50
        assert k.launched_by.cpu_parent.name == "matmul"
    wait = next(e for e in prof.events() if e.name == "cuCtxSynchronize")
    assert kernels[-1].time_range.end <= wait.time_range.end + 50
    row = next(e for e in prof.key_averages() if e.key == "matmul")
    assert row.flops == 20 * 2 * side**3
    if real():
        assert 0.01 < row.roofline < 1.2
        assert kernels[0].metadata["registers per thread"] > 0
