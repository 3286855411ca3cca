"""compute-sanitizer on a sample of every kernel family: no access out of bounds, no race in shared memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.scale import real

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]
FOUND = 86  # its exit code when it finds something


def tool() -> str | None:
    """Where compute-sanitizer is, on the path or with the toolkit."""
    homes = [os.environ[n] for n in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(n)]
    for folder in [*homes, "/usr/local/cuda"]:
        for place in ("bin", "compute-sanitizer"):
            candidate = Path(folder) / place / "compute-sanitizer"
            if candidate.is_file():
                return str(candidate)
    return shutil.which("compute-sanitizer")


@pytest.mark.parametrize("kind", ["memcheck", "racecheck"])
@pytest.mark.usefixtures("compiled")
def test_every_kernel_family(kind: str) -> None:
    if not real():
        pytest.skip("compute-sanitizer watches GPUs; the emulated device has a sanitizer of its own")
    found = tool()
    if found is None:
        pytest.skip("compute-sanitizer is not on this machine; it comes with the CUDA toolkit")
    command = [found, "--tool", kind, "--error-exitcode", str(FOUND), sys.executable, "-m", "tests.gpu.families"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "TRITENSOR_NO_MEMORY_CACHING": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    if "Device not supported" in done.stdout:
        pytest.skip("compute-sanitizer says that it does not support this device (a virtual machine that hides it, perhaps)")
    assert done.returncode == 0, done.stdout[-6000:]
    assert "all ran" in done.stdout
