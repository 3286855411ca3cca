"""The real device: kernels and memory through the CUDA driver by cuda-python, nothing else (no gcc, no torch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.cuda.availability import gpus, reason
from tritensor.cuda.compiler.arguments import Specialization, arrays_of, specialize
from tritensor.cuda.driver.calls import Driver
from tritensor.cuda.driver.devices import Devices
from tritensor.cuda.driver.kernels import Kernels, Launch
from tritensor.cuda.driver.launch_cache import KnownLaunches, form_of
from tritensor.cuda.driver.memory import Memory, PinnedRecord
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
        self.memory = Memory(self.devices)
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

    def enter(self, index: int) -> None:
        """Make a GPU's context current on this thread."""
        self.devices.enter(index)

    def place(self, index: int) -> Place:
        """Make a GPU the one that this thread's calls go to; what they go to there."""
        self.devices.enter(index)
        stream = here.streams.get(index, 0)
        allocator = self.memory.allocator(index)
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

    # memory
    def allocate(self, nbytes: int, index: int) -> Storage:
        return self.memory.allocate(nbytes, index)

    def memory_allocated(self, index: int) -> int:
        return self.memory.allocator(index).live

    def memory_info(self, index: int) -> tuple[int, int]:
        return self.memory.allocator(index).source.info()

    def allocators(self) -> list[CachingAllocator]:
        return self.memory.made()

    def allocator(self, index: int) -> CachingAllocator:
        return self.memory.allocator(index)

    def empty_cache(self) -> None:
        for a in self.memory.made():
            a.empty_cache()

    def pinned_allocate(self, nbytes: int) -> int:
        return self.memory.pinned_allocate(nbytes)

    def pinned_free(self, pointer: int) -> None:
        self.memory.pinned_free(pointer)

    def copy_to_device(self, storage: Storage, offset: int, source: np.ndarray, wait: bool = True) -> None:
        """Queue a copy. Pageable memory may be changed when this returns; pinned memory only with `wait`."""
        if source.nbytes == 0:
            return
        index = storage.device.index or 0
        if wait and here.capture is not None:
            here.capture.refuse_write(index)
        stream = self.memory.copy_to_device(storage, offset, source)
        if wait:
            hidden_waits.note("copy to device")
            self._wait(index, stream)

    def copy_to_host(self, into: np.ndarray, storage: Storage, offset: int, wait: bool = True) -> None:
        if into.nbytes == 0:
            return
        index = storage.device.index or 0
        if here.capture is not None:
            here.capture.refuse_read(index)
        stream = self.memory.copy_to_host(into, storage, offset)
        if wait:
            hidden_waits.note("copy to host")
            self._wait(index, stream)

    def _wait(self, index: int, stream: int) -> None:
        """Wait for a stream, and raise what kernels have reported."""
        self.driver.call("cuStreamSynchronize", stream)
        self.check_errors(index)

    def copy_on_device(self, target: Storage, target_offset: int, source: Storage, source_offset: int, nbytes: int) -> None:
        if nbytes:
            self.memory.copy_on_device(target, target_offset, source, source_offset, nbytes)

    def record_stream(self, storage: Storage, stream: int) -> None:
        """Keep the memory of a storage from being used again before the work queued on `stream` when it dies is done."""
        self.memory.used_on(storage, stream)

    # deferred errors
    def error_storage(self, index: int) -> Storage:
        found = self._error_records.get(index)
        if found is None:
            self.enter(index)
            found = self._error_records[index] = PinnedRecord(self.memory, device_errors.NBYTES, index)
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
    def launch(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any],
        num_warps: int, num_stages: int, options: tuple[tuple[str, Any], ...] = (),
    ) -> None:  # fmt: skip
        """Queue a kernel on the current stream of the GPU that holds its arrays; returns before it has run."""
        form = form_of(kernel, grid, args, constexprs, num_warps, num_stages, options)
        known = None if form is None else self._known.find(form)
        if known is not None and form is not None:
            made = known.take(form.numbers)
            self._fire(made, known.ordered(form.arrays))
            known.idle.append(made)
            return
        spec, typed = specialize(kernel, args, constexprs, num_warps, num_stages, options)
        arrays = arrays_of(typed)
        made = self._made(spec, typed, (arrays[0].storage.device.index or 0) if arrays else here.index, grid)
        self._fire(made, arrays)
        if form is not None:
            self._known.add(kernel, made, form, typed)

    def _fire(self, made: Launch, arrays: Sequence[Any]) -> None:
        """Send a launch to the current stream of its GPU, with the addresses of these arrays."""
        index = made.loaded.index
        place = here.place
        if place is None or place.index != index:
            place = self.place(index)
        if place.allocator.several:
            self.mark(arrays, place)
        pointers = [x.pointer for x in arrays]
        scratch = made.scratch()
        if scratch:
            # Freed when this returns: in the stream's order, so the next owner waits for the kernel.
            area = self.memory.allocate(scratch, index)
            pointers.append(area.pointer)
        made.fire(pointers, place.stream)

    def _made(self, spec: Specialization, typed: list[tuple[str, Any]], index: int, grid: tuple[int, ...]) -> Launch:
        loaded = self.kernels.get(spec, index)
        return Launch(self.kernels, loaded, grid, *self.kernels.lower(loaded, typed))

    def prepare(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any],
        num_warps: int, num_stages: int, options: tuple[tuple[str, Any], ...] = (), later: dict[int, Any] | None = None,
    ) -> tuple[Launch, list[Any]]:  # fmt: skip
        """A launch with everything but addresses, and its arrays (described ones too) in the kernel's order.

        `later` holds, by id, numbers of unsigned types among the arguments that each firing gives anew, in 8 bytes as addresses are, and
        what stands for them among the arrays.
        """
        spec, typed = specialize(kernel, args, constexprs, num_warps, num_stages, options)
        arrays = arrays_of(typed)
        index = (arrays[0].storage.device.index or 0) if arrays else here.index
        if later:
            typed = [("*" + kind, later[id(v)]) if id(v) in later else (kind, v) for kind, v in typed]
        return self._made(spec, typed, index, grid), arrays_of(typed)

    def mark(self, arrays: Sequence[Any], place: Place) -> None:
        """Note for each array whose memory belongs to another stream that this place's stream uses it now."""
        for x in arrays:
            free_list = getattr(x.storage, "free_list", None)
            if free_list is not None and free_list.stream != place.stream:
                self.memory.used_on(x.storage, place.stream)
