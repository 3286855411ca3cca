"""Devices of CUDA: the GPU that "cuda" means on this thread, properties of all GPUs, and access from one to another's memory."""

from __future__ import annotations

from typing import Any

from tritensor.cuda import availability
from tritensor.cuda.runtime.active import runtime
from tritensor.cuda.runtime.interface import Properties
from tritensor.ground.device import as_device
from tritensor.ground.errors import DeviceError
from tritensor.ground.thread_state import here


def index_of(device: Any) -> int:
    """The number of the GPU meant by None (the current one), a number, "cuda", "cuda:N" or a device.

    Raises DeviceError when it is not a GPU, or not there.
    """
    found = as_device("cuda" if device is None else device)
    if found.type != "cuda":
        raise DeviceError(f"cuda: {found} is not a GPU; give a number, 'cuda' or 'cuda:N'")
    index = found.index or 0
    count = availability.gpus()
    if not count:
        raise DeviceError(f"cuda: {availability.reason()}")
    if not 0 <= index < count:
        raise DeviceError(f"cuda:{index}: no such device; this machine has {count} ({', '.join(f'cuda:{i}' for i in range(count))})")
    return index


def current_device() -> int:
    """The number of the GPU that "cuda" means on this thread: 0 until `set_device` or `with device(...)`. Raises DeviceError without a GPU."""
    return index_of(None)


def set_device(device: Any) -> None:
    """Let "cuda" mean another GPU on this thread. A negative number changes nothing, as in PyTorch. Raises DeviceError."""
    if not _means_no_change(device):
        here.index = index_of(device)


def _means_no_change(device: Any) -> bool:
    # PyTorch's rule for set_device and for `with device(-1)`
    return device is None or (type(device) is int and device < 0)


class device:
    """`with tt.cuda.device(1): ...`: within the block "cuda" means this GPU on this thread. None or a negative number: no change.

    Raises DeviceError where it is made, for a GPU that is not there.
    """

    __slots__ = ("_before", "index")

    def __init__(self, device: Any) -> None:
        self.index = -1 if _means_no_change(device) else index_of(device)
        # a list: one object may be entered again within itself
        self._before: list[int] = []

    @property
    def idx(self) -> int:
        """The number of the GPU, under PyTorch's name for it; -1 for no change."""
        return self.index

    def __enter__(self) -> device:
        self._before.append(here.index)
        if self.index >= 0:
            here.index = self.index
        return self

    def __exit__(self, *error: Any) -> None:
        here.index = self._before.pop()


class device_of(device):
    """`with tt.cuda.device_of(x): ...`: the GPU that holds a tensor; no change for a tensor on the CPU."""

    __slots__ = ()

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "cuda" else None)


def get_device_properties(device: Any = None) -> Properties:
    """Name, compute capability, memory (bytes), multiprocessors, clocks (kHz) of a GPU. Raises DeviceError."""
    return runtime().properties(index_of(device))


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU can reach the memory of another one directly; False of a GPU and itself, as in PyTorch. Raises DeviceError."""
    return runtime().can_access_peer(index_of(device), index_of(peer_device))
