"""Asks PyTorch, where it is installed: `python -m tests.expressions.record` writes torch_answers.json, which the tests hold our answers against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.expressions.answers import answer
from tests.expressions.table import EXPRESSIONS

FILE = Path(__file__).with_name("torch_answers.json")


def theirs(expression: str) -> str:
    """An expression in PyTorch's spelling."""
    return expression.rpartition(" ~ ")[2]


def ours(expression: str) -> str:
    """An expression in our spelling."""
    return expression.partition(" ~ ")[0]


def recorded() -> dict[str, Any]:
    """PyTorch's answers as they were recorded."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def main() -> None:
    import torch

    lines = [f"{json.dumps(e)}: {json.dumps(answer(torch, theirs(e)))}" for e in EXPRESSIONS]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} answers of torch {torch.__version__}")


if __name__ == "__main__":
    main()
