"""The table of docs/onnx.md: ops that are not translated, and why. `python -m tests.pages.onnx_page` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from tritensor.onnx import registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
_TABLE = re.compile(r"(\| ops \| why \|\n\|---\|---\|\n).*?(\n## Files)", re.DOTALL)


def table() -> str:
    """A row for each reason."""
    rows: dict[str, list[str]] = {}
    for name, how in registry.list_ops().items():
        if how != "translated":
            rows.setdefault(how, []).append(name)
    return "".join(f"| {', '.join(names)} | {why} |\n" for why, names in sorted(rows.items(), key=lambda row: row[1]))


def written(text: str) -> str:
    """The page with a fresh table."""
    return _TABLE.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
