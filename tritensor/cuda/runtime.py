"""Which runtime serves device `cuda`: the CUDA driver, or host memory and Triton's interpreter under TRITON_INTERPRET=1."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np


class Runtime(Protocol):
    """What tritensor asks of a device. Pointers are plain integers."""

    def device_count(self) -> int: ...

    def device_name(self, index: int) -> str: ...

    def capability(self, index: int) -> tuple[int, int]:
        """Compute capability of GPU `index`: (9, 0) for an H100."""

    def memory_allocated(self, index: int) -> int:
        """Bytes that live storages of GPU `index` hold."""

    def allocate(self, nbytes: int, index: int) -> int:
        """Address of `nbytes` fresh bytes (aligned to 256) on GPU `index`; raises OutOfMemoryError."""

    def free(self, pointer: int) -> None: ...

    def copy_to_device(self, pointer: int, source: np.ndarray) -> None: ...

    def copy_to_host(self, into: np.ndarray, pointer: int) -> None: ...

    def synchronize(self, index: int) -> None: ...

    def launch(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any], num_warps: int, num_stages: int
    ) -> None:
        """Run a @triton.jit kernel: `args` are its positional parameters in order (arrays, numbers, tuples of them,
        and functions where the parameter is a constexpr), `constexprs` the rest by name."""


_runtime: Runtime | None = None


def emulated() -> bool:
    """Whether device cuda is emulated on the host (TRITON_INTERPRET=1, Triton's own switch)."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y")


def runtime() -> Runtime:
    """The runtime in use, created at its first use. Raises DeviceError when there is no driver or GPU."""
    global _runtime
    if _runtime is None:
        if emulated():
            from tritensor.cuda.emulated import EmulatedRuntime

            _runtime = EmulatedRuntime()
        else:
            from tritensor.cuda.driver import DriverRuntime

            _runtime = DriverRuntime()
    return _runtime


def use(other: Runtime | None) -> Runtime | None:
    """Serve device cuda by another runtime from now on (None: choose anew at the next use); returns the one before."""
    global _runtime
    before, _runtime = _runtime, other
    return before
