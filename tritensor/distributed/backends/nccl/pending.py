"""A call of NCCL that has begun: an event on the communication stream, which the current stream waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from tritensor.cuda.streams.stream import Event, Stream
from tritensor.distributed.backends.interface import Pending
from tritensor.distributed.calls import Call
from tritensor.ground.errors import DistError
from tritensor.ground.thread_state import stream_of


class Driver(Protocol):
    """The part of a communicator that a pending call uses (see communicator.py)."""

    index: int
    seconds: float
    failure: str | None

    def look(self, doing: object) -> None: ...

    def until(self, doing: object, ready: Callable[[], bool], seconds: float) -> None: ...

    def raise_error(self, doing: object) -> None: ...


class NcclPending(Pending):
    """Steps for NCCL, then the event behind them. The arrays are kept until it is done or a stream waits for it."""

    def __init__(
        self, comm: Driver, call: Call, steps: tuple[Callable[[], None], ...], keep: tuple[Any, ...], on_host: bool, source: int
    ) -> None:
        self.call, self.steps, self.begun = call, steps, time.monotonic()
        self._comm, self._keep, self._on_host, self._source = comm, keep, on_host, source
        self._event: Event | None = None

    def mark(self, event: Event) -> None:
        """Its steps are queued, and the event is behind them."""
        self.steps, self._event = (), event

    def done(self) -> bool:
        # The communicator was aborted: nothing more will come, and wait() raises.
        if self._comm.failure is not None:
            return True
        if self._event is None:
            return False
        # An error of NCCL leaves the event unreached for ever, so it is asked for as well.
        if not self._event.query():
            self._comm.look(self.call)
            return self._comm.failure is not None
        self._keep = ()
        return True

    def wait(self, seconds: float | None = None) -> None:
        comm = self._comm
        comm.raise_error(self.call)
        if self._event is None:
            raise DistError(f"{self.call}: waited for inside of together(), where it has not begun; wait after the block")
        self._event.wait(Stream.of(comm.index, stream_of(comm.index)))
        # Otherwise only the stream waits, and the host goes on to queue more work.
        if seconds is not None or self._on_host:
            comm.until(self.call, self._event.query, comm.seconds if seconds is None else seconds)
        self._keep = ()

    def source(self) -> int:
        if self._source < 0:
            return super().source()
        return self._source
