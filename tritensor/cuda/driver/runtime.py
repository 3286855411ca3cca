"""The real device: kernels and memory through the CUDA driver by cuda-python, nothing else (no gcc, no torch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.cuda.availability import gpus, reason
from tritensor.cuda.compiler.arguments import LaunchCall, Specialization, arrays_of, specialize
from tritensor.cuda.driver.calls import Driver
from tritensor.cuda.driver.devices import Devices
from tritensor.cuda.driver.kernels import Kernels, Launch
from tritensor.cuda.driver.launch_cache import KnownLaunches, form_of
from tritensor.cuda.driver.memory import PinnedRecord
from tritensor.cuda.driver.streams import StreamCalls
from tritensor.cuda.memory.caching_allocator import CachingAllocator
from tritensor.cuda.memory.storage import Storage
from tritensor.cuda.runtime.interface import Properties
from tritensor.cuda.streams import hidden_waits
from tritensor.cuda.streams.capture import refusal
from tritensor.ground import device_errors
from tritensor.ground.device import gpu
from tritensor.ground.errors import DeviceError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here


class Place:
    """Where a thread's launches and allocations go: a GPU, a stream of it, a pool. One object for each, to be compared by `is`."""

    __slots__ = ("allocator", "device", "index", "pool", "stream")

    def __init__(self, allocator: CachingAllocator, index: int, stream: int, pool: int | None) -> None:
        self.allocator = allocator
        self.index = index
        self.stream = stream
        self.pool = pool
        self.device = gpu(index)


class DriverRuntime(StreamCalls):
    """Serves device cuda through the driver. `api` is the module cuda.bindings.driver."""

    def __init__(self, api: Any = None) -> None:
        if api is None and not gpus():
            raise DeviceError(f"cuda: {reason()}")
        self.driver = Driver(api)
        self.devices = Devices(self.driver)
        super().__init__()
        self.kernels = Kernels(self.devices)
        self._places: dict[tuple[int, int, int | None], Place] = {}
        self._error_records: dict[int, PinnedRecord] = {}
        self._known = KnownLaunches()  # of calls that are not replayed
        self._lock = locks.lock()

    # devices
    def device_count(self) -> int:
        return self.devices.count

    def device_name(self, index: int) -> str:
        return self.devices.properties(index).name

    def capability(self, index: int) -> tuple[int, int]:
        return self.devices.properties(index).capability

    def properties(self, index: int) -> Properties:
        return self.devices.properties(index)

    def place(self, index: int) -> Place:
        """Make a GPU the one that this thread's calls go to; what they go to there."""
        self.devices.enter(index)
        stream = here.streams.get(index, 0)
        allocator = self.allocator(index)
        key = (index, stream, allocator.pool_of(stream))
        found = self._places.get(key)
        if found is None:
            with self._lock:
                found = self._places.get(key)
                if found is None:
                    allocator.note(stream)
                    found = Place(allocator, *key)
                    if found.pool is None:  # a graph's pool is a new one each time
                        self._places[key] = found
        here.place = found
        return found

    # deferred errors
    def error_storage(self, index: int) -> Storage:
        found = self._error_records.get(index)
        if found is None:
            self.enter(index)
            found = self._error_records[index] = PinnedRecord(self, device_errors.NBYTES, index)
        return found

    def check_errors(self, index: int) -> None:
        record = self._error_records.get(index)
        if record is not None:
            device_errors.check(record)

    def synchronize(self, index: int) -> None:
        self.enter(index)
        if here.capture is not None:
            here.capture.refuse_wait(index)
        if self.captured(index):
            raise refusal(
                "waits for the whole GPU, which would break off the capture that another thread has begun there",
                "wait for streams or events instead, or for the other thread",
            )
        hidden_waits.note("synchronize")
        self.driver.call("cuCtxSynchronize")
        self.check_errors(index)

    # kernels
    def launch(self, call: LaunchCall) -> None:
        """Queue a kernel on the current stream of the GPU that holds its arrays; returns before it has run."""
        form = form_of(call)
        known = None if form is None else self._known.find(form)
        if known is not None and form is not None:
            made = known.take(form.numbers)
            self._fire(made, known.ordered(form.arrays))
            known.idle.append(made)
            return
        spec, typed = specialize(call)
        arrays = arrays_of(typed)
        made = self._make_launch(spec, typed, (arrays[0].storage.device.index or 0) if arrays else here.index, call.grid)
        self._fire(made, arrays)
        if form is not None:
            self._known.add(call.kernel, made, form, typed)

    def _fire(self, made: Launch, arrays: Sequence[Any]) -> None:
        """Send a launch to the current stream of its GPU, with the addresses of these arrays."""
        index = made.loaded.index
        place = here.place
        if place is None or place.index != index:
            place = self.place(index)
        # while only one stream has had memory, none can be used out of order
        if place.allocator.several:
            self.mark(arrays, place)
        pointers = [x.pointer for x in arrays]
        scratch = made.scratch()
        if scratch:
            # Freed when this returns: in the stream's order, so the next owner waits for the kernel.
            area = self.allocate(scratch, index)
            pointers.append(area.pointer)
        made.fire(pointers, place.stream)

    def _make_launch(self, spec: Specialization, typed: list[tuple[str, Any]], index: int, grid: tuple[int, ...]) -> Launch:
        loaded = self.kernels.get(spec, index)
        return Launch(self.kernels, loaded, grid, *self.kernels.lower(loaded, typed))

    def prepare(self, call: LaunchCall, later: dict[int, Any] | None = None) -> tuple[Launch, list[Any]]:
        """A launch with everything but addresses, and its arrays (described ones too) in the kernel's order.

        `later` holds, by id, numbers among the arguments that each firing gives anew, in 8 bytes as addresses are, and what stands for
        them among the arrays.
        """
        spec, typed = specialize(call)
        arrays = arrays_of(typed)
        index = (arrays[0].storage.device.index or 0) if arrays else here.index
        if later:
            typed = [("*" + kind, later[id(v)]) if id(v) in later else (kind, v) for kind, v in typed]
        return self._make_launch(spec, typed, index, call.grid), arrays_of(typed)

    def mark(self, arrays: Sequence[Any], place: Place) -> None:
        """Note for each array whose memory belongs to another stream that this place's stream uses it now."""
        for x in arrays:
            free_list = getattr(x.storage, "free_list", None)
            if free_list is not None and free_list.stream != place.stream:
                self.record_stream(x.storage, place.stream)
