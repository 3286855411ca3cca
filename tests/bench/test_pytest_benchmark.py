"""`python -m pytest bench`: the op table under pytest-benchmark, run as a user runs it, and what it says where it cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import walk
from bench.gpu.rows import corners
from bench.reports.report import processor
from bench.walk import Call
from tests.stub.build import environment
from tritensor.ops.table import Sample, registry

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--benchmark-max-time", "0.001", "--benchmark-min-rounds", "1")


def clean(**more: str) -> dict[str, str]:
    """An environment without what this session's own pytest, xdist and emulation have set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k != "TRITON_INTERPRET"}
    return {**kept, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **more}


def bench(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "bench", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env or clean(), capture_output=True, text=True, check=False)


def rows(path: Path) -> dict[str, dict[str, Any]]:
    """The benchmarks of a JSON file by what stands in the brackets of their names."""
    return {b["name"].removeprefix("test_op[").removesuffix("]"): b for b in json.loads(path.read_text())["benchmarks"]}


def test_the_json_tells_what_was_timed(tmp_path: Path) -> None:
    done = bench("--benchmark-only", "--op", "isnan,glu", "-k", "not size1", *QUICK, "--benchmark-json", str(tmp_path / "a.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(tmp_path / "a.json")
    assert {"glu-forward-float32-size0-cpu", "glu-backward-float32-size0-cpu", "isnan-forward-float32-size0-cpu"} <= found.keys()
    assert "isnan-backward-float32-size0-cpu" not in found
    for row in found.values():
        info, median = row["extra_info"], row["stats"]["median"]
        assert info["processor"] == processor()
        assert info["device"] == "cpu"
        assert info["config"] == {"threads": 1}
        assert info["gb_per_s"] == pytest.approx(info["bytes"] / median / 1e9)
        assert info["tflop_per_s"] == pytest.approx(info["flops"] / median / 1e12)
    glu = found["glu-backward-float32-size0-cpu"]
    assert glu["extra_info"]["shape"] == "[4096, 2048], dim=1"
    assert glu["group"] == "glu backward float32"
    assert "device cuda is left out: no NVIDIA driver" in done.stdout or "calls on the GPU" in done.stdout


def test_an_earlier_run_is_compared_with_and_emulation_is_not_timed(tmp_path: Path) -> None:
    stored = (
        "--benchmark-only",
        "--op",
        "isnan",
        *QUICK,
        "--benchmark-autosave",
        f"--benchmark-storage=file://{tmp_path}",
        "--benchmark-compare",
    )
    first, second = (bench(*stored, env=clean(TRITON_INTERPRET="1")) for _ in range(2))
    assert first.returncode == 0, first.stdout + first.stderr
    assert second.returncode == 0, second.stdout + second.stderr
    assert "test_op[isnan-forward-float32-size0-cpu] (NOW)" in second.stdout
    assert "test_op[isnan-forward-float32-size0-cpu] (0001_" in second.stdout
    assert "device cuda is left out: TRITON_INTERPRET=1 emulates it; unset it" in second.stdout
    assert "-cuda]" not in second.stdout


def test_sizes_for_a_gpu_are_counted() -> None:
    done = bench("--collect-only", "-q", "-v", "--op", "matmul", "--op", "reshape", "-k", "cpu")
    assert "bench: 1 sizes are left to a GPU: matmul size0" in done.stdout
    assert "bench: 1 ops have no sizes" in done.stdout
    assert "matmul-forward-float32-size0-cpu" not in done.stdout
    assert "matmul-forward-float32-size1-cpu" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-p", "no:benchmark", "--benchmark-only"), "pip install 'pytest-benchmark[histogram]'"),
        (("--op", "softmx"), "did you mean softmax"),
        (("-q", "--op", "softmx"), "did you mean softmax"),
    ],
)
def test_what_cannot_be_timed_is_told_in_a_line(arguments: tuple[str, ...], said: str) -> None:
    done = bench(*arguments)
    assert done.returncode == 4
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_plain_pytest_does_not_collect_it() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"] == ["tests"]


def test_a_call_on_a_gpu_knows_the_devices_own_time() -> None:
    """On the emulated device, which the walk itself leaves out: the set-up, the turns that inputs take, the figures beside the time."""
    forward, _ = corners(registry["relu"], "float32", Sample(np.ones(5)))
    made = walk.ready(Call(forward._replace(size=3), "cuda"))
    assert Call(forward._replace(size=3), "cuda").name == "relu-forward-float32-size3-cuda"
    assert made.facts["config"][0]["num_warps"] > 0
    assert made.facts["sets"] == len(made.prepared.runs) > 1
    turns: list[int] = []
    run = made._replace(prepared=made.prepared._replace(runs=[lambda: turns.append(0), lambda: turns.append(1)])).run()
    for _ in range(3):
        run()
    assert turns == [0, 1, 0]
    found = made.on_device()
    assert found["gpu_ms"] > 0
    assert found["host_us"] > 0
    assert found["gb_per_s"] == pytest.approx(made.prepared.bytes / found["gpu_ms"] / 1e6)


def test_the_timer_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    import tritensor as tt

    log: list[str] = []
    monkeypatch.setattr(tt.cuda, "synchronize", lambda: log.append("wait"))
    assert walk.synchronised() <= walk.synchronised()
    assert log == ["wait", "wait"]


@pytest.mark.slow
def test_on_the_stub_driver(tmp_path: Path) -> None:
    """The GPU's part through the real runtime, whose kernels do nothing; what it measures there means nothing."""
    env = {k: v for k, v in environment(STUB_CHECK=0).items() if not k.startswith("PYTEST_")}
    done = bench(
        "--benchmark-only",
        "--op",
        "relu",
        "-k",
        "cuda and size0 and float32",
        *QUICK,
        "--benchmark-json",
        str(tmp_path / "a.json"),
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(tmp_path / "a.json")
    assert found.keys() == {"relu-forward-float32-size0-cuda", "relu-backward-float32-size0-cuda"}
    for row in found.values():
        info = row["extra_info"]
        assert row["options"]["timer"] == "synchronised"
        assert row["options"]["min_time"] == 0.002
        assert "gpu_note" not in info, "it was captured"
        assert info["gpu_ms"] > 0
        assert info["host_us"] > 0
        assert info["config"][0]["kernel"]
        assert info["processor"] == "Stub H100"
