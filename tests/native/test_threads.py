"""Threads beside the caller's: BLAS in folders of any name, work that fails, a process that is ending."""

from __future__ import annotations

import _ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tritensor.native import threads


def test_blas_in_a_folder_with_a_space(tmp_path: Path) -> None:
    """As in "/home/my name": what the system tells of mapped files is not cut at the space."""
    (tmp_path / "my name").mkdir()
    copied = tmp_path / "my name" / "libblas_beside.so"
    shutil.copy(_ctypes.__file__, copied)
    program = f"import ctypes; ctypes.CDLL({str(copied)!r}); from tritensor.native import threads; print(threads.count() > 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def test_nobody_writes_any_more_when_an_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: 3)
    ended = []

    def work(low: int, high: int) -> None:
        if low == 1:
            raise ValueError("at once")
        if low == 2:
            time.sleep(0.05)
            ended.append(low)

    with pytest.raises(ValueError, match="at once"):
        threads.share(work, 3)
    assert ended == [2]


def test_work_at_the_end_of_the_process() -> None:
    """Python starts no thread behind its last line."""
    program = (
        "import atexit; from tritensor.native import threads; threads.count = lambda: 3; seen = []\n"
        "atexit.register(lambda: (threads.share(lambda low, high: seen.append((low, high)), 9), print(sorted(seen))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout.strip() == "[(0, 3), (3, 9)]", done.stderr


def test_many_callers_share_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: 2)
    found: list[Any] = []
    threads.share(lambda low, high: threads.share(lambda a, b: found.append((a, b)), 1), 2)
    assert found == [(0, 1)] * 2
    assert threads._pool(2) is threads._pool(2)
