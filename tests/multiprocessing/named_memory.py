"""Names of shared memory in /dev/shm, which all programs of the machine have in common: other tests' too."""

from __future__ import annotations

import os
import time
from pathlib import Path


def names() -> set[str]:
    return {n for n in os.listdir("/dev/shm") if n.startswith("tritensor-")}


def left_behind(before: set[str]) -> set[str]:
    """Names that came since, of this process or of one that has ended, and that nobody takes away within half a minute."""
    end = time.monotonic() + 30
    while (
        found := {n for n in names() - before if _pid(n) == os.getpid() or not Path(f"/proc/{_pid(n)}").exists()}
    ) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def _pid(name: str) -> int:
    return int(name.split("-")[1])
