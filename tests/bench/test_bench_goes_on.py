"""`bench gpu --resume` behind what ended an earlier run: a row that killed or hung the process, a GPU that answers no more, a quick run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.gpu.clock import Ours
from bench.gpu.run import Bench, DeviceGoneError
from bench.reports.report import Report, commit
from tests.bench.test_bench_gpu import HEAD, planned, read, tiny
from tests.gpu.workers import ROOT


def made(folder: Path, report: Report | None = None) -> Bench:
    return Bench(planned(tiny("relu", "neg"), ("ops",)), report or Report(folder / "report.json", HEAD), Ours(), None, 0)


def at(folder: Path) -> Path:
    return folder / ".report.json.at"


def test_nothing_is_noted_of_a_run_that_ended(tmp_path: Path) -> None:
    assert made(tmp_path).run() == 0
    assert not at(tmp_path).exists()
    assert read(tmp_path)["died"] == {}


KILLED = """
import os, sys
from pathlib import Path
import bench.gpu.run as run
from tests.bench.test_bench_goes_on import made
before, row = run.time_ours, sys.argv[2]
def time_ours(lib, case, *rest):
    if case.key == row:
        os.kill(os.getpid(), 9)
    return before(lib, case, *rest)
run.time_ours = time_ours
made(Path(sys.argv[1])).run()
"""


def test_a_row_that_killed_the_process_is_told_and_not_tried_again(tmp_path: Path) -> None:
    rows = [case.key for case in tiny("relu", "neg")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), rows[2]], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert at(tmp_path).read_text() == rows[2]
    next_run = made(tmp_path, Report.resumed(tmp_path / "report.json", HEAD))
    assert next_run.run() == 1
    content = read(tmp_path)
    assert content["rows"].keys() == set(rows) - {rows[2]}
    assert content["failed"] == content["died"] == {rows[2]: "the process ended, or was ended, while this was timed"}
    assert not at(tmp_path).exists()
    assert made(tmp_path, Report.resumed(tmp_path / "report.json", HEAD)).run() == 1, "the third run knows it, too"
    assert read(tmp_path)["failed"] == content["failed"]


def test_a_gpu_that_answers_no_more_ends_the_run_at_that_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [case.key for case in tiny("relu", "neg")]
    bench = made(tmp_path)

    def lost(*args: Any) -> Any:
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr("bench.gpu.run.time_ours", lost)
    monkeypatch.setattr(bench.ours, "synchronize", lost)
    with pytest.raises(DeviceGoneError, match="the GPU answers this process no more"):
        bench.run()
    assert at(tmp_path).read_text() == rows[0]
    assert list(read(tmp_path)["failed"]) == [rows[0]], "the rows behind it are not failures"
    monkeypatch.undo()
    assert made(tmp_path, Report.resumed(tmp_path / "report.json", HEAD)).run() == 1
    assert read(tmp_path)["rows"].keys() == set(rows[1:])


def test_a_roofline_that_killed_the_process_is_told_and_rows_go_without(tmp_path: Path) -> None:
    first = Report(tmp_path / "report.json", HEAD)
    first.begin("roofline")
    first.save()
    bench = Bench(planned(tiny("relu")), Report.resumed(tmp_path / "report.json", HEAD), Ours(), None, 0)
    assert bench.run() == 1
    assert read(tmp_path)["failed"] == {"roofline": "the process ended, or was ended, while this was timed"}
    assert read(tmp_path)["roofline"] == {}
    assert len(read(tmp_path)["rows"]) == 2


def test_whoever_stops_a_run_blames_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.gpu.run.time_ours", stop)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path).run()
    assert not at(tmp_path).exists()


@pytest.mark.parametrize(
    ("before", "now", "kept"), [("quick", "quick", True), ("quick", "full", True), ("full", "full", True), ("full", "quick", False)]
)
def test_a_quick_run_is_the_beginning_of_a_full_one(before: str, now: str, kept: bool, tmp_path: Path) -> None:
    first = Report(tmp_path / "report.json", HEAD | {"mode": before})
    first.put("rows", "relu", {"ms": 1.0})
    first.save()
    found = Report.resumed(tmp_path / "report.json", HEAD | {"mode": now}).content
    assert found["mode"] == now
    assert ("relu" in found["rows"]) == kept


def test_a_copy_without_history_is_told_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITENSOR_BENCH_COMMIT", "abc+")
    assert commit() == {"hash": "abc", "changed": True}
    monkeypatch.setenv("TRITENSOR_BENCH_COMMIT", "abc")
    assert json.dumps(commit()) == '{"hash": "abc", "changed": false}'
