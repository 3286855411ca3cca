"""The README's code runs, and its last line says what the README promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_twelve_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(import tritensor.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) == 12
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == "found the sine from y'' = -y: True\n"


def test_pictures_and_links_are_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README.read_text()):
        assert (README.parent / target.partition("#")[0]).exists(), f"README.md points to {target}, which is not there"
