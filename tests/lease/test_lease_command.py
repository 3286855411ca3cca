"""`python -m tests.gpu.lease` as it is typed: without a GPU, on the emulated device, on the stub driver; every real step's command is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import STAND_IN
from tests.gpu.lease import steps
from tests.gpu.lease.__main__ import _resume, main
from tests.gpu.lease.identity import environment
from tests.gpu.lease.ledger import Ledger
from tests.gpu.lease.perform import Work, perform
from tests.gpu.workers import ROOT
from tests.lease.fake_steps import IDENTITY, NoGuard, work_in
from tests.stub import build

EMULATED = {STAND_IN: "emulated"}


def lease(*flags: object, **more: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", STAND_IN, "OUT")}
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu.lease", *map(str, flags)], cwd=ROOT, env=clean | {"PYTHONPATH": str(ROOT)} | more,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_without_a_gpu_it_is_one_line_and_a_ledger(tmp_path: Path) -> None:
    done = lease(OUT=str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.startswith("lease: no GPU here: no NVIDIA driver")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["ledger.json"]
    content = json.loads((tmp_path / "out" / "ledger.json").read_text())
    assert content["identity"]["why"].startswith("no NVIDIA driver")
    assert content["identity"]["tree"]


def test_what_makes_no_sense_is_refused_in_a_line(tmp_path: Path) -> None:
    assert main(["--step", "smok", "--out", str(tmp_path)]) == 2
    assert main(["--collect", str(tmp_path)]) == 2


@pytest.mark.parametrize("tree", ["a" * 20, "b" * 20])
def test_the_files_beside_a_ledger_are_gone_on_with(tree: str, tmp_path: Path) -> None:
    """A report of another tree is kept beside the new one: its rows and ours are not of one program. Tuning's times are by machine code, and stay."""
    first, name = tmp_path / "first", "nvidia-test-9000"
    Ledger(first, IDENTITY).write()
    for file in (f"{name}.json", f"tuned-{name}.json", f"tuned-{name}.json.journal"):
        (first / file).write_text(f"{file} of the first run")
    (first / f"{name}.json").chmod(0o400)
    work = work_in(tmp_path / "next", tree=tree)
    _resume(first / "ledger.json", work.ledger, work.out, work.scratch, name)
    same = tree == "a" * 20
    assert {p.name for p in work.scratch.iterdir()} == {steps.TUNED, f"{steps.TUNED}.journal", *([steps.REPORT] if same else [])}
    assert {p.name for p in work.out.iterdir()} == (set() if same else {f"older-{name}.json"})
    if not same:
        work.ledger.write()
        third = work_in(tmp_path / "third", tree=tree)
        _resume(work.ledger.path, third.ledger, third.out, third.scratch, name)
        assert {p.name for p in third.out.iterdir()} == {f"older-{name}.json"}


@pytest.mark.slow
def test_it_runs_on_the_emulated_device_and_goes_on(tmp_path: Path) -> None:
    asked = ["--op", "logical_not", "--step", "doctor", "smoke", "suite walk", "--processes", 1, "--seconds", 300]
    first = lease(*asked, "--out", tmp_path / "first", **EMULATED)
    table = first.stdout.partition("\nlease: ")[2]
    assert "smoke           passed" in table, first.stdout + first.stderr
    assert "2 of 2 ops and types as numpy's" in table
    assert "suite walk      passed" in table
    assert "doctor          failed" in table, "the emulated device is no GPU"
    assert first.returncode == 1
    assert {p.name for p in (tmp_path / "first").iterdir()} == {"ledger.json", "table.txt", "log.txt"}
    again = lease(*asked, "--out", tmp_path / "second", "--resume", tmp_path / "first" / "ledger.json", **EMULATED)
    assert "begun" not in again.stdout, "all was done"
    foreign = tmp_path / "first" / "foreign.json"
    foreign.write_text('{"rows": {}}')
    refused = lease(*asked, "--out", tmp_path / "third", "--resume", foreign, **EMULATED)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"lease: {foreign}: no ledger of `python -m tests.gpu.lease`, or one of another format\n",
    )


@pytest.mark.slow
def test_it_ends_before_its_wall_and_on_a_signal(tmp_path: Path) -> None:
    start = time.monotonic()
    done = lease("--step", "demos", "--out", tmp_path / "wall", "--seconds", 60, **EMULATED)
    assert time.monotonic() - start < 55
    assert "demos           unfinished" in done.stdout, done.stdout + done.stderr
    assert f"go on: python -m tests.gpu.lease --resume {tmp_path / 'wall' / 'ledger.json'}" in done.stdout
    told = subprocess.Popen(
        [sys.executable, "-m", "tests.gpu.lease", "--step", "demos", "--out", str(tmp_path / "told")], cwd=ROOT, text=True,
        env={k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | EMULATED | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert told.stdout is not None
    assert "demos: begun" in told.stdout.readline()
    ledger, until = tmp_path / "told" / "ledger.json", time.monotonic() + 60
    while not (ledger.exists() and "unfinished" in ledger.read_text()):  # noted a moment after it is told
        assert time.monotonic() < until
        time.sleep(0.01)
    told.send_signal(signal.SIGTERM)
    rest, _ = told.communicate(timeout=60)
    assert "stopped by SIGTERM" in rest
    assert "demos           unfinished" in (tmp_path / "told" / "table.txt").read_text()


# Each step's own command, in its smallest form
def begun(name: str, folder: Path, seconds: float, ops: tuple[str, ...] = (), done: tuple[str, ...] = (), **more: str) -> Work:
    work = work_in(folder)
    work.ops, work.processes, work.environment, work.slug = ops, 1, environment() | more, "nvidia-test-9000"
    for item in done:
        work.ledger.item(name, {"item": item, "outcome": "skipped"})
    perform(next(s for s in steps.STEPS if s.name == name), seconds, True, work, NoGuard())
    return work


EMULATED_STEPS: dict[str, dict[str, Any]] = {
    "doctor": {},
    "smoke": {"ops": ("logical_not",)},
    "demos": {"done": ("digits eager", "digits graph", "gpt graph", "digits script", "gpt script")},
    "suite core": {},
    "suite accuracy": {},
    "suite walk": {"ops": ("logical_not",)},
    "suite races": {"ops": ("logical_not",)},
    "suite sizes": {"ops": ("logical_not",)},
    "suite sanitizer": {},
}
ON_STUB = ("host", "bench quick", "bench all", "tune")


def test_every_step_is_tried_somewhere() -> None:
    assert {*EMULATED_STEPS, *ON_STUB} == {s.name for s in steps.STEPS}


FULL = [pytest.mark.slow, pytest.mark.full]
IN_THE_GATE = ("doctor", "smoke", "suite walk", "host")  # the other steps' commands are tried by the full tier


def at_their_time(names: Iterable[str]) -> list[Any]:
    return [pytest.param(n, marks=[pytest.mark.slow] if n in IN_THE_GATE else FULL) for n in names]


@pytest.mark.parametrize("name", at_their_time(EMULATED_STEPS))
def test_a_steps_command_runs_on_the_emulated_device(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAND_IN, "emulated")
    work = begun(name, tmp_path, 45.0, **EMULATED_STEPS[name])
    entry = work.ledger.entry(name)
    if name == "doctor":
        assert entry.figures.startswith("an add of 256 numbers takes the host")
        assert entry.errors[0].startswith("settings emulation")
        return
    assert entry.outcome in ("passed", "unfinished"), (entry, work.log)
    assert any(outcome in ("passed", "skipped") for outcome, *_ in entry.items.values()), (entry, work.log)


@pytest.mark.parametrize("name", at_their_time(ON_STUB))
def test_a_steps_command_runs_on_the_stub_driver(name: str, tmp_path: Path) -> None:
    ops = {"host": (), "tune": ("softmax",)}.get(name, ("relu",))
    work = begun(name, tmp_path, 150.0, ops, **{k: v for k, v in build.environment(STUB_CHECK=0).items() if k.startswith(("LD_", "STUB_"))})
    entry, words = work.ledger.entry(name), work.log[name]
    assert entry.outcome in ("passed", "failed", "unfinished"), (entry, words)
    assert "usage:" not in words
    if name in ("bench quick", "bench all"):
        assert "rows; 0 of 0 no slower than torch" in entry.figures, (entry, words)
    if name == "host":
        assert entry.figures.startswith("us: x + y "), (entry, words)
        assert "no torch beside it: not installed" in entry.figures or "(" in entry.figures


def test_what_is_tuned_are_the_largest_gaps() -> None:
    def row(op: str, ms: float, torch: float, **more: Any) -> dict[str, Any]:
        return {"op": op, "ms": ms, "torch_ms": torch, "config": [{}]} | more

    rows = [
        row("a", 3.0, 1.0),
        row("b", 9.0, 1.0, compile_ms=8.5),
        row("c", 5.0, 9.0, compile_ms=4.0),
        row("d", 1.0, 2.0),
        row("view", 9.0, 1.0, config=[]),
    ]
    rows += [row("b", 1.5, 1.0), *(row(f"e{i}", 1.1, 1.0) for i in range(9))]
    found = steps.largest_gaps({"rows": dict(enumerate(rows))})
    assert found[:3] == ["b", "a", "c"]
    assert len(found) == 5
    assert steps.largest_gaps({}) == []
