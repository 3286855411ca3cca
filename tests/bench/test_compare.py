"""`bench compare` on reports that are made up: what moved, what is noise, what cannot be compared."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bench.reports import compare


def report(**times: tuple[float, float]) -> dict[str, Any]:
    """A report of ops with a (time, spread) each."""
    rows = {
        f"{op}/forward/float32/[4]": {
            "op": op, "corner": "forward", "dtype": "float32", "shape": "[4]", "ms": ms, "spread": spread, "eager_ms": 2 * ms, "eager_spread": spread,
            "host_us": 3.0,
        }
        for op, (ms, spread) in times.items()
    }  # fmt: skip
    return {
        "schema": 2,
        "gpu": "Test 9000",
        "mode": "full",
        "versions": {"triton": "3.9"},
        "clocks": {},
        "rows": rows,
        "training": {},
        "failed": {},
    }


def command(tmp_path: Path, before: Any, after: Any, *flags: str) -> int:
    for name, content in (("a.json", before), ("b.json", after)):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return compare.main([str(tmp_path / "a.json"), str(tmp_path / "b.json"), *flags])


def test_what_moved_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = report(add=(1.0, 0.01), softmax=(1.0, 0.01), relu=(1.0, 0.01), gone=(1.0, 0.0))
    after = report(add=(1.2, 0.01), softmax=(0.5, 0.01), relu=(1.04, 0.01), new=(1.0, 0.0))
    assert command(tmp_path, before, after) == 1
    shown = capsys.readouterr().out
    slower = shown[shown.index("SLOWER:") :].splitlines()[1]
    faster = shown[shown.index("faster:") :].splitlines()[1]
    assert slower.split()[:2] == ["1.200", "x"]
    assert slower.endswith("add forward float32 [4]")
    assert faster.split()[0] == "0.500"
    assert faster.endswith("softmax forward float32 [4]")
    assert "relu" not in shown
    assert "1 rows only in the first report: gone forward float32 [4]" in shown
    assert "1 rows only in the second report: new forward float32 [4]" in shown
    assert "3 rows compared: 1 slower, 1 faster, 1 within 5 % or their spread" in shown


def test_without_a_regression_the_code_is_0(tmp_path: Path) -> None:
    assert command(tmp_path, report(add=(1.0, 0.0)), report(add=(0.5, 0.0))) == 0
    assert command(tmp_path, report(add=(1.0, 0.0)), report(add=(1.04, 0.0))) == 0


@pytest.mark.parametrize(("spread", "code"), [(0.0, 1), (0.1, 1), (0.2, 0)])
def test_a_noisy_row_needs_a_larger_step(tmp_path: Path, spread: float, code: int) -> None:
    """20 % slower: more than both spreads of 10 % together (14 %), less than those of 20 % (28 %)."""
    assert command(tmp_path, report(add=(1.0, spread)), report(add=(1.2, spread))) == code


def test_the_threshold_and_the_metric_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = report(add=(1.0, 0.0)), report(add=(1.2, 0.0))
    assert command(tmp_path, before, after, "--threshold", "0.25") == 0
    assert command(tmp_path, before, after, "--metric", "host_us") == 0
    assert command(tmp_path, before, after, "--metric", "eager_ms") == 1
    assert "2 -> 2.4 " in " ".join(capsys.readouterr().out.split())


def test_a_row_that_fails_now_is_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = report(add=(1.0, 0.0))
    after["failed"] = {"relu/forward/float32/[4]": "LaunchError: no\nmore"}
    assert command(tmp_path, report(add=(1.0, 0.0), relu=(1.0, 0.0)), after) == 1
    assert "FAILED in the second report: relu forward float32 [4]: LaunchError: no\n" in capsys.readouterr().out


def test_training_steps_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = report(add=(1.0, 0.0)), report(add=(1.0, 0.0))
    before["training"], after["training"] = {"LeNet": {"graph_ms": 1.0, "eager_ms": 2.0}}, {"LeNet": {"graph_ms": 1.0, "eager_ms": 3.0}}
    assert command(tmp_path, before, after) == 1
    assert "training: LeNet, eager_ms" in capsys.readouterr().out


def test_other_devices_and_schemas_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = report(add=(1.0, 0.0))
    other = {**copy.deepcopy(before), "gpu": "Test 8000"}
    older = {**copy.deepcopy(before), "schema": 1}
    assert command(tmp_path, before, other) == 2
    assert capsys.readouterr().err == (
        "bench compare: reports of Test 9000 and of Test 8000: their times say nothing of a change; --force compares them nevertheless\n"
    )
    assert command(tmp_path, before, older) == 2
    assert "schema 2 and 1" in capsys.readouterr().err
    assert command(tmp_path, before, other, "--force") == 0
    assert "forced: reports of Test 9000" in capsys.readouterr().out


def test_what_else_differs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = report(add=(1.0, 0.0))
    after["versions"] = {"triton": "3.6"}
    after["mode"] = "quick"
    after["clocks"] = {"before": {}, "after": {"throttled": ["power cap"]}}
    assert command(tmp_path, report(add=(1.0, 0.0)), after) == 0
    shown = capsys.readouterr().out
    assert "triton: 3.9 -> 3.6" in shown
    assert "mode: full -> quick" in shown
    assert "throttled in the second: power cap" in shown


@pytest.mark.parametrize(("content", "why"), [("{", "no JSON"), ("[]", "is no report"), ('{"kernels": {}}', "is no report")])
def test_what_is_no_report_is_named(tmp_path: Path, content: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(tmp_path, report(add=(1.0, 0.0)), content)
    said = capsys.readouterr().err
    assert why in said
    assert "b.json" in said
    with pytest.raises(SystemExit, match="2"):
        compare.main([str(tmp_path / "missing.json"), str(tmp_path / "b.json")])
    assert "No such file" in capsys.readouterr().err


def test_nothing_in_common_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, report(add=(1.0, 0.0)), report(relu=(1.0, 0.0))) == 2
    assert "no row with ms in common" in capsys.readouterr().err
