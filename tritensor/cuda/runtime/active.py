"""The runtime that serves device `cuda` in this process: kept here, chosen in backend.py, so that this file knows none of them."""

from __future__ import annotations

import os
from collections.abc import Callable

from tritensor.cuda.runtime.interface import Runtime
from tritensor.ground.process.locks import rlock
from tritensor.ground.thread_state import here, run_waiting

_runtime: Runtime | None = None
_choose: Callable[[], Runtime]  # set by backend.py, which is imported with tritensor.cuda
_choosing = rlock()  # two threads that first use the device at once get one runtime; making it may ask for the one in use
when_changed: list[Callable[[], None]] = []  # called when another runtime takes over


def choose_by(chooser: Callable[[], Runtime]) -> None:
    """Tell how a runtime is made at the first use of device cuda."""
    global _choose
    _choose = chooser


def emulated() -> bool:
    """Whether device cuda is emulated on the host (TRITON_INTERPRET=1, Triton's own switch)."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y")


def runtime() -> Runtime:
    """The runtime in use, created at its first use. Raises DeviceError when there is no driver or GPU."""
    global _runtime
    found = _runtime
    if found is None:
        with _choosing:
            found = _runtime
            if found is None and here.recorder is not None:
                here.recorder.starts_runtime()
            if found is None:
                found = _runtime = _choose()
    return found


def started() -> bool:
    """Whether a runtime has been created."""
    return _runtime is not None


def use(other: Runtime | None) -> Runtime | None:
    """Serve device cuda by another runtime from now on (None: choose anew at the next use); returns the one before."""
    global _runtime
    run_waiting()  # on the device that it was called for
    with _choosing:
        before, _runtime = _runtime, other
    here.place, here.context = None, -1  # of the runtime before: another one's numbers may be the same
    for forget in when_changed:
        forget()
    return before
