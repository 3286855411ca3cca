"""`python -m tritensor.doctor` says that the GPU works, and what it says is so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.scale import real
from tritensor import cuda

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]


def test_doctor_says_yes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tritensor.doctor"], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if real():
        assert done.returncode == 0, done.stdout + done.stderr
    assert cuda.get_device_name() in done.stdout
    major, minor = cuda.get_device_capability()
    assert f"{major}.{minor}" in done.stdout or f"sm_{major}{minor}" in done.stdout
