"""The README's code runs, and its last line says what the README promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tritensor as tt

README = Path(__file__).parent.parent / "README.md"


def test_the_twelve_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(import tritensor.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) == 12
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == "found the sine from y'' = -y: True\n"


def test_the_loop_that_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(from tritensor.training.*?)```", README.read_text(), re.DOTALL)
    data = [(tt.randn(4, 3), tt.tensor([0, 1, 1, 0]))] * 3
    model = tt.nn.Linear(3, 2)
    given = {"tt": tt, "model": model, "optimizer": tt.optim.SGD(model.parameters(), lr=0.0), "train_loader": data, "test_loader": data}
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), given)
    assert len(given["history"]) == 3, "the loss stays where it is, so that two more epochs are one too many"
    assert (tmp_path / "out" / "last.safetensors").exists()


def test_pictures_and_links_are_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README.read_text()):
        assert (README.parent / target.partition("#")[0]).exists(), f"README.md points to {target}, which is not there"
