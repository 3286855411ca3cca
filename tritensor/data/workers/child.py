"""Worker process of a DataLoader: reads indices, makes batches in shared memory, sends them; ends when the loader does, however that ends."""

from __future__ import annotations

import faulthandler
import os
import pickle
import random
import select
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from tritensor.data import collate
from tritensor.data.batch_reader import make_reader, read_stream
from tritensor.data.workers import info
from tritensor.data.workers.channel import DESCRIPTORS, Channel
from tritensor.data.workers.dataset_pickle import Contents, DatasetPickle
from tritensor.data.workers.failures import capture_error, describe_samples
from tritensor.data.workers.memory_pool import MemoryPool, PieceUse
from tritensor.data.workers.packing import Span, pack_batch
from tritensor.llvm.blas import blas
from tritensor.multiprocessing.spawn import end_with_parent
from tritensor.random import default_generator
from tritensor.tensor.shared_memory import set_strategy


class Plan(NamedTuple):
    """A worker's orders: its number and how many there are, the seed of the first epoch, how batches are made."""

    rank: int
    workers: int
    base_seed: int
    streams: bool
    batched: bool
    batch_size: int | None
    drop_last: bool
    bound: bool  # whether it ends with the thread that started it
    strategy: str
    threads: tuple[str, ...]  # variables of the environment that were set for it alone


TRACE_SIGNAL = signal.SIGRTMAX - 3  # a worker that gets it writes where its Python is


class _Stopped(BaseException):
    """The loader wants nothing more."""


def run_worker(dataset_pickle: DatasetPickle, end: socket.socket, plan: Plan) -> None:
    """The life of a worker process."""
    _set_up_process(plan)
    worker = _Worker(Channel(end, blocking=True), plan)
    threading.Thread(target=worker.watch, daemon=True, name="tritensor-watch").start()
    try:
        worker.prepare(dataset_pickle)
        while worker.handle_message():
            pass
    except (EOFError, BrokenPipeError, _Stopped):
        return  # the loader has closed: an ordinary end


def _set_up_process(plan: Plan) -> None:
    """Set the signals, threads and memory of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the loader's answers it and ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked one has the program's
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if plan.bound:
        end_with_parent(signal.SIGKILL)
    for name in plan.threads:
        os.environ.pop(name, None)
    library = blas()
    if library is not None:
        library.set(1)  # each worker has a processor; tritensor's own threads are as many
    set_strategy(plan.strategy)


def _seed_generators(base_seed: int, rank: int) -> None:
    """Seed the three generators as PyTorch does: Python's and tritensor's by the sum, numpy's by four words of numpy's own SeedSequence."""
    random.seed(base_seed + rank)
    default_generator.manual_seed(base_seed + rank)
    np.random.seed(np.random.SeedSequence([rank, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4))


class _Worker:
    """The state of a worker process: its channel, its shared memory, the dataset, and how far it has read in each iteration under way."""

    def __init__(self, channel: Channel, plan: Plan) -> None:
        self.channel, self.plan, self.pool = channel, plan, MemoryPool()
        self.ending = False
        self.failed: Any = None  # an error of the start, sent in place of every batch
        self.dataset: Any = None
        self.iterations: dict[int, Any] = {}  # by tag: the reader, or the stream's iterator; None until the first task
        self._make_source: Callable[[], Any] = dict
        self._begun = False

    # -- the loader's end
    def watch(self) -> None:
        """Wait, in a thread of its own, for the loader to close (then the sample that is being read is the last), then for it to be gone (then this
        process ends at once)."""
        waiting, descriptor = select.poll(), self.channel.socket.fileno()
        waiting.register(descriptor, select.POLLRDHUP)
        waiting.poll()
        self.ending = True
        waiting.register(descriptor, 0)  # a hang-up is always told
        waiting.poll()
        os._exit(1)

    def pause(self) -> None:
        """Raise _Stopped where the loader has closed: asked between two samples."""
        if self.ending:
            raise _Stopped

    # -- work
    def prepare(self, dataset_pickle: DatasetPickle) -> None:
        """Unpickle the dataset, seed, call worker_init_fn."""
        where = f"in DataLoader worker process {self.plan.rank}"
        contents: Contents | None = None
        try:
            contents = dataset_pickle.open()
        except Exception as error:
            self.failed = capture_error(error, f"{where}, which could not read the dataset that it was given")
        _seed_generators(self.plan.base_seed, self.plan.rank)
        if contents is not None:
            self.dataset, collate_fn, init = contents
            collate.allocate = self.pool.empty
            self._set_worker_info(self.plan.base_seed)
            try:
                if init is not None:
                    init(self.plan.rank)
            except Exception as error:
                self.failed = capture_error(error, f"{where}, in worker_init_fn")
            plan = self.plan
            if plan.streams:
                self._make_source = lambda: read_stream(self.dataset, collate_fn, plan.batch_size, plan.drop_last)
            else:
                self._make_source = lambda: make_reader(self.dataset, collate_fn, plan.batched, self.pause)
        traces = os.memfd_create("tritensor-traces", os.MFD_CLOEXEC)
        faulthandler.register(TRACE_SIGNAL, file=traces, all_threads=False)  # also where Python itself hangs
        self.channel.send(pickle.dumps(("ready", 0, 0, None, (), (), ())), [os.dup(traces)])

    def _set_worker_info(self, base_seed: int) -> None:
        info.set_worker_info(info.WorkerInfo(self.plan.rank, self.plan.workers, base_seed + self.plan.rank, self.dataset))

    def handle_message(self) -> bool:
        """Carry out the next message."""
        message, _ = self.channel.receive()
        kind, tag, *rest, released = pickle.loads(message)
        self.pool.release(released)
        if kind == "begin":
            if self._begun:  # a later epoch: seeded as its own workers would be
                _seed_generators(rest[0], self.plan.rank)
                self._set_worker_info(rest[0])
            self._begun = True
            self.iterations[tag] = None
        elif kind == "forget":
            self.iterations.pop(tag, None)
        elif tag in self.iterations:
            self._run_task(tag, *rest)
        return True

    def _run_task(self, tag: int, number: int, indices: Any, inside: Any) -> None:
        self.pause()
        kind, samples = "error", 0
        spans: list[Span] = []
        uses: list[PieceUse] = []
        try:
            if self.failed is not None:
                content = pickle.dumps(self.failed)
            else:
                read = self._read_batch(tag, indices, inside)
                if read is None:
                    kind, content = "end", b""
                else:
                    content, spans, uses = pack_batch(read[1], self.pool)
                    kind, samples = "batch", read[0]
                    del read  # before the reply is sent: a worker that waits for its next task should hold no batch
        except Exception as error:
            samples_read = "" if self.plan.streams else f", which read {describe_samples(indices)}"
            content = pickle.dumps(capture_error(error, f"in DataLoader worker process {self.plan.rank}{samples_read}"))
            del error
        self._send_result(kind, tag, number, (content, samples), spans, uses)

    def _read_batch(self, tag: int, indices: Any, inside: Any) -> tuple[int, Any] | None:
        """(samples, the next batch); None at the end of a stream."""
        if self.iterations[tag] is None:
            self.iterations[tag] = self._make_source()
        source = self.iterations[tag]
        with nullcontext() if inside is None else inside(self.dataset):
            return next(source, None) if self.plan.streams else (0, source(indices))

    def _send_result(self, kind: str, tag: int, number: int, content: Any, spans: Any = (), uses: Any = ()) -> None:
        pieces = {use.piece.number: use.piece for use in uses}
        for piece in pieces.values():
            piece.holders += 1  # until the loader says that the program's arrays have died
        fresh, dropped = self.pool.fresh, self.pool.dropped
        self.pool.fresh, self.pool.dropped = [], []
        while len(fresh) > DESCRIPTORS:
            some, fresh = fresh[:DESCRIPTORS], fresh[DESCRIPTORS:]
            self._send(("pieces", 0, 0, None, (), some, ()))
        self._send((kind, tag, number, content, tuple(spans), fresh, tuple(dropped)))

    def _send(self, message: tuple[Any, ...]) -> None:
        *rest, fresh, dropped = message
        descriptors = [piece.descriptor for piece in fresh]
        self.channel.send(pickle.dumps((*rest, [(piece.number, piece.size) for piece in fresh], dropped), 5), descriptors)
