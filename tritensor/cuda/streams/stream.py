"""Streams and events: PyTorch's torch.cuda.Stream, Event, stream() and their kin, on the runtime in use.

The current stream is this thread's own, one for each GPU. Streams come from a store of 32 for each GPU and priority, handed out in
turn and never destroyed, so that memory and graphs may name them for as long as the process lives.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from tritensor.cuda.devices import index_of
from tritensor.cuda.runtime import active
from tritensor.cuda.runtime.active import runtime
from tritensor.cuda.streams.capture import capturing, refusal
from tritensor.ground import thread_state
from tritensor.ground.device import device as Device
from tritensor.ground.device import gpu
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here, run_waiting, stream_of

KEPT = 32  # streams for each GPU and priority: what PyTorch has
_store: dict[tuple[int, int], tuple[list[int], itertools.count[int]]] = {}
_lock = locks.lock()


def _forget_streams() -> None:
    """Another runtime serves the device: the streams of the one before mean nothing to it."""
    _store.clear()
    here.streams.clear()
    here.place = None


active.when_changed.append(_forget_streams)


def _next_handle(index: int, priority: int) -> int:
    """The handle of the next stream of a GPU and priority, made while there are less than 32."""
    with _lock:
        handles, turn = _store.setdefault((index, priority), ([], itertools.count()))
        if len(handles) < KEPT:
            handles.append(runtime().stream_create(index, priority))
            return handles[-1]
        return handles[next(turn) % KEPT]


class Stream:
    """A queue of work on a GPU: what one stream is given runs in order, streams among each other in any order.

    Args:
        device: the GPU; None is the current one.
        priority: 0, or below it for work that goes first; clamped to what the GPU has (see `priority_range`).
    """

    __slots__ = ("__weakref__", "cuda_stream", "device_index", "priority")

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        index = index_of(device)
        low, high = runtime().stream_priorities(index)
        self.device_index = index
        # the highest priority is the smaller number; PyTorch clamps, too, rather than refuse
        self.priority = max(min(int(priority), low), high)
        self.cuda_stream = _next_handle(index, self.priority)

    @classmethod
    def of(cls, index: int, handle: int, priority: int = 0) -> Stream:
        """The stream of a raw handle."""
        made = cls.__new__(cls)
        made.device_index, made.cuda_stream, made.priority = index, handle, priority
        return made

    @staticmethod
    def priority_range(device: Any = None) -> tuple[int, int]:
        """(lowest, highest) priority of a GPU; the highest is the smaller number."""
        return runtime().stream_priorities(index_of(device))

    @property
    def device(self) -> Device:
        """The GPU that the stream belongs to."""
        return gpu(self.device_index)

    @property
    def stream_id(self) -> int:
        """The driver's handle, as a number."""
        return self.cuda_stream

    def query(self) -> bool:
        """Whether all work it was given is done. Raises CaptureError while it is captured."""
        run_waiting()
        _refuse_wait(self.device_index, self.cuda_stream)
        return runtime().stream_query(self.device_index, self.cuda_stream)

    def synchronize(self) -> None:
        """Wait for all work it was given. Raises what a kernel has reported, and CaptureError while it is captured."""
        run_waiting()
        _refuse_wait(self.device_index, self.cuda_stream)
        runtime().stream_synchronize(self.device_index, self.cuda_stream)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one if None) after the work it was given so far; returns the event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let work that is given from now on wait for an event. The host goes on."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work that is given from now on wait for what another stream was given so far. The host goes on."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        # a stream is shared by threads and may be entered twice: what was current before belongs to the block, not to the stream
        _open_blocks().append(StreamContext(self))
        _open_blocks()[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        _open_blocks().pop().__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (other.device_index, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        name = "default" if not self.cuda_stream else f"cuda_stream={self.cuda_stream:#x}, priority={self.priority}"
        return f"Stream(device=cuda:{self.device_index}, {name})"


class ExternalStream(Stream):
    """A stream that another library has made, by its handle. It must live as long as work, memory or graphs of ours use it."""

    __slots__ = ()

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self.device_index, self.cuda_stream, self.priority = index_of(device), int(stream_ptr), 0


_local = threading.local()


def _open_blocks() -> list[StreamContext]:
    """The `with stream:` blocks that this thread is in."""
    if not hasattr(_local, "entered"):
        _local.entered = []
    return _local.entered


def _refuse_wait(index: int, stream: int | None) -> None:
    """A wait that a capture forbids is refused before the driver sees it, which would end the capture."""
    if here.capture is not None:
        here.capture.refuse_wait(index, stream)


class Event:
    """A mark in a stream: whether the work before it is done, and when it was.

    Args:
        enable_timing: keep the time, for `elapsed_time`. Without it an event costs the GPU less.
        blocking: let `synchronize` sleep rather than spin.

    Raises:
        ValueError: interprocess=True, which is not supported.
    """

    __slots__ = ("__weakref__", "_blocking", "_capture", "_handle", "_index", "_runtime", "_timing")

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise ValueError("Event: interprocess=True is not supported; share the tensor's data and synchronize in each process")
        self._timing, self._blocking = bool(enable_timing), bool(blocking)
        self._index, self._handle = -1, 0
        self._capture: Any = None

    @property
    def cuda_event(self) -> int:
        """The raw handle; 0 before it is recorded."""
        return self._handle

    @property
    def device(self) -> Device | None:
        """The GPU it was recorded on, or None."""
        return gpu(self._index) if self._handle else None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the end of what a stream (None: the current one) was given so far. A mark set before is forgotten.

        Raises ValueError for a stream of another GPU than the one it was recorded on first.
        """
        run_waiting()
        index, handle = (here.index, stream_of(here.index)) if stream is None else (stream.device_index, stream.cuda_stream)
        if not self._handle:
            self._runtime = runtime()  # which the event is destroyed by, whatever serves the device then
            self._handle = self._runtime.event_create(index, self._timing, self._blocking)
            self._index = index
        elif index != self._index:
            raise ValueError(
                f"Event.record: it was recorded on cuda:{self._index} first and stays there; make another one for cuda:{index}"
            )
        runtime().event_record(index, self._handle, handle)
        capture = here.capture
        self._capture = capture if capture is not None and (index, handle) in capture.streams else None

    def wait(self, stream: Stream | None = None) -> None:
        """Let what a stream (None: the current one) is given from now on wait for the mark. Without a mark nothing happens.

        A stream that waits for a mark set in a capture is captured from then on. Raises CaptureError where captured work would
        depend on other work, or the other way round.
        """
        if not self._handle:
            return
        run_waiting()
        index, handle = (here.index, stream_of(here.index)) if stream is None else (stream.device_index, stream.cuda_stream)
        capture = here.capture
        if self._capture is not None and self._capture is not capture:
            raise refusal("waits for an event recorded in a capture that is over", "record it anew, after replay()", during=False)
        captured = capture is not None and (index, handle) in capture.streams
        if captured and self._capture is None:
            raise refusal("lets captured work wait for work outside of the capture", "wait for it before the capture begins")
        runtime().stream_wait_event(index, handle, self._handle)
        if self._capture is not None:
            capture.join(index, handle)

    def query(self) -> bool:
        """Whether the work before the mark is done; True without a mark."""
        self._refuse_captured("query")
        return not self._handle or runtime().event_query(self._index, self._handle)

    def synchronize(self) -> None:
        """Wait until the work before the mark is done. Raises what a kernel has reported."""
        self._refuse_captured("synchronize")
        if self._handle:
            runtime().event_synchronize(self._index, self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another one.

        Raises ValueError where one of them has no mark or keeps no time, RuntimeError where one has not been reached yet.
        """
        for which, event in (("the first event", self), ("the second event", end_event)):
            if not event._timing:
                raise ValueError(f"elapsed_time: {which} keeps no time; make it with Event(enable_timing=True)")
            if not event._handle:
                raise ValueError(f"elapsed_time: {which} was not recorded; call record() before and after the work to be timed")
        if self._index != end_event._index:
            raise ValueError(f"elapsed_time: the events are of two GPUs, cuda:{self._index} and cuda:{end_event._index}")
        if not (self.query() and end_event.query()):
            raise RuntimeError("elapsed_time: the GPU has not reached both events yet; call synchronize() on the second one first")
        return runtime().event_elapsed(self._index, self._handle, end_event._handle)

    def _refuse_captured(self, name: str) -> None:
        if self._capture is not None:
            raise refusal(
                f"Event.{name}: asks for an event that was recorded in a capture, which passes at no time",
                "record another one around replay()",
                during=self._capture is here.capture,
            )

    def __del__(self) -> None:
        # an event whose constructor raised has no handle
        if getattr(self, "_handle", 0):
            self._runtime.event_destroy(self._index, self._handle)

    def __repr__(self) -> str:
        return f"Event(cuda_event={self._handle:#x}, device={self.device})" if self._handle else "Event(not recorded)"


class StreamContext:
    """`with tt.cuda.stream(s): ...`: within the block s is the current stream, and its GPU the current one. None: no change."""

    __slots__ = ("_before", "stream")

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[tuple[int, int]] = []

    def __enter__(self) -> None:
        s = self.stream
        if s is not None:
            self._before.append((here.index, stream_of(s.device_index)))
            thread_state.set_stream(s.device_index, s.cuda_stream)
            here.index = s.device_index

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            here.index, handle = self._before.pop()
            thread_state.set_stream(self.stream.device_index, handle)


def stream(stream: Stream | None) -> StreamContext:
    """Make a stream (and its GPU) current within a `with` block; None changes nothing."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Make a stream, and its GPU, current on this thread. `with stream(s):` is to be preferred."""
    if stream is not None:
        thread_state.set_stream(stream.device_index, stream.cuda_stream)
        here.index = stream.device_index


def current_stream(device: Any = None) -> Stream:
    """This thread's current stream on a GPU (None: the current GPU)."""
    index = index_of(device)
    return Stream.of(index, stream_of(index))


def default_stream(device: Any = None) -> Stream:
    """The stream on which work runs where no other is chosen."""
    return Stream.of(index_of(device), 0)


def synchronize(device: Any = None) -> None:
    """Wait until all work queued on a GPU is done; errors of kernels launched before surface here.

    Raises IndexError for a bad index that a kernel met, LaunchError for a kernel that failed, CaptureError in a capture.
    """
    run_waiting()
    index = index_of(device)
    _refuse_wait(index, None)
    runtime().synchronize(index)


def is_current_stream_capturing() -> bool:
    """Whether what this thread queues on the current GPU goes into a graph instead of running."""
    return capturing(here.index) is not None
