"""The script on the page, and the example, run as they are told to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.ranks import ROOT, environment


def launched(*command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tritensor.launch", *command],
        capture_output=True,
        text=True,
        timeout=240,
        env=environment(),
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_pages_script(tmp_path: Path) -> None:
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "docs" / "distributed.md").read_text(), re.M | re.S)
    assert found
    (tmp_path / "train.py").write_text(found[1])
    said = {n: launched("-n", str(n), "train.py", folder=tmp_path) for n in (1, 2)}
    for n, text in said.items():
        assert re.fullmatch(rf"loss 0\.\d+ on {n} ranks\n", text), said
    assert said[1].split()[1] == said[2].split()[1]


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=[pytest.mark.slow, pytest.mark.full])])
def test_the_example(ranks: int, tmp_path: Path) -> None:
    said = launched("-n", str(ranks), str(ROOT / "examples" / "train_ddp.py"), "--steps", "20", "--every", "5", folder=tmp_path)
    rows = re.findall(r"^ +(\d+) +(\d+\.\d+) +(\d+\.\d+) +(\S+)$", said, re.M)
    assert [int(r[0]) for r in rows] == [1, 5, 10, 15, 20] * 2, said
    for step, together, alone, _ in rows:
        assert float(together) == pytest.approx(float(alone), abs=2e-6), step
    assert float(rows[4][1]) < float(rows[0][1]) / 2
    assert "# they are averaged" in said
    assert (tmp_path / "out" / "ddp_gpt.pt").exists()
