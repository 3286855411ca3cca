"""Device memory: a Storage is one allocation; it copies bytes between itself and the host and is freed with the object."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.runtime.active import runtime
from tritensor.ground.device import device
from tritensor.ground.thread_state import here


class Storage:
    """One allocation on a device. `pointer` is the device address of byte 0, `nbytes` its length.

    Each runtime has its own subclass, which frees the memory with the object; `allocate` makes one. `permanent` says that
    it lives as long as the process, so that its address may be kept in a recorded call, `bounded` that `nbytes` is known: of memory that another
    object has lent, no more than the address is.
    """

    __slots__ = ("__weakref__", "device", "nbytes", "pointer")

    device: device
    nbytes: int
    pointer: int
    permanent = False
    bounded = True

    def read(self, into: np.ndarray, offset: int) -> None:
        """Copy `into.nbytes` bytes from byte `offset` to a C-ordered host array, after all queued work."""
        if here.recorder is not None:
            # what a corner does with values is no function of layouts
            here.recorder.spoil("it reads device memory from the host")
        runtime().copy_to_host(into, self, offset)

    def write(self, source: np.ndarray, offset: int) -> None:
        """Copy a C-ordered host array to byte `offset`; the host array may be changed as soon as this returns."""
        if here.recorder is not None:
            here.recorder.spoil("it writes device memory from the host")
        runtime().copy_to_device(self, offset, source)


def allocate(nbytes: int, on: device) -> Storage:
    """Fresh memory on a GPU. Raises OutOfMemoryError, and DeviceError where there is no such GPU."""
    recorder = here.recorder
    if recorder is not None and recorder.dry:
        return recorder.imagined(nbytes, on)  # type: ignore[no-any-return]
    storage = runtime().allocate(nbytes, on.index or 0)
    if recorder is not None:
        recorder.allocated(storage)
    return storage


class HostStorage(Storage):
    """Memory of a runtime that frees by address: `free(pointer)` is called with the object's end."""

    __slots__ = ("_free",)

    def __init__(self, pointer: int, nbytes: int, on: device, free: Any) -> None:
        self.pointer = pointer
        self.nbytes = nbytes
        self.device = on
        self._free = free

    def __del__(self) -> None:
        if self.pointer:
            self._free(self.pointer)
