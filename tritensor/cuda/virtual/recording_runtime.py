"""A device that is not there: arrays have addresses but no memory, launches are recorded, so that kernels can be compiled anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.compiler.arguments import Specialization, specialize
from tritensor.cuda.compiler.recorded_call import Call, call_of
from tritensor.cuda.memory.storage import HostStorage
from tritensor.device import gpu


class RecordingRuntime:
    """Serves device cuda without a GPU: every launch becomes a Specialization in `launches`, device memory reads as zeros.

    Install it with `tritensor.cuda.runtime.serving.use(RecordingRuntime())`, in a process without TRITON_INTERPRET.
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

    def allocate(self, nbytes: int, index: int) -> HostStorage:
        pointer = self._next
        self._next += -(-max(nbytes, 1) // 256) * 256
        return HostStorage(pointer, nbytes, gpu(index), lambda pointer: None)  # addresses are never used twice

    def memory_allocated(self, index: int) -> int:
        return 0

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

    def launch(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any],
        num_warps: int, num_stages: int, options: tuple[tuple[str, Any], ...] = (),
    ) -> None:  # fmt: skip
        """Record the launch."""
        spec, values = specialize(kernel, args, constexprs, num_warps, num_stages, options)
        self.launches[spec] = None
        self.grids[spec] = grid
        if self.calls is not None:
            self.calls.append(call_of(spec, grid, values))
