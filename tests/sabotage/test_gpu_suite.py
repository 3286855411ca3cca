"""The GPU's tests are tested: they collect with pytest and numpy alone, a part of them runs on the emulated device, and they can fail."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tests.gpu.smoke
from tests.conftest import STAND_IN
from tests.gpu import workers
from tests.gpu.calls import Call, calls, repeat
from tests.gpu.smoke import ask, jobs, run, smoke_cases
from tests.gpu.suite import SHARDS, told
from tests.gpu.tile_shapes import TILES
from tritensor.ground.device import device
from tritensor.ops.array import from_host
from tritensor.ops.table import Sample, registry

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


# the smoke tier
def smoke(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.gpu.smoke` on the emulated device, or, where `environment` says so, without one."""
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu.smoke", *flags], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), STAND_IN: "emulated"} | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_smoke_tier_asks_every_op_in_two_types_at_more_than_a_tile() -> None:
    todo = jobs()
    assert {name for name, _ in todo} == {name for name, op in registry.items() if op.forward is not None}
    for name in ("add", "softmax", "matmul", "conv2d"):
        assert {(name, "float32"), (name, "bfloat16")} <= set(todo)
        case = smoke_cases(registry[name], "bfloat16", wide=False)[0]
        assert all(x.dtype.name == "bfloat16" for x in case.values if isinstance(x, np.ndarray)), name
        assert sum(getattr(x, "size", 0) for x in case.values) > 16_000, name


def test_the_smoke_tier_fills_the_tiles_of_what_multiplies_matrices() -> None:
    """Calls by tensor descriptors among them, which 128 x 256 results and rows of a multiple of 16 bytes take."""
    assert not TILES.keys() - registry.keys()
    for name in TILES:
        found = smoke_cases(registry[name], "bfloat16", wide=False)
        assert len(found) == 1 + len(TILES[name])
    shapes = [[x.shape for x in case.values] for case in smoke_cases(registry["matmul"], "bfloat16", wide=False)]
    assert any(a[0] >= 2048 and b[1] >= 1024 and a[1] % 8 == b[1] % 8 == 0 for a, b in shapes)
    assert any(a[1] % 8 for a, _ in shapes), "none goes by addresses"


def test_the_smoke_tier_passes_and_reports(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    done = smoke("--op", "logical_not", "sgd_step", "--processes", "2", "--report", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert {(r["item"].partition("/")[0], tuple(r["findings"])) for r in rows if "item" in r} == {("logical_not", ()), ("sgd_step", ())}
    assert rows[-1] == {"left": 0}


def test_a_process_that_dies_costs_the_smoke_tier_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAND_IN, "emulated")
    report = tmp_path / "report.jsonl"
    with report.open("w") as file:
        found = run(["no_such_op/float32", "logical_not/float32", "relu/bfloat16"], wide=False, processes=1, report=file)
    rows = {r["item"]: (r["outcome"], r["findings"]) for r in map(json.loads, report.read_text().splitlines())}
    assert found == (1, [])
    outcome, findings = rows["no_such_op/float32"]
    assert outcome == "died"
    assert findings[0].startswith("the process died with 1")
    assert "KeyError" in findings[0]
    assert rows["logical_not/float32"] == rows["relu/bfloat16"] == ("passed", [])


def test_what_differs_from_numpy_is_a_finding_of_the_smoke_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("relu", "float32", wide=False) == []
    monkeypatch.setitem(vars(tests.gpu.smoke), "registry", {"relu": dataclasses.replace(registry["relu"], forward=registry["neg"].forward)})
    assert "relu/1000/float32" in ask("relu", "float32", wide=False)[0]


# the suite, dealt to processes
def dealt(shard: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.gpu.suite` on the emulated device."""
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu.suite", shard, *flags], cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), STAND_IN: "emulated", "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_shard_passes_and_what_is_done_is_not_asked_again(tmp_path: Path) -> None:
    report, done = tmp_path / "report.jsonl", tmp_path / "done"
    done.write_text("tests/gpu/test_walk.py::test_five_questions[logical_not/float32]\n")
    ran = dealt("walk", "--op", "logical_not", "--processes", "1", "--report", str(report), "--done", str(done))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    asked = [r["item"].partition("[")[2] for r in rows if "item" in r]
    assert asked[:3] == ["logical_not/bfloat16]", "logical_not/float16]", "logical_not/float64]"], "types by their worth"
    assert "logical_not/float32]" not in asked
    assert {r["outcome"] for r in rows if "item" in r} == {"passed"}


def test_the_shards_hold_every_test_of_the_suite() -> None:
    marked = re.compile(r"pytest[.]mark[.]gpu")  # spelt so that this file is none of them
    files = {str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py") if marked.search(p.read_text())}
    assert {f for shard in SHARDS.values() for f in shard.files} == files


def test_a_failing_test_is_told_by_its_first_line() -> None:
    crash = SimpleNamespace(message="assert 1 == 2\nmore", path="/x/test_a.py", lineno=7)
    assert told(SimpleNamespace(longrepr=SimpleNamespace(reprcrash=crash))) == "assert 1 == 2\nmore (test_a.py:7)"
    assert told(SimpleNamespace(longrepr="no crash")) == "no crash"


def test_workers_that_never_answer_end_the_run() -> None:
    """Where nothing can be imported, five processes are tried and not one for each of a thousand questions."""
    found = workers.deal([str(i) for i in range(50)], lambda: workers.Worker(["/bin/sh", "-c", "echo no such module; exit 9; #"], 5.0), 1)
    assert found.bad == workers.MOST_UNBORN
    assert found.left == [str(i) for i in range(5, 50)]


def test_a_workers_words_are_no_answers() -> None:
    code = "import json, os, sys\nout = os.fdopen(int(sys.argv[2]), 'w')\nfor line in sys.stdin:\n print('[1, 2]' * 99999, flush=True)\n print(json.dumps({'outcome': 'passed', 'findings': [line.strip()]}), file=out, flush=True)"
    worker = workers.Worker([sys.executable, "-c", code], 20.0)
    assert [worker.ask(q).findings for q in ("a", "b")] == [["a"], ["b"]]
    worker.close()
    assert len(worker.said()) <= workers.KEPT


def test_a_worker_that_hangs_is_killed() -> None:
    worker = workers.Worker(["/bin/sh", "-c", "echo busy; exec sleep 60; #"], 1.0)
    assert worker.ask("a") == ("hung", ["no answer in 1 s: busy"], {})
    worker.close()
    assert not worker.alive
