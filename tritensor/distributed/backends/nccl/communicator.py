"""Communicator: one of NCCL's, nonblocking, with a stream of its own. Every wait of the host ends, by the timeout if by nothing else.

NCCL is told not to block (config.blocking = 0), since a blocked call cannot be left when another process is lost: each call returns at
once, and the host asks until NCCL has queued it. That takes NCCL a thread for each call, some microseconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from tritensor.cuda.runtime import active
from tritensor.cuda.runtime.active import runtime
from tritensor.cuda.streams import hidden_waits
from tritensor.cuda.streams.stream import Event, Stream
from tritensor.distributed.backends.nccl import watchdog
from tritensor.distributed.backends.nccl.library import nccl, read_error, to_error
from tritensor.distributed.backends.nccl.pending import NcclPending
from tritensor.distributed.calls import Call
from tritensor.ground.errors import DistBackendError, DistError, RankFailedError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import stream_of
from tritensor.ops.array import Array

SPIN = 1e-3  # seconds of asking without a pause: what NCCL needs to queue a call is far less
PAUSE = 5e-4  # seconds between two questions from then on
CLOSING = 60.0  # seconds that the end of a communicator may take

_idle: dict[
    int, list[int]
] = {}  # streams by GPU that a closed communicator has left; memory may still name them, so they are not destroyed
active.when_changed.append(_idle.clear)


class Communicator:
    """A handle of NCCL for the processes 0 to size - 1, this one being `rank`, on GPU `index`; calls go to `stream`.

    Attributes: `seconds`, how long the others are waited for; `failure`, why it is of no more use (None: it is).
    """

    def __init__(self, api: Any, rank: int, size: int, index: int, seconds: float) -> None:
        self.api, self.rank, self.size, self.index, self.seconds = api, rank, size, index, seconds
        self.failure: str | None = None
        self.comm: Any = None
        self._error: DistBackendError | None = None
        self._batch: list[NcclPending] | None = None
        self._open: deque[NcclPending] = deque()
        self._lock = locks.rlock()
        left = _idle.get(index)
        self.stream = Stream.of(index, left.pop() if left else runtime().stream_create(index, 0))

    @classmethod
    def connect(cls, who: str, rank: int, size: int, unique_id: bytes, index: int, seconds: float) -> Communicator:
        """One that all processes make with the same bytes. Raises RankFailedError where some do not come within `seconds`."""
        api = nccl(who)
        made = cls(api, rank, size, index, seconds)
        runtime().stream_query(index, made.stream.cuda_stream)  # makes the GPU current on this thread, from which NCCL takes it
        given = bytearray(unique_id)
        identity = api.UniqueId.from_buffer(given)
        config = made.config()
        made.start(who, lambda: api.comm_init_rank_config(size, identity.ptr, rank, config.ptr))
        return made

    def config(self) -> Any:
        """NCCL's settings: its own, but that no call blocks."""
        made = self.api.Config()
        made.blocking = 0
        return made

    def start(self, doing: object, make: Callable[[], Any]) -> None:
        """Make the handle, wait until it is connected, and look whether it is what was asked for."""
        self._step(doing, lambda: setattr(self, "comm", make()))
        self.until(doing, self.is_queued, self.seconds)
        found = self.api.comm_user_rank(self.comm), self.api.comm_count(self.comm)
        if found != (self.rank, self.size):
            self.fail(DistBackendError(
                f"{doing}: NCCL made this process rank {found[0]} of {found[1]}, and it is rank {self.rank} of {self.size}; "
                "give all processes the same unique id and size, and each its own rank"
            ))  # fmt: skip
        watchdog.watch(self)

    # calls
    def begin(
        self, call: Call, arrays: Sequence[Array], steps: Sequence[Callable[[], None]], on_host: bool = False, source: int = -1
    ) -> NcclPending:
        """Queue calls of NCCL on the stream, behind what the current stream was given so far; several steps begin as one."""
        with self._lock:
            self.raise_if_failed(call)
            pending = NcclPending(self, call, tuple(steps), tuple(arrays), on_host, source)
            here = Event()
            here.record(Stream.of(self.index, stream_of(self.index)))
            here.wait(self.stream)
            for x in arrays:  # not to be used again before this stream is done with it
                runtime().record_stream(x.storage, self.stream.cuda_stream)
            if self._batch is not None:
                self._batch.append(pending)
            else:
                self._issue(call, [pending])
            return pending

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is begun in this block begins at its end, as one; where the block raises, nothing of it does."""
        if self._batch is not None:
            yield
            return
        batch = self._batch = []
        try:
            yield
        finally:
            self._batch = None
        if batch:
            with self._lock:
                self._issue(batch[0].call, batch)

    def _issue(self, call: Call, batch: Sequence[NcclPending]) -> None:
        steps = [step for pending in batch for step in pending.steps]
        if len(steps) > 1:
            self._step(call, lambda: self._run_grouped(steps))
        elif steps:
            self._step(call, steps[0])
        self.until(call, self.is_queued, self.seconds)  # before, the event would lie in front of the work
        event = Event()
        event.record(self.stream)
        self._prune()
        for pending in batch:
            pending.mark(event)
            self._open.append(pending)

    def _prune(self) -> None:
        while self._open and self._open[0].done():
            if self._open:  # an error has cleared it
                self._open.popleft()

    def _run_grouped(self, steps: Sequence[Callable[[], None]]) -> None:
        self.api.group_start()
        failed = None
        try:
            for step in steps:
                step()
        except self.api.NCCLError as error:
            failed = error
        try:
            self.api.group_end()  # also after an error, or the thread would stay inside of the group
        except self.api.NCCLError as error:
            failed = failed or error
        if failed is not None:
            raise failed

    def _step(self, doing: object, step: Callable[[], None]) -> None:
        try:
            step()
        except self.api.NCCLError as error:
            self.fail(to_error(str(doing), self.api, error.status, self.comm))

    # waiting and failing
    def is_queued(self) -> bool:
        """Whether NCCL has done what it was told; raises nothing itself."""
        return self.state() != self.api.Result.InProgress

    def state(self) -> int:
        """NCCL's status of the communicator; Success where there is none any longer."""
        comm = self.comm
        if comm is None:
            return 0
        try:
            return int(self.api.comm_get_async_error(comm))
        except self.api.NCCLError as error:
            return int(error.status)

    def look(self, doing: object) -> None:
        """Abort where NCCL has met an error since. Never waits: where another thread is at work here, that one finds it."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            status = self.state() if self.failure is None else 0
            if status not in (self.api.Result.Success, self.api.Result.InProgress):
                self._abort(to_error(str(doing), self.api, status, self.comm))
        finally:
            self._lock.release()

    def until(self, doing: object, ready: Callable[[], bool], seconds: float) -> None:
        """Wait on the host. Raises RankFailedError after `seconds`, DistBackendError for an error that NCCL meets; both abort."""
        begun = time.monotonic()
        waited = False
        while True:
            self.look(doing)
            self.raise_error(doing)
            if ready():
                return
            late = time.monotonic() - begun
            if late > seconds:
                self.fail(self._timeout_error(doing, seconds))
            if late > SPIN:
                if not waited:
                    hidden_waits.note("event synchronize")
                waited = True
                time.sleep(PAUSE)

    def raise_error(self, doing: object) -> None:
        """Raise the error that has made the communicator fail, once as itself and then as what `raise_if_failed` says."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self.failure:
            self.raise_if_failed(doing)

    def _timeout_error(self, doing: object, seconds: float) -> RankFailedError:
        state = self.state()
        said = read_error(self.api, state, self.comm)
        return RankFailedError(
            f"{doing}: rank {self.rank} of {self.size} on cuda:{self.index} waited {seconds:g} s, and it is not done: another rank died, hangs or is in "
            f"another call; NCCL says {said}. The communicator was aborted; see the other ranks' messages, and give init_process_group a longer "
            "timeout if they are only slow"
        )

    def raise_if_failed(self, call: object) -> None:
        """Raise RankFailedError where the communicator has failed, DistError where it was closed."""
        if self.failure is not None:
            if not self.failure:
                raise DistError(f"{call}: the group was closed by destroy_process_group; make it anew with init_process_group or new_group")
            raise RankFailedError(f"{call}: the group is of no more use since {self.failure}")

    def fail(self, error: DistBackendError) -> NoReturn:
        """Abort, and raise the error."""
        self._abort(error)
        self._error = None
        raise error

    def _abort(self, error: DistBackendError) -> None:
        with self._lock:
            if self.failure is not None:
                return
            self.failure, self._error = str(error), error
            self._open.clear()
            comm, self.comm = self.comm, None
            if comm is not None and int(comm):
                try:
                    self.api.comm_abort(comm)
                except self.api.NCCLError as also:
                    error.add_note(f"ncclCommAbort: {read_error(self.api, also.status)}")

    def check(self) -> None:
        """Ask for errors, and for calls that nobody waits for and that take longer than `seconds`: the watchdog's question.

        Raises RankFailedError or DistBackendError the first time that something is wrong; later calls on the communicator raise, too.
        """
        with self._lock:
            if self.failure is not None:
                return
            with runtime().allocator(self.index).source.relaxed():  # another thread may be capturing a graph
                self._prune()
                self.look("watchdog")
            self.raise_error("watchdog")
            if self._open and time.monotonic() - self._open[0].begun > self.seconds:
                self.fail(self._timeout_error(self._open[0].call, self.seconds))

    # splitting and the end
    def split(self, call: Call, rank: int, size: int) -> Communicator | None:
        """One of some of the processes, where this one is `rank`; all processes call it, those that are no members with rank -1."""
        with self._lock:
            self.raise_if_failed(call)
            config = self.config()
            kept: list[Any] = []  # the child's handle is written into it when the split is done, also for those that get none
            color = 0 if rank >= 0 else -1  # NCCL_SPLIT_NOCOLOR
            self._step(call, lambda: kept.append(self.api.comm_split(self.comm, color, max(rank, 0), config.ptr)))
            self.until(call, self.is_queued, self.seconds)
            if rank < 0:
                return None
            made = Communicator(self.api, rank, size, self.index, self.seconds)
            made.start(call, lambda: kept[0])
            return made

    def close(self) -> None:
        """Wait for what goes on, and give back what NCCL holds; a second time nothing. Raises RankFailedError where that does not end."""
        with self._lock:
            if self.failure is not None:
                return
            doing = "destroy_process_group"
            self.until(doing, lambda: all([pending.done() for pending in tuple(self._open)]), min(self.seconds, CLOSING))
            self._step(doing, lambda: self.api.comm_finalize(self.comm))
            self.until(doing, self.is_queued, min(self.seconds, CLOSING))
            self._step(doing, lambda: self.api.comm_destroy(self.comm))
            self.failure, self.comm = "", None
            self._open.clear()
            _idle.setdefault(self.index, []).append(self.stream.cuda_stream)
