"""Triton kernels as they are, on the GPU: kernel[grid], autotune with our timer, what was compiled, streams, graphs."""

from __future__ import annotations

import pytest
import triton
import triton.testing

import tritensor as tt
from tests.triton_kernels.kernels import accumulate, described_inside, scaled_sum, strided_copy

pytestmark = pytest.mark.gpu


def test_a_kernel_and_what_was_compiled() -> None:
    x, y = tt.randn(10_000, device="cuda"), tt.randn(10_000, device="cuda")
    out = tt.empty_like(x)
    kernel = scaled_sum[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, 10_000, 0.5, BLOCK=1024, num_warps=8)
    assert tt.equal(out, x + 0.5 * y)
    assert kernel.n_regs > 0
    assert kernel.metadata.num_warps == 8


def test_strides_that_are_one_and_that_are_not() -> None:
    x = tt.randn(64, 48, device="cuda")
    for t in (x[:, :16], x[:, ::3], x.t()[:48, :16]):
        out = tt.empty(t.shape, device="cuda")
        strided_copy[(t.shape[0],)](t, out, *t.shape, *t.stride(), BLOCK=16)
        assert tt.equal(out, t)


def test_autotune_measures() -> None:
    x, y = tt.randn(1 << 20, device="cuda"), tt.randn(1 << 20, device="cuda")
    out = tt.empty_like(x)
    tuned = triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((128, 1), (1024, 4), (4096, 8))], key=["n"])(scaled_sum)
    tuned[lambda meta: (triton.cdiv(1 << 20, meta["BLOCK"]),)](x, y, out, 1 << 20, 2.0)
    assert tt.allclose(out, x + 2 * y)
    assert all(0 < times[0] < 100 for times in tuned.configs_timings.values())


def test_streams_graphs_and_the_timer() -> None:
    x, total = tt.ones(4096, device="cuda"), tt.zeros(1, device="cuda")
    stream = tt.cuda.Stream()
    stream.wait_stream(tt.cuda.current_stream())
    with tt.cuda.stream(stream):
        assert triton.runtime.driver.active.get_current_stream(0) == stream.cuda_stream
        accumulate[(4,)](x, total, 4096, BLOCK=1024)
    tt.cuda.current_stream().wait_stream(stream)
    assert total.item() == 4096
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        accumulate[(4,)](x, total, 4096, BLOCK=1024)
    graph.replay()
    assert total.item() == 2 * 4096
    assert 0 < triton.testing.do_bench(lambda: accumulate[(4,)](x, total, 4096, BLOCK=1024)) < 10
    assert 0 < triton.testing.do_bench_cudagraph(lambda: accumulate[(4,)](x, total, 4096, BLOCK=1024)) < 10


def test_descriptors_made_in_the_kernel() -> None:
    x = tt.randn(64, 128, device="cuda")
    out = tt.empty_like(x)
    triton.set_allocator(lambda size, alignment, stream: tt.empty(size, dtype=tt.int8, device="cuda"))
    described_inside[(4, 8)](x, out, 64, 128, ROWS=16, COLUMNS=16)
    assert tt.equal(out, x + 1)
