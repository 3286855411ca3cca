"""The workers of a loader, seen from its process: started together, fed, heard, watched, ended together."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import select
import signal
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tritensor.data.workers.channel import Channel, pair
from tritensor.data.workers.child import ASK_WHERE, Plan, work
from tritensor.data.workers.dataset_pickle import Parcel
from tritensor.data.workers.failures import how_it_ended, no_start, samples_shown, start_failed
from tritensor.data.workers.process import new_process, quiet_start
from tritensor.ground.errors import OutOfMemoryError
from tritensor.ground.process import locks
from tritensor.multiprocessing.spawn import can_bind
from tritensor.tensor.shared_memory import Lent, Mapping, strategy

_SHOWN = 12  # lines of where a worker is
_PATIENCE = 5.0  # seconds that workers get to end after the sample they read, before SIGTERM; a fifth of it before SIGKILL
_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # this process's ends of all sockets: a forked child must not hold them open


class Back(Lent):
    """A worker's piece in use by this program; its number goes back when the last array on it dies, inverted where the program has been forked
    meanwhile: the child has its arrays still."""

    __slots__ = ("born", "number", "returned")
    forks: ClassVar[list[int]] = [0]  # so far, before and after each

    def __init__(self, mapping: Mapping, number: int, returned: deque[int]) -> None:
        self.number, self.returned, self.born = number, returned, self.forks[0]
        super().__init__(mapping, mapping.nbytes)

    def __del__(self) -> None:
        self.returned.append(self.number if self.born == self.forks[0] else ~self.number)


def _close_in_child() -> None:
    for end in tuple(_ends):
        end.close()


def _count_fork() -> None:
    Back.forks[0] += 1


os.register_at_fork(before=_count_fork, after_in_parent=_count_fork, after_in_child=_close_in_child)


class Heard(NamedTuple):
    """What a worker answered to a task: "batch" with its pickle and buffers, "error" with its pickle, or "end"."""

    kind: str
    content: bytes
    samples: int  # of a stream's batch
    buffers: list[np.ndarray]

    def value(self) -> Any:
        """The batch, or the error as failures.Raised."""
        return pickle.loads(self.content, buffers=self.buffers)


class Interrupted(Exception):
    """The iteration that was waited for has been given up."""


class Worker:
    """One of them: its process, its channel, its pieces mapped here, what it has been asked."""

    def __init__(self, made: Any, parcel: Parcel, plan: Plan) -> None:
        self.rank, self.started = plan.rank, False
        self.traces = -1  # the file that it writes to when it is asked where it is
        self.pieces: dict[int, Mapping] = {}
        self.returned: deque[int] = deque()  # numbers of pieces that the worker may use again
        self.asked: dict[tuple[int, int], Any] = {}  # (tag, number): indices
        ours, theirs = pair()
        self.channel = Channel(ours, waits=False)
        self.process = new_process(made, work, (parcel, theirs, plan), f"DataLoader worker {plan.rank}")
        _ends.add(ours)
        try:
            self.process.start()
            self.ended = _end_of(self.process)
        except BaseException:
            ours.close()
            if self.process.pid is not None:
                self.process.kill()
                self.process.join()
            raise
        finally:
            theirs.close()

    def send(self, kind: str, tag: int, *rest: Any) -> None:
        """Send a message, with the pieces that came back meanwhile."""
        released = [self.returned.popleft() for _ in range(len(self.returned))]
        try:
            self.channel.send(pickle.dumps((kind, tag, *rest, released), 5))
        except (BrokenPipeError, ConnectionResetError):
            self.channel.outbox.clear()  # it has ended: what it said last, and that it has, is yet to be read

    def hear(self) -> tuple[str, int, int, Heard]:
        """(kind, tag, number, what was heard) of one message. Raises EOFError, BlockingIOError, OutOfMemoryError."""
        message, descriptors = self.channel.receive()
        kind, tag, number, content, places, fresh, dropped = pickle.loads(message)
        if kind == "ready":
            self.traces = descriptors.pop()
        try:
            for (piece, size), descriptor in zip(fresh, descriptors, strict=True):
                self.pieces[piece] = Mapping(descriptor, size)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        there = {piece: np.asarray(Back(self.pieces[piece], piece, self.returned)) for piece in {p for p, _, _ in places}}
        for piece in dropped:
            del self.pieces[piece]
        self.asked.pop((tag, number), None)
        pickled, samples = content or (b"", 0)
        return kind, tag, number, Heard(kind, pickled, samples, [there[p][first : first + nbytes] for p, first, nbytes in places])

    def ignore(self) -> None:
        """Take one message that nobody wants any more. Raises EOFError, BlockingIOError."""
        with contextlib.suppress(OutOfMemoryError):  # it is gone as well
            for descriptor in self.channel.receive()[1]:
                os.close(descriptor)

    def gone(self) -> bool:
        """Whether its process has ended; known also where something else has taken its exit code."""
        waiting = select.poll()
        waiting.register(self.ended, select.POLLIN)
        return bool(waiting.poll(0)) or self.process.exitcode is not None

    def shown(self) -> str:
        """ "worker 1 (pid 4242)"."""
        return f"worker {self.rank} (pid {self.process.pid})"

    def where(self) -> str:
        """The lines that its Python is at, asked for by a signal; "" where it does not say."""
        if self.traces < 0:
            return ""
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(self.process.pid, ASK_WHERE)
        end, text = time.monotonic() + 0.5, b""
        while not text.endswith(b"\n") and time.monotonic() < end:
            time.sleep(0.01)
            text = os.pread(self.traces, 1 << 14, 0)
        lines = text.decode(errors="replace").splitlines()[1:]
        return "".join(f"\n{line}" for line in lines[:_SHOWN])

    def doing(self) -> str:
        """What it was asked, for messages."""
        if not self.asked:
            return "it had nothing to do"
        (_, number), indices = next(iter(self.asked.items()))
        made = f"it was making batch {number}"
        return made if indices is None else f"{made} of {samples_shown(indices)}"


def _end_of(process: Any) -> int:
    """A descriptor that is readable when a process has ended: of the process itself, which no child of its own can hold open."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:  # a kernel, or a sandbox, without them
        return os.dup(process.sentinel)


class Crew:
    """All workers of one loader. Iterations have tags, and what is heard for one waits in its inbox, so that several can be under way.

    Raises RuntimeError, in all iterations, once a worker has ended.
    """

    def __init__(self, made: Any, count: int, parcel: Parcel, base_seed: int, settings: dict[str, Any]) -> None:
        self.method = made.get_start_method() or ""
        self.workers: list[Worker] = []
        self.inboxes: dict[int, deque[tuple[int, Heard]]] = {}
        self.failure = ""
        self._tags = itertools.count()
        self._given_up: deque[int] = deque()  # tags, noted by finalizers, which may run anywhere
        self._lock = locks.rlock()
        self._process = os.getpid()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._bell)
        self._end = weakref.finalize(self, _end, self.workers, self._process)
        bound = can_bind(self.method)
        try:
            with quiet_start() as added:
                for rank in range(count):
                    plan = Plan(rank, count, base_seed, bound=bound, strategy=strategy(), threads=tuple(added), **settings)
                    self.workers.append(Worker(made, parcel, plan))
        except BaseException as error:
            told = no_start(error, len(self.workers), count) if isinstance(error, OSError) else None
            self.close()
            if told is not None:
                raise told from error
            raise

    def begin(self, base_seed: int) -> int:
        """A new iteration: its tag."""
        self.need_own()
        with self._lock:
            self._tidy()
            tag = next(self._tags)
            self.inboxes[tag] = deque()
            for worker in self.workers:
                worker.send("begin", tag, base_seed)
            return tag

    def forget(self, tag: int) -> None:
        """An iteration is given up; what is still heard for it goes. Finalizers may call this."""
        self._given_up.append(tag)

    def _tidy(self) -> None:
        while self._given_up:
            tag = self._given_up.popleft()
            if self.inboxes.pop(tag, None) is not None:
                for worker in self.workers:
                    worker.asked = {key: asked for key, asked in worker.asked.items() if key[0] != tag}
                    worker.send("forget", tag)

    def ask(self, rank: int, tag: int, number: int, indices: Any, inside: Any) -> None:
        """Give a worker a task. Raises RuntimeError where the workers have ended."""
        self.need_own()
        with self._lock:
            if self.failure:
                raise RuntimeError(self.failure)
            self._tidy()
            worker = self.workers[rank]
            worker.asked[tag, number] = indices
            worker.send("task", tag, number, indices, inside)

    def wait(self, tag: int, timeout: float) -> deque[tuple[int, Heard]]:
        """Wait until something is in an iteration's inbox, at most `timeout` seconds where that is not 0, and return it.

        Raises RuntimeError when a worker has ended, or after the timeout; Interrupted.
        """
        self.need_own()
        end = time.monotonic() + timeout if timeout else None
        with self._lock:
            self._tidy()
            while not (inbox := self.inboxes.get(tag)):
                if inbox is None:
                    raise Interrupted
                if self.failure:
                    raise RuntimeError(self.failure)
                self._listen(end, timeout)
                self._tidy()
            return inbox

    def interrupt(self, tag: int) -> None:
        """Give an iteration up that another thread waits for."""
        self._given_up.append(tag)
        os.eventfd_write(self._bell, 1)

    def _listen(self, end: float | None, timeout: float) -> None:
        """Hear what has come, waiting for something."""
        waiting = select.poll()
        by_end = {}
        for worker in self.workers:
            descriptor = worker.channel.socket.fileno()
            by_end[descriptor] = by_end[worker.ended] = worker
            more = select.POLLOUT if not self._flushed(worker) else 0
            waiting.register(descriptor, select.POLLIN | more)
            waiting.register(worker.ended, select.POLLIN)
        waiting.register(self._bell, select.POLLIN)
        left = None if end is None else max(0.0, end - time.monotonic())
        found = waiting.poll(None if left is None else left * 1000)
        if not found and left is not None and end is not None and time.monotonic() >= end:
            self._give_up(timeout)
        for descriptor, event in found:
            if descriptor == self._bell:
                os.eventfd_read(descriptor)
            elif event & ~select.POLLOUT and not self.failure:
                worker = by_end[descriptor]
                self._hear(worker)
                if descriptor == worker.ended and not self.failure:  # a process that it has forked still holds its end
                    self._lost(worker)

    def _flushed(self, worker: Worker) -> bool:
        try:
            return worker.channel.flush()
        except (BrokenPipeError, ConnectionResetError):
            worker.channel.outbox.clear()
            return True

    def _hear(self, worker: Worker) -> None:
        while True:
            try:
                kind, tag, number, heard = worker.hear()
            except BlockingIOError:
                return
            except EOFError:
                self._lost(worker)
                return
            except OutOfMemoryError as error:  # what it has sent is lost
                self._fail(str(error), patience=0.2)
                raise
            worker.started = True
            if kind in ("batch", "error", "end") and tag in self.inboxes:
                self.inboxes[tag].append((number, heard))

    def _lost(self, worker: Worker) -> None:
        """A worker has ended: end the others, and keep what is to be said."""
        worker.process.join(1.0)
        code = worker.process.exitcode
        if code is None and worker.gone():
            how = f"has ended; how is not known, since something else in this program has taken its exit code; {worker.doing()}"
        else:
            how = f"{how_it_ended(code)}; {worker.doing()}" if worker.started else start_failed(code, self.method)
        self._fail(f"DataLoader {worker.shown()} {how}")

    def _give_up(self, timeout: float) -> None:
        slow = next((w for w in self.workers if w.asked), self.workers[0])
        what = f"{slow.shown()} still runs, {slow.doing()}" if slow.started else f"{slow.shown()} has not started yet"
        where = slow.where()
        where = f". It is at (innermost first):{where}" if where else ""
        self._fail(f"DataLoader timed out after {timeout:g} seconds: {what}; give a longer timeout=, or 0 for none{where}", patience=0.2)

    def _fail(self, said: str, patience: float = _PATIENCE) -> None:
        self.failure = said
        self.close(patience)

    def close(self, patience: float = _PATIENCE) -> None:
        """End all workers, after the sample that each reads. One that takes longer than `patience` seconds is ended by signals."""
        if self._end.alive:
            self._end.detach()
            _end(self.workers, self._process, patience)
        self.failure = self.failure or "DataLoader: its workers have been ended; iterate over the loader anew"

    @property
    def alive(self) -> bool:
        """Whether tasks can be given: the workers run, and are of this process."""
        return not self.failure and self._process == os.getpid()

    def need_own(self) -> None:
        """Raise RuntimeError in a forked copy of the program. Asked before the lock, which another thread may have held when it was forked."""
        if self._process != os.getpid():
            raise RuntimeError(
                f"DataLoader: this process is a fork of process {self._process}, whose iteration goes on there, with its workers; iterate over the loader "
                "anew here"
            )


def _end(workers: Sequence[Worker], process: int, patience: float = _PATIENCE) -> None:
    """Close the workers' channels and wait for their ends."""
    if process != os.getpid():  # a forked copy: they are not its children
        return
    for worker in workers:
        try:
            worker.channel.socket.shutdown(1)  # no more tasks; a worker that is between samples sees it at once
        except OSError:  # its end is closed already
            continue
    for wait, number in ((patience, signal.SIGTERM), (patience / 5, signal.SIGKILL), (None, None)):
        _drained(workers, wait)
        for worker in workers:
            if number is not None and not worker.gone():
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(worker.process.pid, number)
    for worker in workers:
        worker.process.join(0)
        os.close(worker.ended)
        if worker.traces >= 0:
            os.close(worker.traces)
        worker.channel.close()
        _ends.discard(worker.channel.socket)
        if worker.process.exitcode is not None:
            worker.process.close()


def _drained(workers: Sequence[Worker], seconds: float | None) -> None:
    """Wait for all workers to end, so many seconds; what they still send goes."""
    end = None if seconds is None else time.monotonic() + seconds
    while alive := [w for w in workers if not w.gone()]:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return
        waiting = select.poll()
        for worker in alive:
            waiting.register(worker.ended, select.POLLIN)
            waiting.register(worker.channel.socket.fileno(), select.POLLIN)
        waiting.poll(None if left is None else left * 1000)
        for worker in alive:
            try:
                while True:
                    worker.ignore()
            except BlockingIOError:
                continue
            except (EOFError, OSError):  # nothing more will come
                time.sleep(0.001)
