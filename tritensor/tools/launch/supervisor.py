"""Starts the ranks, passes on what they write, ends them all once one has failed or a signal says so, and starts them anew if asked."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from tritensor.tools.launch.group import Group
from tritensor.tools.launch.mpiexec import Mpiexec, command
from tritensor.tools.launch.options import Options
from tritensor.tools.launch.records import Reader
from tritensor.tools.launch.report import NAME, failures, table

KILL_AFTER = 2.0  # seconds from SIGTERM to SIGKILL
_BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_CHILD = Path(__file__).with_name("child.py")
_PR_SET_PDEATHSIG = 1


def run(options: Options, mpiexec: Mpiexec) -> int:
    """Run the ranks, anew after a failure as often as options say. Returns the exit code for the launcher."""
    name = secrets.token_hex(4)
    restart = 0
    while True:
        start = Start(options, mpiexec, name, restart)
        code = start.run()
        if not code or start.signal is not None or restart >= options.max_restarts:  # a stop that was asked for is no failure
            return code
        restart += 1
        say(f"{NAME}: restart {restart} of {options.max_restarts}\n")


def say(text: str) -> None:
    """Write on stderr."""
    _write(text.encode(errors="backslashreplace"))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(2, data) :]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return found.getsockname()[1]


def _ends_with_launcher() -> None:
    """Between fork and exec: mpiexec gets SIGTERM when the launcher is killed, and then ends its ranks."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


_libc = ctypes.CDLL(None)


class Start:
    """One start of all ranks: mpiexec, what it passes on, and the steps to the end of all of them."""

    def __init__(self, options: Options, mpiexec: Mpiexec, name: str, restart: int) -> None:
        self.options, self.group, self.reader = options, Group(options.ranks), Reader()
        self.threads = {v: os.environ.get(v, str(options.threads)) for v in _BLAS}  # what the user has set stands
        settings = {
            "size": options.ranks, "address": options.master(), "port": _free_port(), "run": name, "restart": restart,
            "restarts": options.max_restarts, "threads": self.threads, "bind": options.bind, "module": options.module,
        }  # fmt: skip
        rank = [sys.executable, str(_CHILD), json.dumps(settings), options.script, *options.arguments]
        self.command = command(mpiexec, options, rank)
        self.signal: int | None = None  # that the launcher got
        self._shown = False
        self._step, self._until = "run", float("inf")  # run, wait (for the others), end (SIGTERM was sent), leave, killed

    def run(self) -> int:
        """Start, wait for the end of all ranks, and report. Returns 0, the first failure's exit code, or 128 + the signal."""
        handlers = {n: signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN}
        woken, self._wake = os.pipe()  # select does not return for a signal whose handler is Python's
        os.set_blocking(self._wake, False)
        os.set_blocking(woken, False)
        try:
            # A group of its own: Ctrl-C is for the launcher, which passes it on. Such a group cannot read from a terminal.
            stdin = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
            self.mpiexec = subprocess.Popen(
                self.command, stdin=stdin, stderr=subprocess.PIPE, process_group=0, preexec_fn=_ends_with_launcher
            )
            self._watch(woken)
        finally:
            self._kill_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(self._wake)
            os.close(woken)
        return self._report()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
        else:
            self._until = 0.0  # the second Ctrl-C does not wait
        os.write(self._wake, b".")

    def _watch(self, woken: int) -> None:
        assert self.mpiexec.stderr is not None
        stream = self.mpiexec.stderr.fileno()
        with selectors.DefaultSelector() as ready:
            ready.register(stream, selectors.EVENT_READ)
            ready.register(woken, selectors.EVENT_READ)
            while True:
                wait = min(max(self._until - time.monotonic(), 0.0), 0.5)
                for key, _ in ready.select(wait):
                    data = os.read(key.fd, 65536)
                    if key.fd == woken:
                        continue
                    if not data:
                        ready.unregister(stream)
                        _write(self.reader.rest())
                    text, records = self.reader.feed(data)
                    _write(text)
                    for record in records:
                        self._take(record)
                self._advance()
                if self.mpiexec.poll() is not None and (stream not in ready.get_map() or self._step == "killed"):
                    return

    def _take(self, record: dict[str, Any]) -> None:
        self.group.take(record)
        if self.group.all_started and not self._shown:
            self._shown = True
            say(table(self.group, self.threads))

    def _advance(self) -> None:
        """The next step, where it is time for it."""
        late = time.monotonic() >= self._until
        if self.signal is not None and self._step in ("run", "wait"):
            self._end(self.signal, self.options.grace)
        elif self._step != "leave" and (self.mpiexec.poll() is not None or self.group.all_ended):
            self._leave()
        elif self._step == "run" and self.group.first_failure() is not None:
            self._step, self._until = "wait", time.monotonic() + self.options.grace
        elif self._step == "wait" and late:
            self._end(signal.SIGTERM, KILL_AFTER)
        elif self._step in ("end", "leave") and late:
            self._kill_all()

    def _leave(self) -> None:
        """All ranks have ended: mpiexec is to end as well."""
        for rank in self.group.ranks:
            rank.release()
        if self.group.first_failure() is not None and not all(r.here for r in self.group.ranks):
            self.mpiexec.terminate()  # it alone reaches the guards of other machines
        self._step, self._until = "leave", time.monotonic() + KILL_AFTER

    def _end(self, number: int, seconds: float) -> None:
        for rank in self.group.ranks:
            rank.kill(number)
        if not self.group.all_started or not all(r.here for r in self.group.ranks):
            self.mpiexec.terminate()  # it alone reaches ranks of other machines, and those that have not told who they are
        self._step, self._until = "end", time.monotonic() + seconds

    def _kill_all(self) -> None:
        """Kill what is left: ranks of this machine, and mpiexec, which kills those of others when it gets SIGTERM."""
        self._step, self._until = "killed", float("inf")
        for rank in self.group.ranks:
            rank.kill(signal.SIGKILL)
        if self.mpiexec.poll() is None:
            self.mpiexec.terminate()
            try:
                self.mpiexec.wait(1.0)
            except subprocess.TimeoutExpired:
                self.mpiexec.kill()
                self.mpiexec.wait()

    def _report(self) -> int:
        if self.signal is not None:
            say(f"{NAME}: {signal.Signals(self.signal).name}: all ranks are ended\n")
            return 128 + self.signal
        first = self.group.first_failure()
        if first is not None:
            say(failures(self.group, first, self.options.grace))
            return first.code
        lost = [str(r.number) for r in self.group.ranks if r.ended is None]
        code = self.mpiexec.returncode
        if not code and not lost:
            return 0
        said = f"before rank{'s' * (len(lost) > 1)} {', '.join(lost)} had" if lost else "after all ranks had"
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        say(f"{NAME}: mpiexec ended with {how} {said}; what it wrote is above: {' '.join(self.command[:6])} ...\n")
        return 128 - code if code < 0 else code or 1
