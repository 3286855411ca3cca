"""A device that is not there: arrays have addresses but no memory, launches are recorded, so that kernels can be compiled anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall, Specialization
from tritensor.cuda.compiler.recorded_call import Call, call_of
from tritensor.cuda.memory.storage import HostStorage
from tritensor.cuda.runtime.interface import Properties
from tritensor.ground.device import gpu

MEMORY = 80 << 30
_SHARED = {80: 163, 87: 163, 90: 227, 100: 227, 103: 227, 75: 64}  # KiB a block may have; 99 for the rest
_MULTIPROCESSORS = {80: 108, 100: 148, 103: 148}  # of the largest GPU of a kind; 132 for the rest


class RecordingRuntime:
    """Serves device cuda without a GPU: every launch becomes a Specialization in `launches`, device memory reads as zeros.

    Install it with `tritensor.cuda.runtime.active.use(RecordingRuntime())`, in a process without TRITON_INTERPRET.
    """

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self._capability = capability
        self._next = 1 << 40
        self._errors: HostStorage | None = None
        self.launches: dict[Specialization, None] = {}
        self.grids: dict[Specialization, tuple[int, ...]] = {}
        self.calls: list[Call] | None = None  # a list is filled with every launch, in order, its numbers and the sizes of its arrays

    def device_count(self) -> int:
        return 1

    def device_name(self, index: int) -> str:
        return "recording (no device)"

    def capability(self, index: int) -> tuple[int, int]:
        return self._capability

    def properties(self, index: int) -> Properties:
        """What kernels may choose their shapes by; the name and the clocks are made up."""
        arch = 10 * self._capability[0] + self._capability[1]
        return Properties(
            name=self.device_name(index), capability=self._capability, total_memory=MEMORY, multi_processor_count=_MULTIPROCESSORS.get(arch, 132),
            shared_memory_per_block_optin=_SHARED.get(arch, 99) << 10, max_threads_per_multi_processor=2048, warp_size=32,
            l2_cache_size=50 << 20, clock_rate_khz=1_980_000, memory_clock_rate_khz=2_619_000, memory_bus_width=5120, driver_version=13000,
        )  # fmt: skip

    def allocate(self, nbytes: int, index: int) -> HostStorage:
        pointer = self._next
        self._next += -(-max(nbytes, 1) // 256) * 256
        return HostStorage(pointer, nbytes, gpu(index), lambda pointer: None)  # addresses are never used twice

    def copy_to_device(self, storage: Any, offset: int, source: np.ndarray, wait: bool = True) -> None:
        pass  # there is no memory to write to

    def copy_to_host(self, into: np.ndarray, storage: Any, offset: int, wait: bool = True) -> None:
        into.fill(0)

    def error_storage(self, index: int) -> HostStorage:
        """Where kernels would report bad values: an address."""
        if self._errors is None:
            self._errors = self.allocate(32, index)
        return self._errors

    def check_errors(self, index: int) -> None:
        pass  # nothing runs

    def synchronize(self, index: int) -> None:
        pass  # nothing runs

    def launch(self, call: LaunchCall) -> None:
        """Record the launch."""
        made = call_of(call)
        self.launches[made.spec] = None
        self.grids[made.spec] = made.grid
        if self.calls is not None:
            self.calls.append(made)
