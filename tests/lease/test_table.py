"""The last table holds whatever happened in sixty lines that the end of an output has room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.lease.ledger import Entry, Ledger
from tests.gpu.lease.steps import STEPS
from tests.gpu.lease.table import COLUMNS, LINES, fairly, table
from tests.lease.fake_steps import IDENTITY


@pytest.mark.parametrize("failures", [0, 1, 30, 5000])
def test_it_is_short_and_names_failures_of_every_step(failures: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, IDENTITY)
    for step in STEPS:
        errors = [f"op{i}/float32: {'is wrong ' * 50}" for i in range(failures)]
        ledger.steps[step.name] = Entry("failed" if failures else "passed", 1.0, "4 us " * 99, errors=errors[:50], failed=failures)
    ledger.older = [{"identity": IDENTITY, "steps": {s.name: ["passed", 1.0, ""] for s in STEPS}}] * 9
    text = table(ledger, STEPS, 700.0, ["a note", "another"])
    lines = text.splitlines()
    assert len(lines) <= LINES == 60
    assert len(text) < 12_000
    assert max(map(len, lines)) <= COLUMNS
    assert lines[-2:] == ["a note", "another"]
    for step in STEPS:
        assert any(line.startswith(step.name) for line in lines)
        assert failures == 0 or any(line.startswith(f"{step.name}: op0/float32") for line in lines)
    assert ("no failures" in lines) == (failures == 0)
    if failures > 30:
        shown = sum(": op" in line for line in lines)
        assert f"... and {failures * len(STEPS) - shown} more: ledger.json names all" in lines


def test_what_was_not_done_is_said(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, IDENTITY)
    ledger.steps["tune"] = Entry("left", why="needs 60 s and 12 s were left: for the next run")
    ledger.steps["host"] = Entry("passed", 3.0, "x + y 4.1 us", older="beef")
    text = table(ledger, STEPS, 20.0)
    assert "tune            left             0  needs 60 s and 12 s were left: for the next run" in text
    assert "host            older tree       3  of an older tree, beef; x + y 4.1 us" in text
    assert "doctor          not asked        0" in text


def test_room_is_shared(tmp_path: Path) -> None:
    assert fairly([f"a: {i}" for i in range(9)] + ["b: 0"], 3) == ["a: 0", "a: 1", "b: 0"]
