"""Triton's questions to its driver, answered by this library; Triton's testing functions over our tensors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
import triton.testing

import tritensor as tt
from tests.stub.child import on_stub
from tests.triton_kernels.kernels import scaled_sum
from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.triton_kernels.driver import TensorDriver


def active() -> Any:
    return triton.runtime.driver.active


def test_the_active_driver_is_ours_and_says_what_the_device_is() -> None:
    assert isinstance(active(), TensorDriver)
    assert active().get_active_torch_device() == tt.device("cuda", 0)
    target = active().get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", 90, 32)
    assert active().get_device_capability() == (9, 0)
    assert active().get_current_stream(0) == tt.cuda.current_stream().cuda_stream == 0
    assert active().get_device_interface() is tt.cuda
    found = active().utils.get_device_properties(active().get_current_device())
    assert found["max_shared_mem"] == 232448
    assert found["multiprocessor_count"] == 132
    assert found["max_num_regs"] == 65536
    assert found["warpSize"] == 32


def test_the_current_device_is_one_and_the_same() -> None:
    active().set_current_device(1)
    try:
        assert tt.cuda.current_device() == 1
        assert active().get_active_torch_device() == tt.device("cuda", 1)
    finally:
        tt.cuda.set_device(0)
    assert active().get_current_device() == 0


def test_do_bench_times_with_our_events() -> None:
    x = tt.ones(64, device="cuda")
    out = tt.empty_like(x)
    calls = []

    def call() -> None:
        calls.append(1)
        scaled_sum[(1,)](x, x, out, 64, 1.0, BLOCK=64)

    times = triton.testing.do_bench(call, warmup=1, rep=1, quantiles=[0.5, 0.2, 0.8])
    assert len(times) == 3
    assert all(t > 0 for t in times)
    assert len(calls) >= 3
    assert triton.testing.do_bench(call, warmup=1, rep=1, return_mode="min") > 0


def test_do_bench_in_a_graph() -> None:
    x = tt.ones(64, device="cuda")
    out = tt.zeros_like(x)
    ms = triton.testing.do_bench_cudagraph(lambda: scaled_sum[(1,)](x, x, out, 64, 1.0, BLOCK=64), rep=1)
    assert ms > 0
    assert out.tolist() == [2.0] * 64


def test_assert_close_compares_our_tensors() -> None:
    x = tt.arange(8, dtype=tt.float32, device="cuda")
    triton.testing.assert_close(x, x.cpu())
    triton.testing.assert_close(x.to(tt.bfloat16), [float(i) for i in range(8)])
    triton.testing.assert_close(x, np.arange(8, dtype=np.float32))
    with pytest.raises(AssertionError):
        triton.testing.assert_close(x, x + 1, atol=1e-3, rtol=0)


def test_a_report_of_a_benchmark() -> None:
    @triton.testing.perf_report(
        triton.testing.Benchmark(
            x_names=["n"], x_vals=[64, 128], line_arg="provider", line_vals=["ours"], line_names=["ours"], plot_name="sums", args={}
        )
    )  # fmt: skip
    def benchmark(n: int, provider: str) -> float:
        x = tt.ones(n, device="cuda")
        return 3 * n * 4 / triton.testing.do_bench(lambda: scaled_sum[(1,)](x, x, tt.empty_like(x), n, 1.0, BLOCK=128), warmup=1, rep=1)

    found = benchmark.run(return_df=True)
    frame = found[0] if isinstance(found, list) else found
    assert list(frame["n"]) == [64.0, 128.0]


def test_figures_of_the_device() -> None:
    assert triton.testing.get_dram_gbps(0) > 0
    assert triton.testing.get_max_tensorcore_tflops(tt.float16, 1.7e6, 0) > 0


@triton.jit
def by_capability(y):
    if tl.target_info.cuda_capability_geq(9, 0):
        tl.store(y, 12345)
    else:
        tl.store(y, 54321)


@on_stub()
def test_a_kernel_is_told_the_gpu_that_it_is_compiled_for_and_not_the_one_here() -> None:
    y = tt.empty(1, dtype=tt.int32, device="cuda")
    from tritensor.cuda.compiler.compile import compile

    spec, _ = specialize(LaunchCall(by_capability, (1,), (y._array,), {}))
    assert "12345" in compile(spec, 90).asm["ptx"]
    assert "54321" in compile(spec, 80).asm["ptx"]
    assert triton.runtime.driver.active.get_current_target().arch == 90


FIRST = """
import os, pkgutil
import tritensor, tritensor.cuda.compiler as folder
for name in [m.name for m in pkgutil.iter_modules(folder.__path__)]:
    child = os.fork()
    if child == 0:
        __import__("tritensor.cuda.compiler." + name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"{name} cannot be imported before Triton is")
    print(name)
"""


def test_any_module_of_the_compiler_may_be_what_imports_triton() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout
    assert "compile" in done.stdout.split()
