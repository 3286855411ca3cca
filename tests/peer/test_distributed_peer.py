"""Scripts for several ranks, as tutorials write them, print the same under torch on gloo and, unchanged, under `tritensor.run` on MPI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.ranks import ROOT, environment

SCRIPTS = sorted((ROOT / "tests" / "distributed" / "scripts").glob("*.py"))


def said(command: list[str], folder: Path) -> list[str]:
    """What each of two ranks wrote."""
    folder.mkdir()
    env = environment(OMP_NUM_THREADS="1", SAID=str(folder))
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=240, env=env, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return [(folder / f"{rank}.txt").read_text() for rank in range(2)]


@pytest.mark.peer
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_ranks_say_the_same(script: Path, tmp_path: Path) -> None:
    if script.stem == "spawned":  # it starts its processes itself
        assert said(["-m", "tritensor.run", str(script), "29523"], tmp_path / "ours") == said([str(script), "29524"], tmp_path / "theirs")
        return
    theirs = said(["-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)], tmp_path / "theirs")
    ours = said(["-m", "tritensor.launch", "-n", "2", "-m", "tritensor.run", str(script)], tmp_path / "ours")
    assert ours == theirs
