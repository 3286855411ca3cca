"""Steps for tests of the lease: what fake_step.py does stands for what a GPU does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.gpu.lease.ledger import Ledger
from tests.gpu.lease.perform import Step, Work

SCRIPT = Path(__file__).with_name("fake_step.py")
IDENTITY = {
    "tree": "a" * 20,
    "commit": "c" * 40,
    "gpu": "NVIDIA Test 9000",
    "driver": "1.2",
    "triton": "3.6.0",
    "python": "3",
    "numpy": "2",
    "torch": "",
}


def command(*flags: object) -> list[str]:
    return [sys.executable, "-S", "-E", str(SCRIPT), *map(str, flags)]


def step(name: str, *flags: object, kind: str = "proof", least: float = 0.0, most: float = 60.0, **more: Any) -> Step:
    """A step that runs fake_step.py with these flags, and its report and what is done."""

    def start(work: Work, seconds: float) -> list[str]:
        return command("--name", name, "--report", work.scratch / f"{name}.jsonl", "--done", work.scratch / f"{name}.done", *flags)

    return Step(name, kind, least, most, start, **more)


def work_in(folder: Path, **identity: Any) -> Work:
    """Where a test's run works."""
    scratch, out = folder / "scratch", folder / "out"
    scratch.mkdir(exist_ok=True, parents=True)
    out.mkdir(exist_ok=True)
    return Work(scratch, out, Ledger(out, IDENTITY | identity), dict(os.environ))


class NoGuard:
    """A test does not die."""

    def watch(self, pid: int) -> None:
        self.pid = pid


def soon(true: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether something comes true in time."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
