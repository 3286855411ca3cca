"""Memory of large arrays that is freed stays with the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tritensor.llvm import malloc

PROGRAM = """
import resource, numpy as np, tritensor
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def fill():
    arrays = [np.ones(1 << 19, np.float64) for _ in range(4)]  # 4 MiB each
fill(); fill()
before = faults(); fill(); print(faults() - before)
"""


def _run(**env: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **env})
    return int(done.stdout)


@pytest.mark.skipif(not malloc.keep(), reason="the C library has no mallopt, or the environment sets it")
def test_pages_are_used_again() -> None:
    assert _run() < 64  # of 4096
    assert _run(MALLOC_TRIM_THRESHOLD_="131072") > 1000  # whoever sets malloc himself is left alone
