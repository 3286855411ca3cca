"""The memory of GPUs through the driver: what the caching allocator draws from, storages cut from it, copies."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritensor.cuda.driver.calls import GONE, NOT_READY, Driver
from tritensor.cuda.driver.devices import Devices
from tritensor.cuda.memory.caching_allocator import CachingAllocator, FreeList
from tritensor.cuda.memory.storage import Storage
from tritensor.cuda.streams import hidden_waits
from tritensor.ground.device import gpu
from tritensor.ground.thread_state import here

# Blocks that streams other than their own have used: address -> those streams. Addresses of all GPUs are distinct.
_elsewhere: dict[int, set[int]] = {}


class DeviceStorage(Storage):
    """A block of the caching allocator. It goes back to its free list with the object."""

    __slots__ = ("free_list",)

    free_list: FreeList

    def __del__(self) -> None:
        pointer = self.pointer
        if pointer:
            free_list = self.free_list
            a = free_list.allocator
            # A lost context records no event, and at the end of the process nobody takes the block again.
            if _elsewhere and pointer in _elsewhere and not a.source.driver.lost and not sys.is_finalizing():
                with a.source.devices.visiting():
                    a.give_back_later(pointer, free_list, _elsewhere.pop(pointer))
            else:
                a.live -= free_list.size
                free_list.free.append(pointer)


class DriverSource:
    """The memory of one GPU: stream-ordered allocations from a pool of our own, plain ones where the GPU has no pools.

    The pool keeps what is freed until `trim`, so that an allocation costs the driver no call to the system.
    """

    def __init__(self, devices: Devices, index: int) -> None:
        self.devices = devices
        self.driver: Driver = devices.driver
        self.index = index
        devices.enter(index)
        self._pool = self._make_pool() if devices.attribute("MEMORY_POOLS_SUPPORTED", index) else None
        self._side = 0  # a stream that is never captured, made at the first need
        self._reached: set[int] = set()  # GPUs that have been let at the pool

    def _make_pool(self) -> Any:
        api = self.driver.api
        wanted = api.CUmemPoolProps()
        wanted.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = int(self.devices.handle(self.index))
        pool = self.driver.call("cuMemPoolCreate", wanted)
        keep = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        try:
            # by default a pool gives everything back at each synchronization, and the next step allocates anew (CUDA Programming Guide,
            # release threshold)
            self.driver.call("cuMemPoolSetAttribute", pool, keep, api.cuuint64_t(2**64 - 1))
        except BaseException:
            self.driver.status("cuMemPoolDestroy", pool)  # the first error is the one to tell
            raise
        return pool

    def allocate(self, nbytes: int, stream: int) -> int:
        self.devices.enter(self.index)
        asked = ("cuMemAlloc", nbytes) if self._pool is None else ("cuMemAllocFromPoolAsync", nbytes, self._pool, stream)
        doing = f"cuda:{self.index}: {nbytes} bytes asked"
        code, pointer = self.driver.status(*asked, answers=("CUDA_ERROR_OUT_OF_MEMORY",), doing=doing)
        return int(pointer) if code == "CUDA_SUCCESS" else 0

    def allocate_for_capture(self, nbytes: int) -> int:
        """Memory that is no node of the graph: allocated on a stream of its own, waited for."""
        self.devices.enter(self.index)
        if not self._side:
            self._side = int(self.driver.call("cuStreamCreate", self.driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
        pointer = 0
        try:
            with self.relaxed():
                pointer = self.allocate(nbytes, self._side)
                self.driver.call("cuStreamSynchronize", self._side)
        except BaseException:
            if pointer:  # it is on nobody's books
                self.free(pointer, self._side)
            raise
        return pointer

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Within this, calls are allowed that the driver refuses to a thread that captures a graph."""
        mode = self.driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = self.driver.call("cuThreadExchangeStreamCaptureMode", mode)
        try:
            yield
        finally:
            self.driver.call("cuThreadExchangeStreamCaptureMode", before)

    def free(self, pointer: int, stream: int) -> None:
        with self.devices.visiting():  # without a cache a finalizer comes here
            self.devices.enter(self.index)
            name, args = ("cuMemFree", (pointer,)) if self._pool is None else ("cuMemFreeAsync", (pointer, stream))
            self.driver.status(name, *args, answers=GONE)

    def info(self) -> tuple[int, int]:
        self.devices.enter(self.index)
        free, total = self.driver.call("cuMemGetInfo")
        return int(free), int(total)

    def record(self, stream: int) -> Any:
        self.devices.enter(self.index)
        event = self.driver.call("cuEventCreate", self.driver.api.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        try:
            self.driver.call("cuEventRecord", event, stream)
        except BaseException:
            self.driver.status("cuEventDestroy", event)  # the first error is the one to tell
            raise
        return event

    def passed(self, event: Any) -> bool:
        self.devices.enter(self.index)
        return self.driver.status("cuEventQuery", event, answers=NOT_READY)[0] == "CUDA_SUCCESS"

    def wait(self, event: Any) -> None:
        self.devices.enter(self.index)
        self.driver.call("cuEventSynchronize", event)

    def release(self, event: Any) -> None:
        self.devices.enter(self.index)
        self.driver.call("cuEventDestroy", event)

    def let_reach(self, other: int) -> None:
        """Let another GPU reach this pool's memory, where the two are connected; a copy between them needs no way by the host then."""
        if self._pool is None or other in self._reached:
            return
        if self.driver.call("cuDeviceCanAccessPeer", self.devices.handle(other), self.devices.handle(self.index)):
            api = self.driver.api
            access = api.CUmemAccessDesc()
            access.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            access.location.id = int(self.devices.handle(other))
            access.flags = api.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            self.driver.call("cuMemPoolSetAccess", self._pool, [access], 1)
        self._reached.add(other)

    def synchronize(self) -> None:
        self.devices.enter(self.index)
        self.driver.call("cuCtxSynchronize")

    def trim(self) -> None:
        if self._pool is not None:
            self.driver.call("cuMemPoolTrimTo", self._pool, 0)


class MemoryCalls:
    """The part of DriverRuntime that gives memory, and copies in order with each GPU's current stream. The rest of it gives `driver`, `devices`
    and `check_errors`."""

    driver: Driver
    devices: Devices

    def __init__(self) -> None:
        self._allocators: dict[int, CachingAllocator] = {}

    def check_errors(self, index: int) -> None:
        """Raise what a kernel has reported."""
        raise NotImplementedError

    def allocator(self, index: int) -> CachingAllocator:
        """The allocator of a GPU, made at its first use."""
        found = self._allocators.get(index)
        if found is None:
            self.devices.handle(index)  # refuses a GPU that is not there
            found = self._allocators.setdefault(index, CachingAllocator(DriverSource(self.devices, index), index))
        return found

    def allocators(self) -> list[CachingAllocator]:
        return list(self._allocators.values())

    def empty_cache(self) -> None:
        for a in self.allocators():
            a.empty_cache()

    def allocate(self, nbytes: int, index: int) -> DeviceStorage:
        storage = DeviceStorage.__new__(DeviceStorage)
        # until there is a block: `take` may raise, and __del__ looks here
        storage.pointer = 0
        storage.nbytes = nbytes
        storage.device = gpu(index)
        if nbytes:
            a = self.allocator(index)
            free_list = storage.free_list = a.free_list(nbytes, here.streams.get(index, 0))
            storage.pointer = a.take(free_list, nbytes)
        return storage

    def _enter(self, *storages: Storage) -> int:
        """Make the GPU of storages current; the stream that a copy of them goes to, noted where it is not a storage's own."""
        index = storages[0].device.index or 0
        self.devices.enter(index)
        stream = here.streams.get(index, 0)
        for storage in storages:
            self.record_stream(storage, stream)
        return stream

    # Copies are queued by methods of their own: a profiler times these, and not the wait.
    def copy_to_device(self, storage: Storage, offset: int, source: np.ndarray, wait: bool = True) -> None:
        """Queue a copy. Pageable memory may be changed when this returns; pinned memory only with `wait`."""
        if source.nbytes == 0:
            return
        if wait and here.capture is not None:
            here.capture.refuse_write(storage.device.index or 0)
        stream = self.queue_to_device(storage, offset, source)
        if wait:
            hidden_waits.note("copy to device")
            self._wait(storage.device.index or 0, stream)

    def copy_to_host(self, into: np.ndarray, storage: Storage, offset: int, wait: bool = True) -> None:
        """Queue a copy; `into` is filled when this returns, without `wait` when its stream has been waited for."""
        if into.nbytes == 0:
            return
        if here.capture is not None:
            here.capture.refuse_read(storage.device.index or 0)
        stream = self.queue_to_host(into, storage, offset)
        if wait:
            hidden_waits.note("copy to host")
            self._wait(storage.device.index or 0, stream)

    def copy_on_device(self, target: Storage, target_offset: int, source: Storage, source_offset: int, nbytes: int) -> None:
        if nbytes:
            self.queue_on_device(target, target_offset, source, source_offset, nbytes)

    def _wait(self, index: int, stream: int) -> None:
        """Wait for a stream, and raise what kernels have reported."""
        self.driver.call("cuStreamSynchronize", stream)
        self.check_errors(index)

    def queue_to_device(self, storage: Storage, offset: int, source: np.ndarray) -> int:
        """Queue a copy and return its stream."""
        stream = self._enter(storage)
        doing = f"copy of {source.nbytes} bytes from the host to cuda:{storage.device.index}"
        self.driver.do(doing, "cuMemcpyHtoDAsync", storage.pointer + offset, source.ctypes.data, source.nbytes, stream)
        return stream

    def queue_to_host(self, into: np.ndarray, storage: Storage, offset: int) -> int:
        """Queue a copy and return its stream."""
        stream = self._enter(storage)
        doing = f"copy of {into.nbytes} bytes from cuda:{storage.device.index} to the host"
        self.driver.do(doing, "cuMemcpyDtoHAsync", into.ctypes.data, storage.pointer + offset, into.nbytes, stream)
        return stream

    def queue_on_device(self, target: Storage, target_offset: int, source: Storage, source_offset: int, nbytes: int) -> None:
        """Queue a copy after the work on both GPUs' current streams; later work on either comes after it."""
        to, at = target.pointer + target_offset, source.pointer + source_offset
        if target.device == source.device:
            stream = self._enter(target, source)
            self.driver.do(f"copy of {nbytes} bytes within {target.device}", "cuMemcpyDtoDAsync", to, at, nbytes, stream)
            return
        there, over = source.device.index or 0, target.device.index or 0
        theirs: Any = self.allocator(there).source
        ours: Any = self.allocator(over).source
        theirs.let_reach(over)
        ours.let_reach(there)
        # the copy is queued on the target's stream: it comes after what the source's was given, and that stream goes on after the copy
        self._wait_for_event(here.streams.get(over, 0), over, theirs.record(here.streams.get(there, 0)), theirs)
        stream = self._enter(target)
        contexts = self.devices.context(over), self.devices.context(there)
        doing = f"copy of {nbytes} bytes from cuda:{there} to cuda:{over}"
        self.driver.do(doing, "cuMemcpyPeerAsync", to, contexts[0], at, contexts[1], nbytes, stream)
        self._wait_for_event(here.streams.get(there, 0), there, ours.record(stream), ours)

    def _wait_for_event(self, stream: int, index: int, event: Any, owner: Any) -> None:
        """Let a GPU's stream wait for an event, and give the event back."""
        try:
            self.devices.enter(index)
            self.driver.call("cuStreamWaitEvent", stream, event, 0)
        finally:
            owner.release(event)

    def record_stream(self, storage: Storage, stream: int) -> None:
        """Note that a stream uses a storage, if it is another than the storage's own."""
        free_list = getattr(storage, "free_list", None)
        if free_list is not None and storage.pointer and free_list.stream != stream:
            _elsewhere.setdefault(storage.pointer, set()).add(stream)

    def pinned_allocate(self, nbytes: int, mapped: bool = False) -> int:
        """Host memory that a GPU copies from and to by itself (and, mapped, that kernels may write at the same address)."""
        self._enter_any()
        flags = 3 if mapped else 1  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP
        return int(self.driver.call("cuMemHostAlloc", nbytes, flags))

    def _enter_any(self) -> None:
        """Host memory is every GPU's, but the driver wants some context to be current on this thread."""
        if here.context < 0:
            self.devices.enter(here.index)

    def pinned_free(self, pointer: int) -> None:
        self._enter_any()
        self.driver.status("cuMemFreeHost", pointer, answers=GONE)


class PinnedRecord(Storage):
    """A few bytes of host memory that kernels write and the host reads without a copy; they live as long as the process."""

    __slots__ = ()
    permanent = True

    def __init__(self, memory: MemoryCalls, nbytes: int, index: int) -> None:
        self.device = gpu(index)
        self.nbytes = nbytes
        self.pointer = memory.pinned_allocate(nbytes, mapped=True)
        ctypes.memset(self.pointer, 0, nbytes)
