"""docs/kernel_parts.md, the authors' list of shared helpers, names every file of kernels/parts and nothing that is not there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
PARTS = ROOT / "kernels" / "parts"
FILES = {p.relative_to(PARTS).with_suffix("").as_posix(): p for p in PARTS.rglob("*.py") if p.name != "__init__.py"}
PAGE = {
    section.split("\n", 1)[0].strip(): re.findall(r"^- `(\w+)`: \S", section, re.MULTILINE)
    for section in (ROOT / "docs" / "kernel_parts.md").read_text().split("\n## ")[1:]
}


def test_the_page_holds_every_file() -> None:
    assert set(PAGE) == set(FILES)


@pytest.mark.parametrize("name", sorted(PAGE))
def test_what_the_page_names_is_there(name: str) -> None:
    there = {n.name for n in ast.parse(FILES[name].read_text()).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    assert set(PAGE[name]) <= there, f"{name} has no {sorted(set(PAGE[name]) - there)}"
