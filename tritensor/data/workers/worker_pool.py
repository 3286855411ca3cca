"""Pool of a loader's workers, in the loader's process: started together, given tasks, watched, ended together."""

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

from tritensor.data.workers.channel import Channel, socket_pair
from tritensor.data.workers.child import TRACE_SIGNAL, Plan, run_worker
from tritensor.data.workers.dataset_pickle import DatasetPickle
from tritensor.data.workers.failures import describe_exit, describe_failed_start, describe_samples, start_error
from tritensor.data.workers.process import child_environment, new_process
from tritensor.ground.errors import OutOfMemoryError
from tritensor.ground.process import locks
from tritensor.multiprocessing.spawn import can_bind
from tritensor.tensor.shared_memory import Mapping, SegmentLoan, strategy

_TRACE_LINES = 12  # lines of a worker's traceback
_PATIENCE = 5.0  # seconds that workers get to end after the sample they read, before SIGTERM; a fifth of it before SIGKILL
_loader_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # this process's ends of all sockets: a forked child must not hold them open


class LoaderPieceUse(SegmentLoan):
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
    for end in tuple(_loader_ends):
        end.close()


def _count_fork() -> None:
    LoaderPieceUse.forks[0] += 1


os.register_at_fork(before=_count_fork, after_in_parent=_count_fork, after_in_child=_close_in_child)


class Reply(NamedTuple):
    """A worker's answer to a task: "batch" with its pickle and buffers, "error" with its pickle, or "end"."""

    kind: str
    content: bytes
    samples: int  # of a stream's batch
    buffers: list[np.ndarray]

    def value(self) -> Any:
        """The batch, or the error as failures.WorkerError."""
        return pickle.loads(self.content, buffers=self.buffers)


class Interrupted(Exception):
    """The iteration that was waited for has been given up."""


class Worker:
    """A worker: its process, its channel, its pieces mapped here, the tasks that it has not answered."""

    def __init__(self, context: Any, dataset_pickle: DatasetPickle, plan: Plan) -> None:
        self.rank, self.started = plan.rank, False
        self.traces = -1  # the file that it writes to when it is asked where it is
        self.pieces: dict[int, Mapping] = {}
        self.returned: deque[int] = deque()  # numbers of pieces that the worker may use again
        self.asked: dict[tuple[int, int], Any] = {}  # (tag, number): indices
        loader_end, worker_end = socket_pair()
        self.channel = Channel(loader_end, blocking=False)
        self.process = new_process(context, run_worker, (dataset_pickle, worker_end, plan), f"DataLoader worker {plan.rank}")
        _loader_ends.add(loader_end)
        try:
            self.process.start()  # raises where the dataset cannot be pickled, or the system starts no process
            self.ended = _end_descriptor(self.process)
        except BaseException:
            loader_end.close()
            if self.process.pid is not None:
                self.process.kill()
                self.process.join()
            raise
        finally:
            worker_end.close()

    def send(self, kind: str, tag: int, *rest: Any) -> None:
        """Send a message, with the pieces that came back meanwhile."""
        released = [self.returned.popleft() for _ in range(len(self.returned))]
        try:
            self.channel.send(pickle.dumps((kind, tag, *rest, released), 5))
        except (BrokenPipeError, ConnectionResetError):
            self.channel.outbox.clear()  # it has ended: what it said last, and that it has, is yet to be read

    def receive_reply(self) -> tuple[str, int, int, Reply]:
        """(kind, tag, number, reply) of one message. Raises EOFError, BlockingIOError, OutOfMemoryError."""
        message, descriptors = self.channel.receive()
        kind, tag, number, content, spans, fresh, dropped = pickle.loads(message)
        if kind == "ready":
            self.traces = descriptors.pop()
        try:
            for (piece, size), descriptor in zip(fresh, descriptors, strict=True):
                self.pieces[piece] = Mapping(descriptor, size)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        memory = {piece: np.asarray(LoaderPieceUse(self.pieces[piece], piece, self.returned)) for piece in {p for p, _, _ in spans}}
        for piece in dropped:
            del self.pieces[piece]
        self.asked.pop((tag, number), None)
        pickled, samples = content or (b"", 0)
        return kind, tag, number, Reply(kind, pickled, samples, [memory[p][first : first + nbytes] for p, first, nbytes in spans])

    def discard_message(self) -> None:
        """Take one message that nobody wants any more. Raises EOFError, BlockingIOError."""
        with contextlib.suppress(OutOfMemoryError):  # it is gone as well
            for descriptor in self.channel.receive()[1]:
                os.close(descriptor)

    def has_ended(self) -> bool:
        """Whether its process has ended; known also where something else has taken its exit code."""
        waiting = select.poll()
        waiting.register(self.ended, select.POLLIN)
        return bool(waiting.poll(0)) or self.process.exitcode is not None

    def describe(self) -> str:
        """ "worker 1 (pid 4242)"."""
        return f"worker {self.rank} (pid {self.process.pid})"

    def read_traceback(self) -> str:
        """The lines that its Python is at, asked for by a signal; "" where it does not say."""
        if self.traces < 0:
            return ""
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(self.process.pid, TRACE_SIGNAL)
        end, text = time.monotonic() + 0.5, b""
        while not text.endswith(b"\n") and time.monotonic() < end:
            time.sleep(0.01)
            text = os.pread(self.traces, 1 << 14, 0)
        lines = text.decode(errors="replace").splitlines()[1:]
        return "".join(f"\n{line}" for line in lines[:_TRACE_LINES])

    def describe_task(self) -> str:
        """The oldest task that it has not answered, for messages."""
        if not self.asked:
            return "it had nothing to do"
        (_, number), indices = next(iter(self.asked.items()))
        task = f"it was making batch {number}"
        return task if indices is None else f"{task} of {describe_samples(indices)}"


def _end_descriptor(process: Any) -> int:
    """A descriptor that is readable when a process has ended: of the process itself, which no child of its own can hold open."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:  # a kernel, or a sandbox, without them
        return os.dup(process.sentinel)


class WorkerPool:
    """All workers of one loader. Iterations have tags, and the replies to one wait in its inbox, so that several can be under way.

    Raises RuntimeError, in all iterations, once a worker has ended.
    """

    def __init__(self, context: Any, count: int, dataset_pickle: DatasetPickle, base_seed: int, settings: dict[str, Any]) -> None:
        self.method = context.get_start_method() or ""
        self.workers: list[Worker] = []
        self.inboxes: dict[int, deque[tuple[int, Reply]]] = {}
        self.failure = ""
        self._tags = itertools.count()
        self._given_up: deque[int] = deque()  # tags, noted by finalizers, which may run anywhere
        self._lock = locks.rlock()
        self._process = os.getpid()
        self._wake_up = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._wake_up)
        self._finalizer = weakref.finalize(self, _end_workers, self.workers, self._process)
        bound = can_bind(self.method)
        try:
            with child_environment() as added:
                for rank in range(count):
                    plan = Plan(rank, count, base_seed, bound=bound, strategy=strategy(), threads=tuple(added), **settings)
                    self.workers.append(Worker(context, dataset_pickle, plan))
        except BaseException as error:
            start_failure = start_error(error, len(self.workers), count) if isinstance(error, OSError) else None
            self.close()
            if start_failure is not None:
                raise start_failure from error
            raise

    def begin_iteration(self, base_seed: int) -> int:
        """Begin an iteration; returns its tag."""
        self.require_own_process()
        with self._lock:
            self._forget_given_up()
            tag = next(self._tags)
            self.inboxes[tag] = deque()
            for worker in self.workers:
                worker.send("begin", tag, base_seed)
            return tag

    def forget_iteration(self, tag: int) -> None:
        """Give an iteration up; replies that still come for it are dropped. Finalizers may call this."""
        self._given_up.append(tag)

    def _forget_given_up(self) -> None:
        while self._given_up:
            tag = self._given_up.popleft()
            if self.inboxes.pop(tag, None) is not None:
                for worker in self.workers:
                    worker.asked = {key: asked for key, asked in worker.asked.items() if key[0] != tag}
                    worker.send("forget", tag)

    def submit_task(self, rank: int, tag: int, number: int, indices: Any, inside: Any) -> None:
        """Give a worker a task. Raises RuntimeError where the workers have ended."""
        self.require_own_process()
        with self._lock:
            if self.failure:
                raise RuntimeError(self.failure)
            self._forget_given_up()
            worker = self.workers[rank]
            worker.asked[tag, number] = indices
            worker.send("task", tag, number, indices, inside)

    def wait_for_reply(self, tag: int, timeout: float) -> deque[tuple[int, Reply]]:
        """Wait until something is in an iteration's inbox, at most `timeout` seconds where that is not 0, and return it.

        Raises RuntimeError when a worker has ended, or after the timeout; Interrupted.
        """
        self.require_own_process()
        end = time.monotonic() + timeout if timeout else None
        with self._lock:  # one thread listens for all iterations; what it receives for others goes to their inboxes
            self._forget_given_up()
            while not (inbox := self.inboxes.get(tag)):
                if inbox is None:
                    raise Interrupted
                if self.failure:
                    raise RuntimeError(self.failure)
                self._poll_workers(end, timeout)
                self._forget_given_up()
            return inbox

    def interrupt(self, tag: int) -> None:
        """Give an iteration up that another thread waits for."""
        self._given_up.append(tag)
        os.eventfd_write(self._wake_up, 1)

    def _poll_workers(self, end: float | None, timeout: float) -> None:
        """Receive the replies that have come, waiting for one."""
        waiting = select.poll()
        by_end = {}
        for worker in self.workers:
            descriptor = worker.channel.socket.fileno()
            by_end[descriptor] = by_end[worker.ended] = worker
            more = select.POLLOUT if not self._flush_outbox(worker) else 0
            waiting.register(descriptor, select.POLLIN | more)
            waiting.register(worker.ended, select.POLLIN)
        waiting.register(self._wake_up, select.POLLIN)
        left = None if end is None else max(0.0, end - time.monotonic())
        found = waiting.poll(None if left is None else left * 1000)
        if not found and left is not None and end is not None and time.monotonic() >= end:
            self._time_out(timeout)
        for descriptor, event in found:
            if descriptor == self._wake_up:
                os.eventfd_read(descriptor)
            elif event & ~select.POLLOUT and not self.failure:
                worker = by_end[descriptor]
                self._receive_replies(worker)
                if descriptor == worker.ended and not self.failure:  # a process that it has forked still holds its end
                    self._report_lost(worker)

    def _flush_outbox(self, worker: Worker) -> bool:
        try:
            return worker.channel.flush()
        except (BrokenPipeError, ConnectionResetError):
            worker.channel.outbox.clear()
            return True

    def _receive_replies(self, worker: Worker) -> None:
        while True:
            try:
                kind, tag, number, reply = worker.receive_reply()
            except BlockingIOError:
                return
            except EOFError:
                self._report_lost(worker)
                return
            except OutOfMemoryError as error:  # what it has sent is lost
                self._fail(str(error), patience=0.2)
                raise
            worker.started = True
            if kind in ("batch", "error", "end") and tag in self.inboxes:
                self.inboxes[tag].append((number, reply))

    def _report_lost(self, worker: Worker) -> None:
        """End the other workers when one has ended, and keep the message."""
        worker.process.join(1.0)
        code = worker.process.exitcode
        if code is None and worker.has_ended():
            how = f"has ended; how is not known, since something else in this program has taken its exit code; {worker.describe_task()}"
        else:
            how = f"{describe_exit(code)}; {worker.describe_task()}" if worker.started else describe_failed_start(code, self.method)
        self._fail(f"DataLoader {worker.describe()} {how}")

    def _time_out(self, timeout: float) -> None:
        slow = next((w for w in self.workers if w.asked), self.workers[0])
        what = f"{slow.describe()} still runs, {slow.describe_task()}" if slow.started else f"{slow.describe()} has not started yet"
        where = slow.read_traceback()
        where = f". It is at (innermost first):{where}" if where else ""
        self._fail(f"DataLoader timed out after {timeout:g} seconds: {what}; give a longer timeout=, or 0 for none{where}", patience=0.2)

    def _fail(self, message: str, patience: float = _PATIENCE) -> None:
        self.failure = message
        self.close(patience)

    def close(self, patience: float = _PATIENCE) -> None:
        """End all workers, after the sample that each reads. One that takes longer than `patience` seconds is ended by signals."""
        if self._finalizer.alive:
            self._finalizer.detach()
            _end_workers(self.workers, self._process, patience)
        self.failure = self.failure or "DataLoader: its workers have been ended; iterate over the loader anew"

    _shutdown_workers = close  # what libraries call at a loader's _iterator

    @property
    def alive(self) -> bool:
        """Whether tasks can be given: the workers run, and are of this process."""
        return not self.failure and self._process == os.getpid()

    def require_own_process(self) -> None:
        """Raise RuntimeError in a forked copy of the program. Asked before the lock, which another thread may have held when it was forked."""
        if self._process != os.getpid():
            raise RuntimeError(
                f"DataLoader: this process is a fork of process {self._process}, whose iteration goes on there, with its workers; iterate over the loader "
                "anew here"
            )


def _end_workers(workers: Sequence[Worker], process: int, patience: float = _PATIENCE) -> None:
    """Close the workers' channels and wait for their ends."""
    if process != os.getpid():  # a forked copy: they are not its children
        return
    for worker in workers:
        try:
            worker.channel.socket.shutdown(1)  # no more tasks; a worker that is between samples sees it at once
        except OSError:  # its end is closed already
            continue
    for wait, number in ((patience, signal.SIGTERM), (patience / 5, signal.SIGKILL), (None, None)):
        _wait_for_ends(workers, wait)
        for worker in workers:
            if number is not None and not worker.has_ended():
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(worker.process.pid, number)
    for worker in workers:
        worker.process.join(1.0)  # it has ended, which a fork server tells a moment later than its pipe does
        os.close(worker.ended)
        if worker.traces >= 0:
            os.close(worker.traces)
        worker.channel.close()
        _loader_ends.discard(worker.channel.socket)
        if worker.process.exitcode is not None:
            worker.process.close()


def _wait_for_ends(workers: Sequence[Worker], seconds: float | None) -> None:
    """Wait for all workers to end, so many seconds; what they still send is dropped."""
    end = None if seconds is None else time.monotonic() + seconds
    while alive := [w for w in workers if not w.has_ended()]:
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
                    worker.discard_message()
            except BlockingIOError:
                continue
            except (EOFError, OSError):  # nothing more will come
                time.sleep(0.001)
