"""Event files: records handed over in microseconds and written by a thread, whole on the disk or not at all."""

from __future__ import annotations

import atexit
import itertools
import os
import re
import socket
import struct
import sys
import threading
import time
import weakref
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import locks
from tritensor.io.protobuf import integer, message, text, varint
from tritensor.utils.tensorboard.checksum import masked_crc32c

_MAX_RECORDS, _MAX_BYTES = 4096, 1 << 24  # that may wait before the caller writes them itself
_GATHER = 0.02  # seconds that the thread waits for more once it is woken: each turn takes the interpreter from the program
_STEPS = 1 << 63  # the first step that an event's int64 has no room for
_numbers = itertools.count()
_head, _tail = struct.Struct("<Q").pack, struct.Struct("<I").pack
_double = struct.Struct("<d").pack


@cache
def _encode_length(n: int) -> bytes:
    """A record's length with its checksum; most lengths come again."""
    return _head(n) + _tail(masked_crc32c(_head(n)))


def frame_record(body: bytes) -> bytes:
    """A record of a TFRecord file: length, checksum of that, the bytes, checksum of these."""
    return _encode_length(len(body)) + body + _tail(masked_crc32c(body))


def encode_event(what: bytes, step: int | None = None, walltime: float | None = None) -> bytes:
    """An Event message around one of its fields."""
    when = b"\x09" + _double(time.time() if walltime is None else walltime)
    return when + what if not step else when + b"\x10" + varint(step) + what


class Sink:
    """An open event file and the records that wait for it."""

    def __init__(self, folder: Path, max_queue: int, flush_secs: float, suffix: str) -> None:
        self.folder, self.max_queue, self.flush_secs, self.suffix = folder, max_queue, flush_secs, suffix
        self.waiting: deque[bytes] = deque()  # append and popleft are atomic: whoever adds needs no lock
        self.size = 0  # bytes that wait, about
        self.wake_requested = False
        self.error: OSError | None = None
        self.closed = False
        self._open()

    def _open(self) -> None:
        """Begin a file behind all that are there: tensorboard reads a folder's files in the order of their names."""
        self.lock = locks.lock()
        self.folder.mkdir(parents=True, exist_ok=True)
        # two files of one second would be read in any order
        there = [int(found[1]) for name in os.listdir(self.folder) if (found := re.match(r"events\.out\.tfevents\.(\d{10})\.", name))]
        second = max(int(time.time()), max(there, default=-1) + 1)
        name = f"events.out.tfevents.{second:010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{self.suffix}"
        self.path = self.folder / name
        self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.end = 0  # bytes of whole records in the file
        self.unwritten = b""  # taken, and not yet in the file
        self.pid = os.getpid()
        self.next_flush = time.monotonic() + self.flush_secs
        self.waiting.append(frame_record(encode_event(text(3, "brain.Event:2") + message(10, text(1, "tritensor.utils.tensorboard")))))
        _start_watching(self)
        self.drain()

    def add(self, record: bytes) -> None:
        """Hand a framed record over."""
        if self.error is not None:
            self.raise_error()
        if self.pid == 0:  # after a fork
            self._open()
        self.waiting.append(record)
        self.size += len(record)
        if len(self.waiting) >= self.max_queue and not self.wake_requested:
            self.wake_requested = True
            _work.set()
        if len(self.waiting) > _MAX_RECORDS or self.size > _MAX_BYTES:  # the disk is slower than the program
            self.flush()

    def drain(self) -> None:
        """Write the records that wait. One is in the file as a whole, or the file ends before it; what could not be written is kept."""
        with self.lock:
            if self.closed or self.pid == 0:
                return
            self.wake_requested, self.size = False, 0
            some = [self.unwritten] if self.unwritten else []
            while self.waiting:
                some.append(self.waiting.popleft())
            self.unwritten = b"".join(some)
            self.next_flush = time.monotonic() + self.flush_secs
            rest = memoryview(self.unwritten)
            try:
                while rest:
                    rest = rest[os.write(self.file, rest) :]
            except OSError:  # a record cut off would hide all that come after it from tensorboard
                os.ftruncate(self.file, self.end)
                os.lseek(self.file, self.end, os.SEEK_SET)
                raise
            self.end += len(self.unwritten)
            self.unwritten = b""

    def flush(self) -> None:
        """Write the records that wait, and raise the thread's error if it had one."""
        try:
            self.drain()
        except OSError as error:
            self.error = error
        if self.error is not None:
            self.raise_error()

    def raise_error(self) -> None:
        error, self.error = self.error, None
        assert error is not None
        raise OSError(
            error.errno,
            f"SummaryWriter: {len(self.unwritten):,} bytes of records could not be written to {self.path}: {error.strerror}; "
            "they are kept, and the next flush tries again",
        ) from error

    def close(self) -> None:
        """Write the records that wait, and close the file."""
        if not self.closed and self.pid != 0:
            try:
                self.flush()
            finally:
                self.closed = True
                _sinks.discard(self)
                os.close(self.file)


_sinks: set[Sink] = set()
_work = threading.Event()
_thread: threading.Thread | None = None
_starting = locks.lock()


def _start_watching(sink: Sink) -> None:
    """Let the process's one thread write a file."""
    global _thread
    if "multiprocessing.process" in sys.modules and sys.modules["multiprocessing.process"].parent_process() is not None:
        from multiprocessing.util import Finalize  # a child of multiprocessing ends without atexit

        Finalize(sink, sink.close, exitpriority=10)
    _sinks.add(sink)
    _work.set()  # it may sleep for longer than this file may wait
    with _starting:
        if _thread is None or not _thread.is_alive():
            _thread = _Writer()
            _thread.start()


class _Writer(threading.Thread):
    """The thread that writes. `stop` ends it, as test suites do with threads of tests; records then wait for a flush, or for another file."""

    def __init__(self) -> None:
        super().__init__(name="tensorboard", daemon=True)
        self._ends = False

    def run(self) -> None:
        while not self._ends:
            _write_what_waits()

    def stop(self) -> None:
        """End when what waits has been written."""
        self._ends = True
        _work.set()
        self.join()


def _write_what_waits() -> None:
    """Sleep until a file asks to be written, and write it."""
    now = time.monotonic()
    # at the latest when a record has waited for flush_secs
    _work.wait(max(0.05, min((s.next_flush - now for s in list(_sinks)), default=60.0)))
    _work.clear()
    time.sleep(_GATHER)
    now = time.monotonic()
    for sink in list(_sinks):
        if sink.wake_requested or sink.next_flush <= now:
            try:
                sink.drain()
            except OSError as error:
                sink.error = error  # the next call of the program raises it
                sink.wake_requested = False


def _close_all() -> None:
    for sink in list(_sinks):
        sink.close()


def _reset_in_child() -> None:
    """Give up the files after a fork: they and their records are the parent's; a writer that goes on begins a file of its own."""
    global _thread, _work
    _thread, _work = None, threading.Event()
    for sink in list(_sinks):
        os.close(sink.file)
        sink.waiting.clear()
        sink.size, sink.pid, sink.error, sink.wake_requested = 0, 0, None, False
    _sinks.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_reset_in_child)


def _serialize(given: Any) -> bytes:
    """The bytes of a message: bytes, or an object with SerializeToString(). Raises TypeError for anything else."""
    if isinstance(given, bytes):
        return given
    make = getattr(given, "SerializeToString", None)
    if not callable(make):
        raise TypeError(f"FileWriter: {type(given).__name__} is no message; give a protocol buffer, or its bytes")
    found: bytes = make()
    return found


class FileWriter:
    """Writes events to a file of its own in a folder.

    Args:
        log_dir: the folder, made where it is not there.
        max_queue: so many records wake the thread that writes.
        flush_secs: the longest that a record waits, in seconds.
        filename_suffix: stands at the end of the file's name.

    Raises OSError where the folder or the file cannot be made; ValueError for arguments that make no sense.
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        folder = os.fspath(log_dir)
        if re.match(r"\w+://", folder):
            raise ArgumentError(f"SummaryWriter: log_dir={folder!r} is an address; give a folder of this machine, and copy or mount it")
        if "/" in filename_suffix:
            raise ArgumentError(f"SummaryWriter: filename_suffix={filename_suffix!r} has a slash; give the end of a file's name")
        if not isinstance(max_queue, int) or not flush_secs > 0:
            raise ArgumentError(f"SummaryWriter: max_queue={max_queue!r}, flush_secs={flush_secs!r}; give an integer and seconds above 0")
        self._sink = Sink(Path(folder), max_queue, float(flush_secs), filename_suffix)
        self._log_dir = folder
        self._finalizer = weakref.finalize(self, self._sink.close)
        self._finalizer.atexit = False  # _close_all closes all

    def get_logdir(self) -> str:
        """The folder."""
        return self._log_dir

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Add an Event: tensorboard's message object, or the bytes of one of its fields, such as a summary."""
        if isinstance(event, bytes):
            self.add_field(event, step, walltime)
            return
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._add(_serialize(event))

    def add_field(self, field: bytes, step: Any = None, walltime: float | None = None) -> None:
        """Add an event of one field, in bytes."""
        try:
            number = None if step is None else int(step)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"SummaryWriter: global_step is {step!r}; give an integer, or None") from None
        if number and not -_STEPS <= number < _STEPS:
            raise ArgumentError(f"SummaryWriter: global_step is {step!r}; an event holds an integer of 64 bits, give one of these")
        try:
            body = encode_event(field, number, walltime)
        except struct.error:
            raise TypeError(f"SummaryWriter: walltime is {walltime!r}; give seconds since 1970, as time.time() does, or None") from None
        self._add(body)

    def _add(self, body: bytes) -> None:
        if self._sink.closed:
            raise ValueError(f"FileWriter: {self._sink.path} is closed; call reopen(), or make another writer")
        self._sink.add(frame_record(body))

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a Summary: tensorboard's message object, or its bytes."""
        self.add_field(message(5, _serialize(summary)), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Add a GraphDef, in bytes or as tensorboard's message object; or with a RunMetadata beside it, in a pair."""
        graph, profile = graph_profile if isinstance(graph_profile, tuple) else (graph_profile, None)
        self.add_field(message(4, _serialize(graph)), None, walltime)
        if profile is not None:
            self.add_field(message(8, text(1, "step1"), message(2, _serialize(profile))), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Add a GraphDef, in bytes or as tensorboard's message object."""
        self.add_graph(graph, walltime)

    def add_start(self, step: int) -> None:
        """Note that a run begins at a step: what an earlier file of the folder has from there on is hidden."""
        self.add_field(message(7, integer(1, 1)), step)

    def flush(self) -> None:
        """Write everything that waits. Raises OSError where the disk does not take it."""
        self._sink.flush()

    def close(self) -> None:
        """Write everything that waits, and close the file."""
        self._sink.close()

    def reopen(self) -> None:
        """After `close`: go on in another file of the folder."""
        if self._sink.closed:
            old = self._sink
            self._sink = Sink(old.folder, old.max_queue, old.flush_secs, old.suffix)
            self._finalizer = weakref.finalize(self, self._sink.close)
            self._finalizer.atexit = False
