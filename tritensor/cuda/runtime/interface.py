"""The interface of a device: every function that tritensor calls of the driver, the emulator and the recording device."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall


class Properties(NamedTuple):
    """What a GPU is; sizes in bytes, rates in kHz, the bus width in bits."""

    name: str
    capability: tuple[int, int]
    total_memory: int
    multi_processor_count: int
    shared_memory_per_block_optin: int
    max_threads_per_multi_processor: int
    warp_size: int
    l2_cache_size: int
    clock_rate_khz: int
    memory_clock_rate_khz: int
    memory_bus_width: int
    driver_version: int

    @property
    def L2_cache_size(self) -> int:
        """Bytes of the second-level cache."""
        return self.l2_cache_size

    @property
    def major(self) -> int:
        """The first number of the compute capability."""
        return self.capability[0]

    @property
    def minor(self) -> int:
        """The second number of the compute capability."""
        return self.capability[1]


class Runtime(Protocol):
    """What tritensor asks of a device. Pointers, streams, events and graphs are plain integers; 0 is the default stream."""

    def device_count(self) -> int: ...

    def device_name(self, index: int) -> str: ...

    def capability(self, index: int) -> tuple[int, int]:
        """Compute capability of GPU `index`: (9, 0) for an H100."""

    def properties(self, index: int) -> Properties: ...

    # memory
    def allocate(self, nbytes: int, index: int) -> Any:
        """A Storage of `nbytes` fresh bytes (aligned to 256) on GPU `index`; raises OutOfMemoryError."""

    def allocator(self, index: int) -> Any:
        """The books of a GPU's memory (see memory_report.Accounts)."""

    def allocators(self) -> list[Any]:
        """Those of the GPUs that have been used."""

    def record_stream(self, storage: Any, stream: int) -> None:
        """Keep the memory of a storage from being used again before the work queued on `stream` when it dies is done."""

    def empty_cache(self) -> None: ...

    def pinned_allocate(self, nbytes: int) -> int: ...

    def pinned_free(self, pointer: int) -> None: ...

    def copy_to_device(self, storage: Any, offset: int, source: np.ndarray, wait: bool = True) -> None: ...

    def copy_to_host(self, into: np.ndarray, storage: Any, offset: int, wait: bool = True) -> None: ...

    def copy_on_device(self, target: Any, target_offset: int, source: Any, source_offset: int, nbytes: int) -> None:
        """Copy bytes between storages of one GPU or of two, in order with the work queued on both current streams."""

    def error_storage(self, index: int) -> Any:
        """Storage of the error record that a kernel writes when it meets a bad value (see device_errors.py)."""

    def check_errors(self, index: int) -> None:
        """Raise what a kernel left there."""

    def can_access_peer(self, index: int, other: int) -> bool:
        """Whether a GPU can reach another one's memory."""

    # order
    def synchronize(self, index: int) -> None: ...

    def stream_priorities(self, index: int) -> tuple[int, int]:
        """(lowest, highest); the highest is the smaller number."""

    def stream_create(self, index: int, priority: int) -> int: ...

    def stream_synchronize(self, index: int, stream: int) -> None: ...

    def stream_query(self, index: int, stream: int) -> bool: ...

    def stream_wait_event(self, index: int, stream: int, event: int) -> None: ...

    def event_create(self, index: int, timing: bool, blocking: bool) -> int: ...

    def event_destroy(self, index: int, event: int) -> None: ...

    def event_record(self, index: int, event: int, stream: int) -> None: ...

    def event_query(self, index: int, event: int) -> bool: ...

    def event_synchronize(self, index: int, event: int) -> None: ...

    def event_elapsed(self, index: int, start: int, end: int) -> float:
        """Milliseconds between two events."""

    # graphs
    def capture_begin(self, index: int, stream: int, mode: str = "relaxed") -> None: ...

    def capture_end(self, index: int, stream: int) -> tuple[int, int]:
        """(graph, number of its nodes)."""

    def capture_abandon(self, index: int, stream: int) -> None: ...

    def graph_launch(self, index: int, graph: int, stream: int) -> None: ...

    def graph_destroy(self, index: int, graph: int) -> None: ...

    def fill_word(self, index: int, storage: Any, offset: int, value: int, stream: int) -> None:
        """Set four bytes of device memory to an unsigned number, in stream order."""

    def pool_create(self, index: int) -> int:
        """A private pool of memory, for graphs."""

    def pool_release(self, index: int, pool: int) -> None: ...

    def pool_use(self, index: int, pool: int, stream: int) -> None:
        """From now on memory asked for on a stream, which is captured, comes from the pool."""

    def pool_leave(self, index: int, stream: int) -> None: ...

    # kernels
    def launch(self, call: LaunchCall) -> None:
        """Run a @triton.jit kernel."""
