"""A step's process: in a session of its own, its last words kept, and ended with its whole family, whatever it made of itself."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
KEPT = 64 << 10  # bytes of a child's output: the last ones
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


class Process(NamedTuple):
    """What /proc says of a process."""

    pid: int
    parent: int
    group: int
    session: int
    state: str


def adopt() -> None:
    """Let descendants whose parent ends become this process's children, so that none gets away."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def processes() -> list[Process]:
    """All processes of the machine that are to be seen."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                state, parent, group, session, *_ = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                found.append(Process(int(name), int(parent), int(group), int(session), state))
    return found


def family(root: int, before: frozenset[int] = frozenset()) -> set[int]:
    """The living processes that come from `root`: its session, its descendants, and what this process has adopted beyond those it had `before`."""
    alive = [p for p in processes() if p.state not in "ZX"]
    found = {p.pid for p in alive if root in (p.pid, p.group, p.session)}
    if before:
        found |= {p.pid for p in alive if p.parent == os.getpid() and p.pid not in before}
    while more := {p.pid for p in alive if p.parent in found} - found:
        found |= more
    return found - {os.getpid()}


def end_family(root: int, before: frozenset[int] = frozenset(), seconds: float = 3.0) -> bool:
    """Kill a process and all that come from it; whether they are gone."""
    until = time.monotonic() + seconds
    while left := family(root, before):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def children() -> frozenset[int]:
    """The processes that this one has now, and itself."""
    return frozenset(p.pid for p in processes() if p.parent == os.getpid()) | {os.getpid()}


class Child:
    """A running step. `heard`: when it last printed, by time.monotonic()."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._before = children()
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self.heard = time.monotonic()
        self._tail = bytearray()
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while piece := os.read(stream.fileno(), 1 << 16):
                self.heard = time.monotonic()
                self._tail += piece
                del self._tail[:-KEPT]

    @property
    def code(self) -> int | None:
        """Its exit code (below 0: the signal that ended it), None while it runs."""
        return self.process.poll()

    def words(self) -> str:
        """The last that it printed."""
        return bytes(self._tail).decode(errors="replace")

    def end(self, grace: float = 2.0) -> bool:
        """End it and whatever it started; `grace`: seconds that it has to end by itself, as after Ctrl-C. Returns whether all of it is gone."""
        if self.code is None and grace:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
        gone = end_family(self.process.pid, self._before)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        for pid in [p.pid for p in processes() if p.parent == os.getpid() and p.pid not in self._before and p.state == "Z"]:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # an adopted one
        self._reader.join(1)
        return gone
