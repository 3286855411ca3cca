"""The project's own papers: pins, licence, version, and what git is told to leave alone."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

import tritensor as tt

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_what_is_needed_at_run_time() -> None:
    names = {d.split(">")[0] for d in PROJECT["project"]["dependencies"]}
    assert names == {"triton", "numpy", "ml_dtypes", "cuda-python"}


def test_extras() -> None:
    assert PROJECT["project"]["optional-dependencies"].keys() == {
        "examples", "vision", "onnx", "docs", "nvtx", "mpi", "nccl", "test", "bench", "interop", "array-api", "dev", "stand-in",
    }  # fmt: skip


def test_the_oldest_versions_are_within_the_pins() -> None:
    from packaging.requirements import Requirement

    pins = {r.name: r.specifier for r in map(Requirement, PROJECT["project"]["dependencies"])}
    oldest = [Requirement(line) for line in (ROOT / "tests/oldest.txt").read_text().splitlines() if not line.startswith("#")]
    versions = {r.name: next(iter(r.specifier)).version for r in oldest}
    assert versions.keys() == {"triton", "numpy"}
    assert versions["triton"] in pins["triton"]
    assert versions["numpy"] in pins["numpy"]


def test_one_version() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert f"## {tt.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_make_lists_its_targets() -> None:
    shown = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "lint", "docs", "notebooks", "wheel", "bench", "interop", "array-api"):
        assert f"make {target}" in shown


def test_ci_builds_the_site() -> None:
    """`make docs` runs the examples and every notebook, and compares what they say with what is stored (docs/site/__main__.py)."""
    assert "\nmake docs\n" in (ROOT / ".ci" / "run").read_text()
    assert "-m docs.site $(ARGS)" in (ROOT / "Makefile").read_text()


def test_make_refuses_an_old_python(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$1" in --version) echo Python 3.9.18;; *) exit 1;; esac\n')
    old.chmod(0o755)
    done = subprocess.run(["make", "demo", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stdout
    assert "is Python 3.9.18" in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        ".venv/bin/python",
        "dist/x.whl",
        "tritensor.egg-info/PKG-INFO",
        "kernels/__pycache__/a.pyc",
        "out/a.png",
        "docs/reference/nn.rst",
        "build/site/index.html",
    ],
)
def test_git_ignores_what_is_made(name: str) -> None:
    if not (ROOT / ".git").exists():
        pytest.fail("this test speaks of a git checkout")
    assert subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT).returncode == 0
