"""@triton.autotune and @triton.heuristics on our tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub.build import environment
from tests.triton_kernels.kernels import accumulate, scaled_sum
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.ground.errors import LaunchError


def configs(*blocks: int, **more: Any) -> list[Any]:
    return [triton.Config({"BLOCK": b}, **more) for b in blocks]


def three(n: int = 100) -> tuple[tt.Tensor, tt.Tensor, tt.Tensor]:
    x, y = tt.arange(n, dtype=tt.float32, device="cuda"), tt.ones(n, device="cuda")
    return x, y, tt.empty_like(x)


def test_emulated_the_first_config_that_runs_is_taken_by_key() -> None:
    tuned = triton.autotune(configs(32, 64, 128), key=["n"])(scaled_sum)
    for n in (100, 100, 50):
        x, y, out = three(n)
        tuned[lambda meta, n=n: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, 2.0)
        assert out.tolist() == (x + 2 * y).tolist()
    assert [c.kwargs["BLOCK"] for c in tuned.cache.values()] == [32, 32]
    assert tuned.best_config.kwargs == {"BLOCK": 32}


@triton.jit
def picky(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 64, "BLOCK is too small")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) + 1, mask=i < n)


def test_a_config_that_cannot_run_is_left_out_and_named_where_none_can() -> None:
    x, _, out = three()
    tuned = triton.autotune(configs(16, 32, 64), key=["n"])(picky)
    tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    assert tuned.best_config.kwargs == {"BLOCK": 64}
    assert out.tolist() == (x + 1).tolist()
    hopeless = triton.autotune(configs(16, 32), key=["n"])(picky)
    with pytest.raises(
        LaunchError, match=r"autotune picky: none of its 2 configs runs here; add one that needs less:\n- BLOCK: 16.*\n- BLOCK: 32"
    ):
        hopeless[(7,)](x, out, 100)


def test_a_fault_of_the_kernel_is_no_bad_config() -> None:
    x, y, out = three()
    tuned = triton.autotune(configs(32, 64), key=["n"])(scaled_sum)
    with pytest.raises(SanitizerError, match="scaled_sum"):
        tuned[(8,)](x, y, out, 200, 2.0)


def test_values_are_restored_and_zeroed_between_configs() -> None:
    x, _, _ = three(64)
    total, calls = tt.full((1,), 5.0, device="cuda"), []

    def hook(arguments: Any, reset_only: bool = False) -> None:
        calls.append(reset_only)
        arguments["total_ptr"].zero_()

    tuned = triton.autotune(configs(32, 64), key=["n"], pre_hook=hook)(accumulate)
    tuned[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, total, 64)
    assert total.item() == sum(range(64))
    assert calls == [False, True]
    kept = triton.autotune(configs(32, 64), key=["n"], restore_value=["total_ptr"])(accumulate)
    kept[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, total, 64)
    assert total.item() == 2 * sum(range(64))
    zeroed = triton.autotune(configs(32, 64), key=["n"], reset_to_zero=["total_ptr"])(accumulate)
    zeroed[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](x, total, 64)
    assert total.item() == sum(range(64))


def test_configs_are_pruned_and_heuristics_asked() -> None:
    x, y, out = three()
    early = {"early_config_prune": lambda given, named, **_: [c for c in given if c.kwargs["BLOCK"] > named["n"] // 2]}
    tuned = triton.autotune(configs(32, 64, 128), key=["n"], prune_configs_by=early)(scaled_sum)
    tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, out, 100, 2.0)
    assert tuned.best_config.kwargs == {"BLOCK": 64}
    guided = triton.heuristics({"BLOCK": lambda named: triton.next_power_of_2(named["n"])})(scaled_sum)
    guided[(1,)](x, y, out, 100, 3.0)
    assert out.tolist() == (x + 3 * y).tolist()


def test_a_tuned_symbol_may_not_be_given() -> None:
    x, y, out = three()
    tuned = triton.autotune(configs(32, 64), key=["n"])(scaled_sum)
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned[(2,)](x, y, out, 100, 2.0, BLOCK=64)
    tuned[(4,)](x, y, out, 100, 2.0)
    for again in (tuned, triton.autotune(configs(32), key=[])(scaled_sum)):  # where nothing is left to be searched
        with pytest.raises(TypeError, match="autotune scaled_sum: BLOCK is chosen by the configs and is given in the call as well"):
            again[(4,)](x, y, out, 100, 2.0, BLOCK=64)


RECORDING = """
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU

recorder = VirtualGPU(90)
active.use(recorder)
"""

PROGRAM = """
import tritensor as tt
import triton
from tests.triton_kernels.kernels import scaled_sum

x, y = tt.ones(4096, device="cuda"), tt.ones(4096, device="cuda")
out = tt.empty_like(x)
tuned = triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((256, 4), (1024, 8))], key=["n"], cache_results=True)(scaled_sum)
tuned[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](x, y, out, 4096, 2.0)
print("searched" if hasattr(tuned, "bench_time") else "read", tuned.best_config.kwargs["BLOCK"] in (256, 1024))
print(sorted(len(times) for times in tuned.configs_timings.values()))
"""


def test_on_a_device_it_measures_with_our_events_and_keeps_the_choice_on_disk(tmp_path: Path) -> None:
    where = environment(STUB_CHECK=0) | {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_PRINT_AUTOTUNING": "1"}
    said = [subprocess.run([sys.executable, "-c", PROGRAM], env=where, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert "searched True\n[3, 3]" in said[0]
    assert "best config selected: BLOCK" in said[0]
    assert "read True\n[3, 3]" in said[1]
    assert "Autotuning kernel" not in said[1]


def test_a_device_that_only_records_launches_every_config_and_keeps_no_choice(tmp_path: Path) -> None:
    where = environment(STUB_CHECK=0) | {"TRITON_CACHE_DIR": str(tmp_path)}
    programs = RECORDING + PROGRAM, PROGRAM, RECORDING + PROGRAM
    said = [subprocess.run([sys.executable, "-c", p], env=where, capture_output=True, text=True, check=True).stdout for p in programs]
    assert "searched True" in said[0]
    assert "searched True" in said[1]  # the GPU: nothing was there for it
    assert "read True" in said[2]  # what a GPU has measured holds where a program is only recorded
