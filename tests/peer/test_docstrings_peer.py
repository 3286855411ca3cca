"""PyTorch's docstrings: each statement that runs under PyTorch runs here, and gives the same where chance has no part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peer.docstrings.reasons import REASONS

pytestmark = pytest.mark.peer
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("docstrings")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    env.pop("TRITON_INTERPRET", None)
    for args in (
        ["torch", "theirs.json"],
        ["tritensor", "theirs.json", "ours.json"],
    ):  # examples write files, set defaults: each in a process of its own
        done = subprocess.run([sys.executable, "-m", "tests.peer.docstrings", *args], cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "theirs.json").read_text()), json.loads((folder / "ours.json").read_text())


def equal(a: Any, b: Any, values: bool) -> bool:
    """Whether two notes say the same; without `values` only their kinds, shapes and types."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y, values) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        if (a["shape"], a["type"]) != (b["shape"], b["type"]):
            return False
        if not values or a["numbers"] == b["numbers"]:
            return True
        x, y = (np.array([complex(n) for n in t["numbers"] or ()]) for t in (a, b))
        return x.shape == y.shape and bool(np.allclose(x, y, 1e-4, 1e-5, equal_nan=True))
    return a == b if values else type(a) is type(b)


def chance(statements: list[str]) -> bool:
    """Whether a docstring's examples draw numbers, or look at memory that nobody wrote."""
    return any(
        word in s for s in statements for word in ("rand", "empty", "skip_init", "nn.Linear", "Lazy", "multinomial", "bernoulli", "sample")
    )


def otherwise(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, list[str]]:
    """{docstring: what differs} of the statements that run under PyTorch."""
    found: dict[str, list[str]] = {}
    for name, entry in theirs.items():
        drawn = chance(entry["statements"])
        for statement, mine, *noted in zip(entry["statements"], ours[name], *entry["found"], strict=True):
            want = noted[0]
            if want[0] != "fine" or any(other[0] != "fine" for other in noted):
                continue
            same = not drawn and all(equal(want[1], other[1], True) for other in noted)
            if mine[0] != "fine" or not equal(mine[1], want[1], same):
                found.setdefault(name, []).append(f"{statement.strip()[:200]}: {mine[1:]}, PyTorch {want[1]}")
    return found


def test_what_the_docstrings_show(tables: tuple[dict[str, Any], dict[str, Any]]) -> None:
    theirs, ours = tables
    found = otherwise(theirs, ours)
    listed = {f"torch.{name}" for names in REASONS.values() for name in names.split()}
    unlisted = {name: lines for name, lines in found.items() if name not in listed}
    assert not unlisted, "\n".join(f"{name}: {line}" for name, lines in unlisted.items() for line in lines)
    assert not listed - set(found), f"these agree now: {sorted(listed - set(found))}"


def test_enough_is_asked(tables: tuple[dict[str, Any], dict[str, Any]]) -> None:
    theirs, _ = tables
    fine = [n for entry in theirs.values() for n in zip(*entry["found"], strict=True) if all(x[0] == "fine" for x in n)]
    assert len(theirs) > 850
    assert len(fine) > 3700
    plain = [entry for entry in theirs.values() if not chance(entry["statements"])]
    assert sum(len(entry["statements"]) for entry in plain) > 2000
