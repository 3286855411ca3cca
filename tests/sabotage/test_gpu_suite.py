"""The GPU's tests are tested: they collect with pytest and numpy alone, a part of them runs on the emulated device, and they can fail."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import STAND_IN
from tests.gpu.calls import Call, calls, repeat
from tritensor.array import from_host
from tritensor.device import device
from tritensor.table import Sample, registry

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("hypothesis", "xdist", "torch", "sklearn", "tqdm", "matplotlib", "scipy", "safetensors")


def suite(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`pytest -m gpu` in a process that has none of the extras."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        f"import importlib.util as u; find = u.find_spec\n"
        f"u.find_spec = lambda name, *rest: None if name.partition('.')[0] in {EXTRAS!r} else find(name, *rest)\n"
        f"import pytest; sys.exit(pytest.main({['-m', 'gpu', '-q', '-p', 'no:cacheprovider', '-p', 'no:hypothesispytest', '-p', 'no:xdist', *flags]!r}))"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", STAND_IN) and not k.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_collects_with_pytest_and_numpy_alone() -> None:
    done = suite("--collect-only", "tests")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    for name in ("walk", "sizes", "races", "memory", "graphs", "errors", "streams", "training", "sanitizer", "doctor", "launch_features"):
        assert f"tests/gpu/test_{name}.py" in done.stdout
    assert "tests/test_accuracy.py" in done.stdout, "the accuracy promises are kept on the GPU, too"
    for name in registry:
        assert f"test_five_questions[{name}/" in done.stdout


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_without_a_gpu_it_is_one_line() -> None:
    done = suite("tests/gpu/test_errors.py")
    assert done.returncode == 1
    assert "-m gpu asks for the real device: no NVIDIA driver" in done.stdout
    assert "FAILED" not in done.stdout


def emulated(*chosen: str) -> None:
    done = suite("tests/gpu", "-k", " or ".join(chosen), **{STAND_IN: "emulated"})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert " passed" in done.stdout


def test_a_part_of_it_passes_on_the_emulated_device() -> None:
    walked = "(test_walk and (logical_not or sgd_step or copy) and float32)"
    emulated(
        "test_memory",
        "test_graphs",
        "test_errors",
        "test_streams",
        "test_doctor",
        "test_sanitizer",
        walked,
        "(test_races and (relu or mse_loss))",
        "(test_sizes and (relu or amax or tril))",
    )


@pytest.mark.slow
def test_the_digits_pass_on_the_emulated_device_without_the_extras() -> None:
    emulated("test_training")


# they can fail
def planted(forward: Any) -> Call:
    return Call(dataclasses.replace(registry["relu"], forward=forward), Sample(np.ones(300)), "float32")


def test_a_race_is_found() -> None:
    """A kernel whose result depends on chance differs from run to run; one that does not, does not."""
    rng = np.random.default_rng(0)
    found = repeat(planted(lambda x: from_host(rng.random(300).astype(np.float32), device("cuda", 0))), 20)
    assert len(found) == 1
    assert "forward: run 1 gave another output 0" in found[0]
    assert not repeat(planted(registry["relu"].forward), 3)


def test_a_race_in_a_backward_is_found() -> None:
    rng = np.random.default_rng(0)
    real = registry["relu"].backward
    assert real is not None

    def loose(g: Any, *named: Any) -> Any:
        return from_host(rng.random(300).astype(np.float32), device("cuda", 0))

    loose_backward = real._replace(functions=(loose,))
    call = Call(dataclasses.replace(registry["relu"], backward=loose_backward), Sample(np.ones(300)), "float32")
    assert "backward: run 1" in repeat(call, 5)[0]


def test_races_are_looked_for_where_many_programs_run() -> None:
    for name in ("sum", "layer_norm", "add", "mse_loss", "max_pool2d", "conv2d", "embedding"):
        assert max(getattr(x, "size", 0) for call in calls(registry[name]) for x in call.host) >= 50_000, name


def test_the_families_are_all_kernels() -> None:
    """What compute-sanitizer is given launches every kernel of the table."""
    code = (
        "import sys; from tests.gpu.families import *; chosen = representatives()\n"
        "every = set().union(*(launched(op) for op in registry.values() if op.forward is not None))\n"
        "assert set().union(*(launched(registry[n]) for n in chosen)) == every; print(len(chosen), len(every))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    chosen, every = map(int, done.stdout.split())
    assert 20 <= chosen <= every
