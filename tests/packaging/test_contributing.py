"""CONTRIBUTING.md shows diffs that add an op, a layer and an optimizer; this applies them, uses and asks what they add, so that they stay true."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import TIERS

ROOT = Path(__file__).resolve().parents[2]
CALLED = """
import tritensor as tt
from tritensor import nn
from tritensor.nn import functional as F

x = tt.tensor([-3.0, 0.0, 0.75], requires_grad=True)
y = F.isru(x)
(g,) = tt.autograd.grad(y.sum(), x, create_graph=True)
(h,) = tt.autograd.grad(g.sum(), x)
assert tt.allclose(y, tt.tensor([-(0.9**0.5), 0.0, 0.6]))
assert tt.allclose(g, tt.tensor([10**-1.5, 1.0, 0.512]))
assert tt.allclose(h, tt.tensor([9 * 10**-2.5, 0.0, -2.25 * 0.8**5]))
assert tt.equal(nn.ISRU()(x), y)
w = nn.Parameter(tt.tensor([1.0, -1.0]))
(w * w).sum().backward()
tt.optim.Signum([w], lr=0.25).step()
assert w.tolist() == [0.75, -0.75]
try:
    F.isru("1")
    raise SystemExit("a string was accepted")
except TypeError as error:
    assert "isru: input is" in str(error), error
"""


def apply_diffs(tree: Path, *options: str) -> None:
    diffs = [part.split("```")[0] for part in (ROOT / "CONTRIBUTING.md").read_text().split("```diff\n")[1:]]
    assert len(diffs) == 3
    for diff in diffs:
        applied = subprocess.run(["git", "apply", *options, "-"], input=diff, cwd=tree, capture_output=True, text=True)
        assert applied.returncode == 0, f"a diff in CONTRIBUTING.md no longer applies: {applied.stderr}"


def test_the_diffs_apply() -> None:
    apply_diffs(ROOT, "--check")


# What is asked of every op, layer, optimizer and public name, of these in full; and the house rules, pages and stubs.
OF_ALL = (
    "-m",
    TIERS["standard"],
    "-k",
    "isru or signum or every_op or every_layer or every_public or every_formula or fresh or test_house or test_stubs",
    "tests",
)
QUICK = ("-m", TIERS["quick"], "--ignore=tests/packaging", "tests")  # packaging speaks of a checkout, which the copy is not


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite", [pytest.param(OF_ALL, id="what is asked of all"), pytest.param(QUICK, id="the quick tier", marks=pytest.mark.full)]
)
def test_the_diffs_add_an_op_a_layer_and_an_optimizer(suite: tuple[str, ...], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(
        ROOT,
        tree,
        symlinks=True,
        ignore=shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
    )
    apply_diffs(tree)

    def said(*command: str) -> None:
        done = subprocess.run(
            [sys.executable, *command], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"

    def asked() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "tests/ops", "-q", "-k", "isru", "-p", "no:cacheprovider", "-m", "not gpu"]
        return subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True)

    done = asked()
    assert done.returncode == 0, done.stdout[-3000:]
    assert "18 passed" in done.stdout
    written = [line.split("$(BIN)/")[1] for line in (tree / "Makefile").read_text().split("\npages:")[1].split("\n\n")[0].splitlines()[1:]]
    for command in (c for c in written if "performance_page" not in c):  # which reads what others have measured
        tool, *words = command.split()
        said(*(words if tool == "python" else ["-m", "tritensor.tools.command_line", *words]))
    assert '"elementwise.isru": "isru"' in (tree / "kernels" / "op_index.py").read_text()
    assert "def isru(" in (tree / "nn" / "functional" / "__init__.pyi").read_text()
    assert "| `isru` |" in (tree / "docs" / "ops.md").read_text()
    said("-c", CALLED)
    said("-m", "docs.site.examples", "ISRU", "Signum")
    said("-m", "pytest", "-q", "-p", "no:cacheprovider", *suite)

    op = tree / "kernels" / "elementwise" / "isru.py"
    op.write_text(op.read_text().replace("(1.0 + x * x) *", "(1.5 + x * x) *"))
    done = asked()
    assert done.returncode == 1
    assert "rule_is_derivative" in done.stdout
