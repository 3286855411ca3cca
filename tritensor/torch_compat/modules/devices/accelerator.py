"""torch.accelerator: the GPU, if there is one, without its maker's name."""

from __future__ import annotations

from typing import Any

from tritensor import cuda
from tritensor.ground.device import as_device, device


def is_available() -> bool:
    """Whether there is a GPU to compute on."""
    return cuda.is_available()


def device_count() -> int:
    """How many."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """device("cuda"); None where there is no GPU."""
    return as_device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """Which GPU is the current one."""
    return cuda.current_device()


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """Make a GPU the current one."""
    cuda.set_device(device)


set_device_idx = set_device_index


def synchronize(device: Any = None) -> None:
    """Wait for the GPU to finish what was queued."""
    cuda.synchronize(device)


def current_stream(device: Any = None) -> Any:
    """The stream that work is queued on."""
    return cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Queue work on another stream from now on."""
    cuda.set_stream(stream)


empty_cache = cuda.empty_cache
memory_allocated, memory_reserved, memory_stats = cuda.memory_allocated, cuda.memory_reserved, cuda.memory_stats
max_memory_allocated, max_memory_reserved = cuda.max_memory_allocated, cuda.max_memory_reserved
reset_peak_memory_stats = cuda.reset_peak_memory_stats
