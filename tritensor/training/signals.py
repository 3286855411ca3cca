"""Signals during a run: Ctrl-C and SIGTERM end it behind the present step, with a checkpoint, instead of in the middle of one."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any


class Stopped(Exception):
    """A run is to end here, because a signal asked for it; raised and caught by the trainer alone."""


_DEFAULTS: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """`with Interrupts() as asked:` `asked.signal` is the first signal that came, or None. A second Ctrl-C raises KeyboardInterrupt at once.

    Handlers that the program has set itself stay in place, and threads other than the main one get no signals.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._process = os.getpid()
        self._set: list[signal.Signals] = []

    def __enter__(self) -> Interrupts:
        self._process = os.getpid()
        if threading.current_thread() is threading.main_thread():  # Python runs handlers in the main thread alone
            for number, default in _DEFAULTS.items():
                if signal.getsignal(number) is default:  # the program's own handlers stay
                    signal.signal(number, self._receive)
                    self._set.append(number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._set:
            signal.signal(number, _DEFAULTS[number])
        self._set = []

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process that was forked meanwhile, such as a loader's worker, ends as if nothing were set
            signal.signal(number, _DEFAULTS[signal.Signals(number)])
            os.kill(os.getpid(), number)
            return
        if self.signal is not None:
            self.signal = signal.Signals(number)
            raise self.end("Trainer.fit: stopped in the middle of a step; fit(resume=True) goes on from the last checkpoint")
        self.signal = signal.Signals(number)
        # not print(): the signal may have come in the middle of one
        os.write(2, f"\nTrainer: {self.signal.name}: the run ends after this step; once more ends it at once\n".encode())

    def check(self) -> None:
        """Raise Stopped where a signal came."""
        if self.signal is not None:
            raise Stopped

    def end(self, message: str) -> Any:
        """The error that a run ends with: KeyboardInterrupt, or for SIGTERM SystemExit with the status that a shell gives a terminated process."""
        if self.signal is signal.SIGTERM:
            os.write(2, f"{message}\n".encode())
            return SystemExit(128 + int(signal.SIGTERM))
        return KeyboardInterrupt(message)
