"""The GPU as a place to compute: what is there, waiting for it, its memory. Device cuda is emulated under TRITON_INTERPRET=1."""

from __future__ import annotations

from typing import Any

from tritensor.cuda import presence
from tritensor.cuda.runtime import emulated as emulated
from tritensor.cuda.runtime import runtime as _runtime
from tritensor.errors import DeviceError


def is_available() -> bool:
    """Whether tensors can be put on device cuda. Never raises; True also where the device is emulated."""
    return presence.gpus() > 0


def why() -> str:
    """Why device cuda is not available and what to do about it; "" where it is."""
    return presence.reason()


def device_count() -> int:
    """The number of GPUs (0 without a driver). Never raises."""
    return presence.gpus()


def current_device() -> int:
    """The GPU that plain "cuda" means: always 0; name another as "cuda:1". Raises DeviceError without a GPU."""
    return _index(None)


def _index(device: Any) -> int:
    """The number of the GPU meant by None, a number, "cuda:N" or a device; raises DeviceError when it is not there."""
    from tritensor.device import as_device

    found = as_device("cuda" if device is None else device)
    if found.type != "cuda":
        raise DeviceError(f"cuda: {found} is not a GPU; give a number, 'cuda' or 'cuda:N'")
    index = found.index or 0
    count = presence.gpus()
    if not count:
        raise DeviceError(f"cuda: {presence.reason()}")
    if index >= count:
        raise DeviceError(f"cuda:{index}: no such device; this machine has {count} ({', '.join(f'cuda:{i}' for i in range(count))})")
    return index


def get_device_name(device: Any = None) -> str:
    """The maker's name of a GPU."""
    index = _index(device)
    return _runtime().device_name(index)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability of a GPU: (9, 0) for an H100. An emulated one says (9, 0)."""
    index = _index(device)
    return _runtime().capability(index)


def synchronize(device: Any = None) -> None:
    """Wait until all work queued on a GPU is done; errors of kernels launched before surface here."""
    index = _index(device)
    _runtime().synchronize(index)


def memory_allocated(device: Any = None) -> int:
    """Bytes of a GPU's memory that live tensors hold."""
    index = _index(device)
    return _runtime().memory_allocated(index)
