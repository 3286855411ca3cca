"""The pages on data, checkpoints and profiling: what they show runs, as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn

ROOT = Path(__file__).resolve().parents[2]
F = nn.functional


def blocks(page: str) -> list[str]:
    """The blocks of Python of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)


def run(page: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names after the blocks of a page have run one after another, with those that it takes for granted."""
    names = {"tt": tt, "F": F, **names}
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_program_at_the_head_of_data_runs_with_workers(tmp_path: Path) -> None:
    (tmp_path / "squares.py").write_text(blocks("data.md")[0])
    done = subprocess.run(
        [sys.executable, "squares.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(3, 2)
    left = run("checkpoints.md", {"model": model})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "model.pt", "model.safetensors"]
    assert tt.equal(left["state"]["weight"], model.weight)


def test_profiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    model, images, labels = tt.models.LeNet(), tt.randn(4, 1, 32, 32), tt.randint(0, 10, (4,))
    given = {"model": model, "images": images, "labels": labels, "opt": tt.optim.SGD(model.parameters(), lr=0.01)}
    run("profiling.md", {**given, "train_step": lambda: F.cross_entropy(model(images), labels).backward()})
    said = capsys.readouterr().out
    assert "ConvolutionBackward0" in said
    assert "memory of cpu by where it was asked for" in said
    assert (tmp_path / "trace.json").stat().st_size > 1000
