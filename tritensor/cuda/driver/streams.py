"""Streams, events and graphs as the driver has them: one method per call, raw handles in and out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, ClassVar

from tritensor.cuda.driver.calls import GONE, NOT_READY
from tritensor.cuda.driver.memory import MemoryCalls
from tritensor.cuda.streams import hidden_waits
from tritensor.ground.errors import CaptureError

# PyTorch's names for what a capture forbids to the threads of the process.
MODES = {
    "global": "CU_STREAM_CAPTURE_MODE_GLOBAL",
    "thread_local": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
    "relaxed": "CU_STREAM_CAPTURE_MODE_RELAXED",
}


class StreamCalls(MemoryCalls):
    """The part of DriverRuntime that orders work."""

    # Captures in progress, by GPU and stream: what their threads' mode was before (None: it stayed); one table for the process.
    _before_capture: ClassVar[dict[tuple[int, int], Any]] = {}
    _elapsed: Callable[..., int] | None = None

    def enter(self, index: int) -> None:
        """Make a GPU's context current on this thread."""
        self.devices.enter(index)

    # streams
    def stream_priorities(self, index: int) -> tuple[int, int]:
        """(lowest, highest) priority of streams; the highest is the smaller number."""
        self.enter(index)
        low, high = self.driver.call("cuCtxGetStreamPriorityRange")
        return int(low), int(high)

    def stream_create(self, index: int, priority: int) -> int:
        """A stream that the default stream does not wait for, and that does not wait for it."""
        self.enter(index)
        flags = self.driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING.value
        return int(self.driver.call("cuStreamCreateWithPriority", flags, priority))

    def stream_synchronize(self, index: int, stream: int) -> None:
        """Wait for a stream; an error that a kernel reported is raised."""
        self.enter(index)
        hidden_waits.note("stream synchronize")
        self.driver.call("cuStreamSynchronize", stream)
        self.check_errors(index)

    def stream_query(self, index: int, stream: int) -> bool:
        self.enter(index)
        return self._is_done("cuStreamQuery", stream)

    def stream_wait_event(self, index: int, stream: int, event: int) -> None:
        self.enter(index)
        self.driver.call("cuStreamWaitEvent", stream, event, 0)

    def _is_done(self, name: str, handle: int) -> bool:
        return self.driver.status(name, handle, answers=NOT_READY)[0] == "CUDA_SUCCESS"

    # events
    def event_create(self, index: int, timing: bool, blocking: bool) -> int:
        self.enter(index)
        kinds = self.driver.api.CUevent_flags
        flags = 0 if timing else kinds.CU_EVENT_DISABLE_TIMING.value
        return int(self.driver.call("cuEventCreate", flags | (kinds.CU_EVENT_BLOCKING_SYNC.value if blocking else 0)))

    def event_destroy(self, index: int, event: int) -> None:
        self._destroy("cuEventDestroy", index, event)

    def _destroy(self, name: str, index: int, handle: int) -> None:
        """Give a handle back. Where the context is lost or the driver gone, the handle is gone with it."""
        # a finalizer must not raise for a GPU that is gone
        if self.driver.lost:
            return
        with self.devices.visiting():
            self.enter(index)
            self.driver.status(name, handle, answers=GONE)

    def event_record(self, index: int, event: int, stream: int) -> None:
        self.enter(index)
        self.driver.call("cuEventRecord", event, stream)

    def event_query(self, index: int, event: int) -> bool:
        self.enter(index)
        return self._is_done("cuEventQuery", event)

    def event_synchronize(self, index: int, event: int) -> None:
        """Wait for an event; an error that a kernel reported is raised."""
        self.enter(index)
        hidden_waits.note("event synchronize")
        self.driver.call("cuEventSynchronize", event)
        self.check_errors(index)

    def event_elapsed(self, index: int, start: int, end: int) -> float:
        """Milliseconds between two events that have passed."""
        self.enter(index)
        if self._elapsed is None:  # cuda-python 13 calls a form of it that came with CUDA 12.8
            pointer = ctypes.c_void_p
            self._elapsed = self.driver.function("cuEventElapsedTime", 2000, pointer, pointer, pointer)
        found = ctypes.c_float()
        status = self.driver.api.CUresult(self._elapsed(ctypes.addressof(found), start, end))
        if status != self.driver.ok:
            raise self.driver.error("cuEventElapsedTime", status)
        return found.value

    # graphs
    def capture_begin(self, index: int, stream: int, mode: str = "relaxed") -> None:
        """Take up what is queued on a stream, instead of running it. `mode` is for other threads: this one, whose calls that break a
        capture were refused before they come here, may load kernels and allocate memory."""
        self.enter(index)
        modes = self.driver.api.CUstreamCaptureMode
        self.driver.call("cuStreamBeginCapture", stream, getattr(modes, MODES[mode]))
        self._before_capture[index, stream] = None
        if mode != "relaxed":
            try:
                before = self.driver.call("cuThreadExchangeStreamCaptureMode", modes.CU_STREAM_CAPTURE_MODE_RELAXED)
            except BaseException:
                self.capture_abandon(index, stream)
                raise
            self._before_capture[index, stream] = before

    def _end_capture(self, index: int, stream: int) -> tuple[str, Any]:
        """The driver's status and graph; the thread's mode is what it was before."""
        self.enter(index)
        try:
            before = self._before_capture.get((index, stream))
            if before is not None:
                self.driver.call("cuThreadExchangeStreamCaptureMode", before)
        finally:
            found = self.driver.status("cuStreamEndCapture", stream)
            self._before_capture.pop((index, stream), None)
        return found

    def captured(self, index: int) -> bool:
        """Whether any thread captures on a GPU: the driver then breaks the capture off when the whole GPU is waited for."""
        return any([i == index for i, _ in tuple(self._before_capture)])

    def capture_end(self, index: int, stream: int) -> tuple[int, int]:
        """(graph, ready to be launched; number of its nodes). The capture has ended even if this raises."""
        code, recorded = self._end_capture(index, stream)
        if code != "CUDA_SUCCESS":
            raise self.driver.error("cuStreamEndCapture", getattr(self.driver.api.CUresult, code))
        try:
            _, nodes = self.driver.call("cuGraphGetNodes", recorded)
            return int(self.driver.call("cuGraphInstantiate", recorded, 0)), int(nodes)
        finally:
            self.driver.call("cuGraphDestroy", recorded)

    def capture_abandon(self, index: int, stream: int) -> None:
        """End a capture whose work is not wanted. A capture that the driver has broken off already is fine."""
        code, recorded = self._end_capture(index, stream)
        if code == "CUDA_SUCCESS" and int(recorded):
            self.driver.call("cuGraphDestroy", recorded)
        elif code != "CUDA_SUCCESS" and "CAPTURE" not in code and code != "CUDA_ERROR_ILLEGAL_STATE":
            raise self.driver.error("cuStreamEndCapture", getattr(self.driver.api.CUresult, code))

    def graph_launch(self, index: int, graph: int, stream: int) -> None:
        self.enter(index)
        self.driver.call("cuGraphLaunch", graph, stream)

    def graph_destroy(self, index: int, graph: int) -> None:
        self._destroy("cuGraphExecDestroy", index, graph)

    def fill_word(self, index: int, storage: Any, offset: int, value: int, stream: int) -> None:
        """Set four bytes of device memory to an unsigned number, in stream order."""
        self.enter(index)
        self.driver.call("cuMemsetD32Async", storage.pointer + offset, value, 1, stream)

    # private pools
    def pool_create(self, index: int) -> int:
        """A pool of memory for graphs."""
        return self.allocator(index).private_pool()

    def pool_release(self, index: int, pool: int) -> None:
        """Nobody uses the pool any longer; what is live in it stays. Where the context is lost, the memory is gone with it."""
        if not self.driver.lost:
            with self.devices.visiting():
                self.allocator(index).release_pool(pool)

    def pool_use(self, index: int, pool: int, stream: int) -> None:
        """From now on memory asked for on a stream, which is captured or about to be, comes from the pool. Raises CaptureError for a
        stream that another thread captures."""
        if self.allocator(index).pool_of(stream) is not None:
            raise CaptureError(
                f"capture: another thread is capturing stream {stream:#x} of cuda:{index}; give each capture a stream of its own"
            )
        self.allocator(index).capture_begin(pool, stream)

    def pool_leave(self, index: int, stream: int) -> None:
        """Memory asked for on a stream comes from where everyone's does again."""
        self.allocator(index).capture_end(stream)

    # other GPUs
    def can_access_peer(self, index: int, other: int) -> bool:
        """Whether a GPU can reach another's memory."""
        if index == other:
            return False
        handles = [self.driver.call("cuDeviceGet", i) for i in (index, other)]
        return bool(self.driver.call("cuDeviceCanAccessPeer", *handles))
