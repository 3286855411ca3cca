"""Ends the step that runs when the lease itself is gone, even by SIGKILL: `python -m tests.gpu.lease.guard`, told of steps on standard input."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.gpu.lease.child import ROOT, end_family


class Guard:
    """The guard's process, seen from the lease."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.lease.guard"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def watch(self, pid: int) -> None:
        """From now on this is the step that is to end with the lease; 0: none is."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % pid)
        self._process.stdin.flush()

    def close(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Remember the last step told of; when the other end is gone, end it."""
    last = 0
    for line in sys.stdin:
        last = int(line)
    if last:
        end_family(last)


if __name__ == "__main__":
    main()
