"""Starts the launcher on the script of these tests, and knows which processes it has left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("programs") / "ranks.py"


def _default_signals() -> None:
    """A shell that runs tests in the background has them ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Launcher:
    """`launcher(*options, does=...)` runs to the end; `start` does not wait. What ranks saw is in `seen`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, *options: str, does: str = "nothing", command: list[str] | None = None, **variables: str) -> subprocess.Popen[bytes]:
        kept = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS") and k != "PYTHONUNBUFFERED"}
        end = command if command is not None else [str(SCRIPT), str(self.folder), does]
        return subprocess.Popen(
            [sys.executable, "-m", "tritensor.launch", *options, *end], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**kept, "PYTHONPATH": str(ROOT), **variables}, cwd=self.folder, preexec_fn=_default_signals,
        )  # fmt: skip

    def __call__(self, *options: str, does: str = "nothing", command: list[str] | None = None, **variables: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)."""
        started = self.start(*options, does=does, command=command, **variables)
        out, err = started.communicate(timeout=60)
        return started.returncode, out.decode(), err.decode()

    def seen(self) -> list[dict[str, Any]]:
        """What the ranks that have started saw, by rank."""
        return [json.loads(p.read_text()) for p in sorted(self.folder.glob("*.json"))]

    def wait_for(self, ranks: int) -> None:
        until = time.monotonic() + 30
        while len(self.seen()) < ranks:
            assert time.monotonic() < until, f"{len(self.seen())} of {ranks} ranks have started"
            time.sleep(0.02)

    @staticmethod
    def lives(pid: int) -> bool:
        """Whether a process runs; one that nobody has waited for does not."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def left(self, patience: float = 0.0) -> list[int]:
        """The processes of ranks, their guards, mpiexec's agent and what ranks started that still run, after up to `patience` seconds."""
        told = [p for s in self.seen() for p in (*s["pids"], s["agent"])]
        child = self.folder / "child"
        told += [int(child.read_text())] if child.exists() else []
        assert told, "no rank has told its process"
        until = time.monotonic() + patience
        while True:
            living = sorted({p for p in told if self.lives(p)})
            if not living or time.monotonic() > until:
                return living
            time.sleep(0.02)


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    return Launcher(tmp_path)
