"""The thread that looks after calls which nobody waits for: where another process is lost, it aborts them, and the GPU goes on."""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from typing import Protocol

from tritensor.ground.errors import DistBackendError
from tritensor.ground.process import locks

LOOK = 1.0  # seconds between two looks


class Watched(Protocol):
    """A communicator."""

    def check(self) -> None:
        """Raise DistBackendError the first time that something is wrong."""


_watched: weakref.WeakSet[Watched] = weakref.WeakSet()
_lock = locks.lock()
_stop = threading.Event()
_thread: threading.Thread | None = None


def watch(comm: Watched) -> None:
    """Look after a communicator as long as it lives."""
    global _thread
    with _lock:
        _watched.add(comm)
        if _thread is None or not _thread.is_alive():  # a fork has none
            _stop.clear()
            _thread = threading.Thread(target=_run, name="tritensor NCCL watchdog", daemon=True)
            _thread.start()


def look() -> None:
    """Ask every communicator once; what is wrong is said on stderr here, and raised by the next call on it."""
    with _lock:
        asked = list(_watched)
    for comm in asked:
        try:
            comm.check()
        except DistBackendError as error:
            print(f"tritensor.distributed: {error}", file=sys.stderr, flush=True)


def _run() -> None:
    while not _stop.wait(LOOK):
        look()


def _end() -> None:
    _stop.set()
    if _thread is not None and _thread.is_alive():
        _thread.join(5.0)


def _in_child() -> None:
    """A forked child has no such thread; whoever waited at the old event is not there to let go of it."""
    global _stop, _thread
    _stop, _thread = threading.Event(), None


locks.in_child(_in_child)
atexit.register(_end)
