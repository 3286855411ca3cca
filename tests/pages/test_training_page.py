"""docs/training.md says what is so: its code runs, and the rules, hooks and files that it names are there."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def test_its_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    linecache.cache[str(PAGE)] = (len(code), None, code.splitlines(True), str(PAGE))
    there: dict[str, Any] = {"__name__": "training_page"}
    exec(compile(code, str(PAGE), "exec"), there)
    assert list(there["history"][-1]) == ["epoch", "step", "loss", "lr", "accuracy", "val_loss", "val_accuracy"]
    assert there["outputs"].shape == (64, 2)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"last.safetensors", "best.safetensors", "log", "graph.svg"}
    assert list((tmp_path / "runs" / "first").glob("events.out.tfevents.*"))
    said = capsys.readouterr().out
    assert "no slips found" in said
    assert "Mult-adds: 320" in said
