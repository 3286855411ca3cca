"""A device that is not there: arrays have addresses but no memory, launches are recorded, so that kernels can be compiled anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.arguments import Specialization, specialize


class RecordingRuntime:
    """Serves device cuda without a GPU: every launch becomes a Specialization in `launches`, device memory reads as zeros.

    Install it with `tritensor.cuda.runtime.use(RecordingRuntime())`, in a process without TRITON_INTERPRET.
    """

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self._capability = capability
        self._next = 1 << 40
        self.launches: dict[Specialization, None] = {}
        self.grids: dict[Specialization, tuple[int, ...]] = {}

    def device_count(self) -> int:
        return 1

    def device_name(self, index: int) -> str:
        return "recording (no device)"

    def capability(self, index: int) -> tuple[int, int]:
        return self._capability

    def allocate(self, nbytes: int, index: int) -> int:
        pointer = self._next
        self._next += -(-max(nbytes, 1) // 256) * 256
        return pointer

    def free(self, pointer: int) -> None:
        pass  # addresses are never used twice

    def memory_allocated(self, index: int) -> int:
        return 0

    def copy_to_device(self, pointer: int, source: np.ndarray) -> None:
        pass  # there is no memory to write to

    def copy_to_host(self, into: np.ndarray, pointer: int) -> None:
        into.fill(0)

    def synchronize(self, index: int) -> None:
        pass  # nothing runs

    def launch(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any], num_warps: int, num_stages: int
    ) -> None:
        """Record the launch."""
        spec, _ = specialize(kernel, args, constexprs, num_warps, num_stages)
        self.launches[spec] = None
        self.grids[spec] = grid
