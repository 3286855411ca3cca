"""Machine code stays inside its arrays (tests/llvm/guard_pages.py), and the fences would have ended it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tritensor.llvm import compiler

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
_BEYOND = """
import ctypes, numpy as np
from tests.llvm.guard_pages import fenced
x = fenced(np.ones(3000, np.float32), True)
ctypes.c_float.from_address(x.ctypes.data + x.nbytes).value
"""


def test_nothing_beyond_an_array_is_touched() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.llvm.guard_pages"], capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert len(done.stdout.splitlines()) == 8


def test_a_fence_ends_who_touches_it() -> None:
    done = subprocess.run([sys.executable, "-c", _BEYOND], capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV, done.stderr
