"""A call of MPI that has begun. MPI moves data only while somebody tests the call, so a thread tests those that nobody waits for."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.distributed.backends.interface import Pending
from tritensor.distributed.backends.mpi.library import call_before_end
from tritensor.distributed.backends.mpi.peers import LOOK, Peers
from tritensor.distributed.calls import Call
from tritensor.ground.errors import DistBackendError, ShapeError
from tritensor.ground.process import locks

TESTS = 512  # between two looks at the clock
PATIENCE = 0.5  # seconds of testing without a pause; after them the others are late, and the processor is better used
PAUSE = 1e-4  # seconds between two tests from then on, and of the thread that drives calls which nobody waits for
# The same for that thread where it has no core to itself: each of its tests takes one from the program, whose own calls drive what is open too.
PAUSE_BESIDE = 1e-3


class MpiPending(Pending):
    """A request, what is to be done when it is finished, and the memory that it reads and writes."""

    __slots__ = ("_call", "_error", "_finish", "_keep", "_lock", "_peers", "_request", "_source")

    def __init__(self, request: Any, call: Call, peers: Peers, keep: tuple[Any, ...], finish: Callable[[], None] | None = None) -> None:
        self._request, self._call, self._peers, self._keep, self._finish = request, call, peers, keep, finish
        self._lock = locks.lock()
        self._error: BaseException | None = None
        self._source = -1
        self.ended = 0.0  # time.perf_counter() when it was seen to be done

    def done(self) -> bool:
        if self._request is None:
            return True
        if not self._lock.acquire(blocking=False):  # another thread tests it
            return False
        try:
            return self._request is None or self._test()
        finally:
            self._lock.release()

    def _test(self) -> bool:
        try:
            if not self._request.Test():
                return False
        except self._peers.MPI.Exception as error:
            self._peers.fail(f"{self._call}: {error}")
            self._end(to_backend_error(self._call, error))
            return True
        self._end(None)
        return True

    def _end(self, error: BaseException | None) -> None:
        self._error = error
        if error is None and self._finish is not None:
            self._finish()
        self._keep, self._finish, self.ended = (), None, time.perf_counter()
        self._request = None  # last: from now on it is done for every thread

    def wait(self, seconds: float | None = None) -> None:
        if self._request is not None and not self.done():
            self._wait(self._peers.seconds if seconds is None else seconds)
        if self._error is not None:
            raise self._error

    def _wait(self, seconds: float) -> None:
        begun = time.monotonic()
        looked = begun
        while True:
            with self._lock:  # taken once for many tests: large messages move as fast as they are tested
                for _ in range(TESTS):
                    if self._request is None or self._test():
                        return
                    os.sched_yield()
            now = time.monotonic()
            while now - begun > PATIENCE and not self.done():
                if now - looked > LOOK or now - begun > seconds:
                    self._look(begun + seconds, seconds)
                    looked = now
                time.sleep(PAUSE)
                now = time.monotonic()
            if now - looked > LOOK or now - begun > seconds:
                self._look(begun + seconds, seconds)
                looked = now

    def _look(self, until: float, seconds: float) -> None:
        try:
            self._peers.look(self._call, until, seconds)
        except BaseException as error:
            self._request, self._error = None, error
            raise

    def source(self) -> int:
        return self._source


class Receive(MpiPending):
    """A receive: it knows who sent, and that as many bytes came as the tensor takes."""

    __slots__ = ("_bytes",)

    def __init__(self, request: Any, call: Call, peers: Peers, out: np.ndarray) -> None:
        super().__init__(request, call, peers, (out,))
        self._bytes = out.nbytes

    def _test(self) -> bool:
        status = self._peers.MPI.Status()
        try:
            if not self._request.Test(status):
                return False
        except self._peers.MPI.Exception as error:
            if error.Get_error_class() != self._peers.MPI.ERR_TRUNCATE:
                self._peers.fail(f"{self._call}: {error}")
                self._end(to_backend_error(self._call, error))
            else:
                self._end(ShapeError(f"{self._call}: the tensor takes {self._bytes} bytes, and more were sent; give one like the sender's"))
            return True
        self._source = status.Get_source()
        came = status.Get_count(self._peers.MPI.BYTE)
        wrong = ShapeError(
            f"{self._call}: the tensor takes {self._bytes} bytes, and rank {self._peers.members[self._source].rank} sent {came}; "
            "give one like the sender's"
        )
        self._end(wrong if came != self._bytes else None)
        return True


def to_backend_error(call: Call, error: Any) -> DistBackendError:
    """The error of a call that MPI refuses."""
    return DistBackendError(
        f"{call}: MPI says: {error}; where ranks give different shapes or types, TRITENSOR_DISTRIBUTED_DEBUG=DETAIL names them"
    )


class _Driver:
    """The thread that tests calls which nobody waits for, so that they go on while the program computes."""

    def __init__(self) -> None:
        self._open: deque[MpiPending] = deque()
        self._more = threading.Condition(locks.rlock())
        self._thread: threading.Thread | None = None
        self._stopped = False
        self.pause = PAUSE_BESIDE

    def add(self, pending: MpiPending) -> None:
        with self._more:
            self._open.append(pending)
            if self._thread is None or not self._thread.is_alive():
                call_before_end(self.stop)
                self._thread = threading.Thread(target=self._run, name="tritensor MPI calls", daemon=True)
                self._thread.start()
            self._more.notify()

    def stop(self) -> None:
        """End the thread: MPI is about to end."""
        with self._more:
            self._stopped = True
            self._more.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._more:
                while not self._open and not self._stopped:
                    self._more.wait()
                if self._stopped:
                    return
            for _ in range(len(self._open)):
                pending = self._open.popleft()
                if not pending.done():
                    self._open.append(pending)
            time.sleep(self.pause)


driver = _Driver()
