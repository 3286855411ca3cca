"""Streams, events and graphs of the emulated device, where everything runs at once: a capture keeps the calls, a replay makes them."""

from __future__ import annotations

import copy
import itertools
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall, is_array
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.memory.storage import Storage
from tritensor.cuda.streams import hidden_waits
from tritensor.ground.errors import CaptureError
from tritensor.ground.thread_state import here, stream_of


class Borrowed(Storage):
    """The place of another storage's memory, which it does not keep alive: a graph knows addresses only."""

    __slots__ = ()

    def __init__(self, storage: Storage) -> None:
        self.pointer, self.nbytes, self.device = storage.pointer, storage.nbytes, storage.device


def _keep_argument(value: Any, storages: list[Storage]) -> Any:
    """An argument of a launch as a graph keeps it: arrays by their addresses. Their storages are added to the list."""
    if isinstance(value, tuple):
        items = [_keep_argument(v, storages) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is TensorDescriptor:
        return value.over(_keep_argument(value.array, storages))
    if not is_array(value):
        return value
    storages.append(value.storage)
    # not the caller's array: a graph must neither keep its memory nor see it change
    array = copy.copy(value)
    array.storage = Borrowed(value.storage)
    return array


class _Recording:
    """The calls of one capture. `work` counts what each of its streams was given, `joined` how much of it the first stream waits for."""

    def __init__(self, first: tuple[int, int]) -> None:
        self.first = first
        self.calls: list[tuple[str, Callable[[], None], list[Any]]] = []
        self.work = {first: 0}
        self.joined: dict[tuple[int, int], int] = {}


class _Event:
    """When it was recorded last (ns), and where: in a recording after so much work of a stream."""

    def __init__(self, timing: bool) -> None:
        self.timing = timing
        self.at: int | None = None
        self.recording: _Recording | None = None
        self.place: tuple[tuple[int, int], int] = ((0, 0), 0)


class EmulatedStreams:
    """The part of EmulatedRuntime that orders work, and that keeps the memory of private pools."""

    _memory: dict[int, np.ndarray]

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._recordings: dict[tuple[int, int], _Recording] = {}
        self._events: dict[int, _Event] = {}
        self._graphs: dict[int, _Recording] = {}
        self._routes: dict[tuple[int, int], int] = {}
        self._pools: dict[int, list[np.ndarray]] = {}  # blocks that were freed, kept for the graph
        self._pool_of: dict[int, int] = {}  # pointer of a block: its pool

    def check_errors(self, index: int) -> None:
        """Raise what a kernel has reported."""
        raise NotImplementedError

    # memory
    def block_made(self, pointer: int, index: int) -> None:
        """A block was allocated: it belongs to the pool, if any, that serves the current stream."""
        pool = self._routes.get((index, stream_of(index)))
        if pool is not None:
            self._pool_of[pointer] = pool

    def block_freed(self, pointer: int, block: np.ndarray) -> None:
        """A block was freed: a pool keeps it, and gives it to nobody else."""
        kept = self._pools.get(self._pool_of.pop(pointer, 0))
        if kept is not None:
            kept.append(block)

    def pool_create(self, index: int) -> int:
        pool = next(self._numbers)
        self._pools[pool] = []
        return pool

    def pool_release(self, index: int, pool: int) -> None:
        del self._pools[pool]

    def pool_use(self, index: int, pool: int, stream: int) -> None:
        self._routes[index, stream] = pool

    def pool_leave(self, index: int, stream: int) -> None:
        self._routes.pop((index, stream), None)

    def record_stream(self, storage: Storage, stream: int) -> None:
        """Nothing is handed out twice here, and everything runs at once."""

    # streams
    def stream_priorities(self, index: int) -> tuple[int, int]:
        return (0, -5)

    def stream_create(self, index: int, priority: int) -> int:
        return next(self._numbers)

    def stream_synchronize(self, index: int, stream: int) -> None:
        self._refuse_captured(index, stream)
        hidden_waits.note("stream synchronize")
        self.check_errors(index)

    def stream_query(self, index: int, stream: int) -> bool:
        self._refuse_captured(index, stream)
        return True

    def stream_wait_event(self, index: int, stream: int, event: int) -> None:
        found = self._events[event]
        recording, here_ = found.recording, (index, stream)
        if recording is None:
            return
        if here_ == recording.first:
            recording.joined[found.place[0]] = found.place[1]
        elif here_ not in recording.work:
            self._recordings[here_] = recording
            recording.work[here_] = 1

    def _refuse_captured(self, index: int, stream: int) -> None:
        if (index, stream) in self._recordings:
            raise CaptureError("the emulated driver: this is not possible for a stream that is captured")

    # events
    def event_create(self, index: int, timing: bool, blocking: bool) -> int:
        number = next(self._numbers)
        self._events[number] = _Event(timing)
        return number

    def event_destroy(self, index: int, event: int) -> None:
        del self._events[event]

    def event_record(self, index: int, event: int, stream: int) -> None:
        found = self._events[event]
        recording = found.recording = self._recordings.get((index, stream))
        found.at = time.perf_counter_ns() if recording is None else None
        if recording is not None:
            found.place = ((index, stream), recording.work[index, stream])

    def _event_outside_captures(self, event: int) -> _Event:
        found = self._events[event]
        if found.recording is not None:
            raise CaptureError("the emulated driver: an event that was recorded in a capture passes at no time")
        return found

    def event_query(self, index: int, event: int) -> bool:
        self._event_outside_captures(event)
        return True

    def event_synchronize(self, index: int, event: int) -> None:
        self._event_outside_captures(event)
        hidden_waits.note("event synchronize")
        self.check_errors(index)

    def event_elapsed(self, index: int, start: int, end: int) -> float:
        first, last = self._event_outside_captures(start).at, self._event_outside_captures(end).at
        assert first is not None
        assert last is not None
        return (last - first) / 1e6

    # graphs
    def recorded(self, index: int, what: str, call: Callable[[], None], storages: Iterable[Storage]) -> bool:
        """Keep a call for the capture that the current stream of a GPU is in; False where it is in none.

        `storages`: the memory the call uses, which a replay asks to be there still.
        """
        if not self._recordings:
            return False
        recording = self._recordings.get((index, stream_of(index)))
        if recording is None:
            return False
        recording.work[index, stream_of(index)] += 1
        blocks = [self._memory.get(s.pointer) for s in storages]
        recording.calls.append((what, call, [weakref.ref(b) for b in blocks if b is not None]))
        return True

    def recorded_launch(self, call: LaunchCall) -> bool:
        """Keep a launch for the capture that the current stream of its GPU is in; False where it is in none."""
        if not self._recordings:
            return False
        storages: list[Storage] = []
        kept = call.given(_keep_argument(call.args, storages), {k: _keep_argument(v, storages) for k, v in call.named.items()})
        index = (storages[0].device.index or 0) if storages else here.index
        return self.recorded(index, f"kernel {call.kernel.fn.__name__}", partial(self.launch, kept), storages)

    def launch(self, call: LaunchCall) -> None:
        """Run a kernel."""
        raise NotImplementedError

    def capture_begin(self, index: int, stream: int, mode: str = "relaxed") -> None:
        if not stream or (index, stream) in self._recordings:
            raise CaptureError("the emulated driver: the default stream and one that is captured already cannot be captured")
        self._recordings[index, stream] = _Recording((index, stream))

    def _end(self, index: int, stream: int) -> _Recording:
        recording = self._recordings[index, stream]
        # the streams that joined are free again as well
        for one in recording.work:
            del self._recordings[one]
        for event in self._events.values():
            if event.recording is recording:
                event.place = ((0, 0), 0)
        return recording

    def capture_end(self, index: int, stream: int) -> tuple[int, int]:
        recording = self._end(index, stream)
        loose = [s for s, n in recording.work.items() if s != recording.first and recording.joined.get(s, 0) < n]
        if loose:
            raise CaptureError(
                f"the emulated driver: streams {loose} took part in the capture and were not joined: let the captured stream wait for them"
            )
        number = next(self._numbers)
        self._graphs[number] = recording
        return number, len(recording.calls)

    def capture_abandon(self, index: int, stream: int) -> None:
        self._end(index, stream)

    def graph_launch(self, index: int, graph: int, stream: int) -> None:
        for what, call, blocks in self._graphs[graph].calls:
            if any(b() is None for b in blocks):
                raise CaptureError(
                    f"replay: {what}: memory that it used in the capture was freed since; keep the tensors that a graph reads and writes alive"
                )
            call()

    def graph_destroy(self, index: int, graph: int) -> None:
        del self._graphs[graph]

    def fill_word(self, index: int, storage: Any, offset: int, value: int, stream: int) -> None:
        self.copy_to_device(storage, offset, np.array([value], np.uint32))

    def copy_to_device(self, storage: Any, offset: int, source: np.ndarray, wait: bool = True) -> None:
        """Host to device."""
        raise NotImplementedError

    # other GPUs
    def can_access_peer(self, index: int, other: int) -> bool:
        return index != other
