"""Asks PyTorch, where it is installed: `python -m tests.expressions.record [family ...]` writes recorded/<family>.json, which the tests hold our answers against."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.expressions.answers import answer
from tests.expressions.listed import FAMILIES

FOLDER = Path(__file__).with_name("recorded")


def theirs(expression: str) -> str:
    """An expression in PyTorch's spelling."""
    return expression.rpartition(" ~ ")[2]


def ours(expression: str) -> str:
    """An expression in our spelling."""
    return expression.partition(" ~ ")[0]


def recorded(family: str) -> dict[str, Any]:
    """PyTorch's answers to a family's expressions as they were recorded."""
    found: dict[str, Any] = json.loads((FOLDER / f"{family}.json").read_text())
    return found


def main() -> None:
    import torch

    for family in sys.argv[1:] or FAMILIES:
        lines = [f"{json.dumps(e)}: {json.dumps(answer(torch, theirs(e)))}" for e in FAMILIES[family]]
        (FOLDER / f"{family}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{family}: {len(lines)} answers of torch {torch.__version__}")


if __name__ == "__main__":
    main()
