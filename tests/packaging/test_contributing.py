"""CONTRIBUTING.md shows a diff that adds an op; this applies it and asks the new op every question, so that it stays true."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_diff_adds_an_op(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(
        ROOT,
        tree,
        symlinks=True,
        ignore=shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
    )
    diff = (ROOT / "CONTRIBUTING.md").read_text().split("```diff\n")[1].split("```")[0]
    applied = subprocess.run(["git", "apply", "-"], input=diff, cwd=tree, capture_output=True, text=True)
    assert applied.returncode == 0, f"the diff in CONTRIBUTING.md no longer applies: {applied.stderr}"

    def asked() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "tests/ops", "-q", "-k", "isru", "-p", "no:cacheprovider", "-m", "not gpu"]
        return subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True)

    done = asked()
    assert done.returncode == 0, done.stdout[-3000:]
    assert "13 passed" in done.stdout

    op = tree / "kernels" / "elementwise" / "isru.py"
    op.write_text(op.read_text().replace("(1.0 + x * x) *", "(1.5 + x * x) *"))
    done = asked()
    assert done.returncode == 1
    assert "rule_is_derivative" in done.stdout
