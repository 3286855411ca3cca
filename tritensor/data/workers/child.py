"""A worker process: reads indices, makes batches in shared memory, sends them; ends when the loader does, however that ends."""

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
from tritensor.data.batch_reader import reader, stream
from tritensor.data.workers import info
from tritensor.data.workers.channel import DESCRIPTORS, Channel
from tritensor.data.workers.dataset_pickle import Contents, Parcel
from tritensor.data.workers.failures import raised, samples_shown
from tritensor.data.workers.memory_pool import Pool, Use
from tritensor.data.workers.packing import Place, packed
from tritensor.llvm.blas import blas
from tritensor.multiprocessing.spawn import end_with_parent
from tritensor.random import default_generator
from tritensor.tensor.shared_memory import set_strategy


class Plan(NamedTuple):
    """What a worker is to do: its number and how many there are, the seed of the first epoch, how batches are made."""

    rank: int
    workers: int
    base_seed: int
    streams: bool
    batched: bool
    batch_size: int | None
    drop_last: bool
    bound: bool  # ends with the thread that started it
    strategy: str
    threads: tuple[str, ...]  # variables of the environment that were set for it alone


ASK_WHERE = signal.SIGRTMAX - 3  # a worker that gets it writes where its Python is


class _Stopped(BaseException):
    """The loader wants nothing more."""


def work(parcel: Parcel, end: socket.socket, plan: Plan) -> None:
    """The life of a worker process."""
    _settle(plan)
    worker = _Worker(Channel(end, waits=True), plan)
    threading.Thread(target=worker.watch, daemon=True, name="tritensor-watch").start()
    try:
        worker.prepare(parcel)
        while worker.answer():
            pass
    except (EOFError, BrokenPipeError, _Stopped):
        return  # the loader has closed: an ordinary end


def _settle(plan: Plan) -> None:
    """Signals, threads and memory as a worker has them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the loader's answers it and ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked one has the program's
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if plan.bound:
        end_with_parent(signal.SIGKILL)
    for name in plan.threads:
        os.environ.pop(name, None)
    numbers = blas()
    if numbers is not None:
        numbers.set(1)  # each worker has a processor; tritensor's own threads are as many
    set_strategy(plan.strategy)


def _seed(base_seed: int, rank: int) -> None:
    """Seed the three generators as PyTorch does: Python's and tritensor's by the sum, numpy's by four words of numpy's own SeedSequence."""
    random.seed(base_seed + rank)
    default_generator.manual_seed(base_seed + rank)
    np.random.seed(np.random.SeedSequence([rank, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4))


class _Worker:
    """The state of a worker process: its channel, its shared memory, the dataset, and how far it has read in each iteration under way."""

    def __init__(self, channel: Channel, plan: Plan) -> None:
        self.channel, self.plan, self.pool = channel, plan, Pool()
        self.ending = False
        self.failed: Any = None  # an error of the start, told in place of every batch
        self.dataset: Any = None
        self.iterations: dict[int, Any] = {}  # by tag: what makes batches
        self._make: Callable[[], Any] = dict
        self._begun = False

    # -- the loader's end
    def watch(self) -> None:
        """Wait, in a thread of its own, for the loader to close (then the sample that is being read is the last), or to be gone (then this process
        ends at once)."""
        waiting, descriptor = select.poll(), self.channel.socket.fileno()
        waiting.register(descriptor, select.POLLRDHUP)
        waiting.poll()
        self.ending = True
        waiting.register(descriptor, 0)  # a hang-up is always told
        waiting.poll()
        os._exit(1)

    def pause(self) -> None:
        """Between two samples: stop where the loader has closed."""
        if self.ending:
            raise _Stopped

    # -- work
    def prepare(self, parcel: Parcel) -> None:
        """Unpickle the dataset, seed, call worker_init_fn."""
        where = f"in DataLoader worker process {self.plan.rank}"
        contents: Contents | None = None
        try:
            contents = parcel.open()
        except Exception as error:
            self.failed = raised(error, f"{where}, which could not read the dataset that it was given")
        _seed(self.plan.base_seed, self.plan.rank)
        if contents is not None:
            self.dataset, collate_fn, init = contents
            collate.allocate = self.pool.empty
            self._inform(self.plan.base_seed)
            try:
                if init is not None:
                    init(self.plan.rank)
            except Exception as error:
                self.failed = raised(error, f"{where}, in worker_init_fn")
            plan = self.plan
            if plan.streams:
                self._make = lambda: stream(self.dataset, collate_fn, plan.batch_size, plan.drop_last)
            else:
                self._make = lambda: reader(self.dataset, collate_fn, plan.batched, self.pause)
        traces = os.memfd_create("tritensor-traces", os.MFD_CLOEXEC)
        faulthandler.register(ASK_WHERE, file=traces, all_threads=False)  # also where Python itself hangs
        self.channel.send(pickle.dumps(("ready", 0, 0, None, (), (), ())), [os.dup(traces)])

    def _inform(self, base_seed: int) -> None:
        info.become(info.WorkerInfo(self.plan.rank, self.plan.workers, base_seed + self.plan.rank, self.dataset))

    def answer(self) -> bool:
        """Do what the next message says."""
        message, _ = self.channel.receive()
        kind, tag, *rest, released = pickle.loads(message)
        self.pool.released(released)
        if kind == "begin":
            if self._begun:  # a later epoch: seeded as its own workers would be
                _seed(rest[0], self.plan.rank)
                self._inform(rest[0])
            self._begun = True
            self.iterations[tag] = None
        elif kind == "forget":
            self.iterations.pop(tag, None)
        elif tag in self.iterations:
            self._do(tag, *rest)
        return True

    def _do(self, tag: int, number: int, indices: Any, inside: Any) -> None:
        self.pause()
        kind, samples = "error", 0
        places: list[Place] = []
        uses: list[Use] = []
        try:
            if self.failed is not None:
                content = pickle.dumps(self.failed)
            else:
                found = self._batch(tag, indices, inside)
                if found is None:
                    kind, content = "end", b""
                else:
                    content, places, uses = packed(found[1], self.pool)
                    kind, samples = "batch", found[0]
                    del found
        except Exception as error:
            told = "" if self.plan.streams else f", which read {samples_shown(indices)}"
            content = pickle.dumps(raised(error, f"in DataLoader worker process {self.plan.rank}{told}"))
            del error
        self._tell(kind, tag, number, (content, samples), places, uses)

    def _batch(self, tag: int, indices: Any, inside: Any) -> tuple[int, Any] | None:
        """(samples, the next batch); None at the end of a stream."""
        if self.iterations[tag] is None:
            self.iterations[tag] = self._make()
        source = self.iterations[tag]
        with nullcontext() if inside is None else inside(self.dataset):
            return next(source, None) if self.plan.streams else (0, source(indices))

    def _tell(self, kind: str, tag: int, number: int, content: Any, places: Any = (), uses: Any = ()) -> None:
        pieces = {use.piece.number: use.piece for use in uses}
        for piece in pieces.values():
            piece.holders += 1  # until the loader says that the program's arrays have died
        fresh, dropped = self.pool.fresh, self.pool.dropped
        self.pool.fresh, self.pool.dropped = [], []
        while len(fresh) > DESCRIPTORS:
            some, fresh = fresh[:DESCRIPTORS], fresh[DESCRIPTORS:]
            self._send(("pieces", 0, 0, None, (), some, ()))
        self._send((kind, tag, number, content, tuple(places), fresh, tuple(dropped)))

    def _send(self, message: tuple[Any, ...]) -> None:
        *rest, fresh, dropped = message
        descriptors = [piece.descriptor for piece in fresh]
        self.channel.send(pickle.dumps((*rest, [(piece.number, piece.size) for piece in fresh], dropped), 5), descriptors)
