"""Groups of ranks, each of one library and in processes of its own, which answer questions; who is not asked takes no processor."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tritensor.tools.launch import mpiexec
from tritensor.tools.launch.options import parse

ROOT = Path(__file__).resolve().parents[2]
MODULE = "bench.distributed.rank"
PATIENCE = 120.0  # seconds that ranks may take to come, or to answer


class Group:
    """So many ranks of a library, `python` being the interpreter that has it. A context.

    Raises RuntimeError where a rank ends before it is told to, or does not answer; what it said stands on stderr.
    """

    def __init__(self, library: str, ranks: int, python: str = sys.executable) -> None:
        self.library, self.ranks = library, ranks
        self._folder = tempfile.TemporaryDirectory()
        address = str(Path(self._folder.name) / "socket")
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(ranks)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lines: list[Any] = []
        start = self._with_mpiexec if library == "tritensor" else self._one_by_one
        try:
            start([python, "-m", MODULE, library, address])
            self._lines = self._come(server)
        except BaseException:
            self._kill()
            raise
        finally:
            server.close()

    def _with_mpiexec(self, command: list[str]) -> None:
        options = parse(["-n", str(self.ranks), "-m", MODULE])
        self._start(mpiexec.command(mpiexec.find(), options, command))

    def _one_by_one(self, command: list[str]) -> None:
        """As torchrun starts them."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        for rank in range(self.ranks):
            self._start(
                command, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(self.ranks), LOCAL_RANK=str(rank)
            )

    def _start(self, command: list[str], **more: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
        self._processes.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL))

    def _come(self, server: socket.socket) -> list[Any]:
        """The connections of all ranks, in the order of their numbers."""
        came: dict[int, Any] = {}
        server.settimeout(0.5)
        until = time.monotonic() + PATIENCE
        while len(came) < self.ranks:
            if time.monotonic() > until or any(p.poll() is not None for p in self._processes):
                raise RuntimeError(f"bench: {self} did not come to their beginning; what they said stands above")
            try:
                one, _ = server.accept()
            except TimeoutError:
                continue
            one.settimeout(PATIENCE)
            lines = one.makefile("rw")
            one.close()  # what `lines` holds stays open
            came[int(lines.readline())] = lines
        return [came[rank] for rank in range(self.ranks)]

    def ask(self, what: str, **given: Any) -> list[Any]:
        """Every rank's answer to the method of that name of Rank."""
        self._tell([what, given])
        answers = []
        for lines in self._lines:
            try:
                line = lines.readline()
            except OSError as error:
                raise RuntimeError(f"bench: {self} did not answer {what} {given} within {PATIENCE:g} s") from error
            if not line:
                raise RuntimeError(f"bench: {self} ended at {what} {given}; what they said stands above")
            answers.append(json.loads(line))
        return answers

    def _tell(self, question: Any) -> None:
        for lines in self._lines:
            print(json.dumps(question), file=lines, flush=True)

    def _kill(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()
        self._folder.cleanup()

    def __str__(self) -> str:
        return f"{self.ranks} rank{'s' * (self.ranks > 1)} of {self.library}"

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self._tell(None)
                for process in self._processes:
                    process.wait(PATIENCE)
        finally:
            self._kill()
