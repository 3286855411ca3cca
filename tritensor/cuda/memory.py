"""Device memory: a Storage owns one allocation and copies bytes between it and the host."""

from __future__ import annotations

import numpy as np

from tritensor.cuda.runtime import runtime
from tritensor.device import device


class Storage:
    """One allocation on a device, freed with the object. `pointer` is the device address of byte 0, `nbytes` its length."""

    __slots__ = ("__weakref__", "_runtime", "device", "nbytes", "pointer")

    def __init__(self, nbytes: int, on: device) -> None:
        self._runtime = runtime()
        self.device = on
        self.nbytes = nbytes
        self.pointer = 0
        self.pointer = self._runtime.allocate(nbytes, on.index or 0)

    def read(self, into: np.ndarray, offset: int) -> None:
        """Copy `into.nbytes` bytes from byte `offset` to a C-ordered host array, after all queued work."""
        self._runtime.copy_to_host(into, self.pointer + offset)

    def write(self, source: np.ndarray, offset: int) -> None:
        """Copy a C-ordered host array to byte `offset`."""
        self._runtime.copy_to_device(self.pointer + offset, source)

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            self._runtime.free(self.pointer)
