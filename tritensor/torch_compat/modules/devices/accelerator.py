"""torch.accelerator: the GPU, if there is one, without its maker's name."""

from __future__ import annotations

from tritensor import cuda
from tritensor.ground.device import as_device, device


def current_accelerator(check_available: bool = False) -> device | None:
    """device("cuda"); None where there is no GPU."""
    return as_device("cuda") if cuda.is_available() else None


is_available, device_count, synchronize, empty_cache = cuda.is_available, cuda.device_count, cuda.synchronize, cuda.empty_cache
current_device_index = current_device_idx = cuda.current_device  # PyTorch renamed them and keeps both
set_device_index = set_device_idx = cuda.set_device
current_stream, set_stream = cuda.current_stream, cuda.set_stream
memory_allocated, memory_reserved, memory_stats = cuda.memory_allocated, cuda.memory_reserved, cuda.memory_stats
max_memory_allocated, max_memory_reserved = cuda.max_memory_allocated, cuda.max_memory_reserved
reset_peak_memory_stats = cuda.reset_peak_memory_stats
get_memory_info = cuda.mem_get_info


def empty_host_cache() -> None:
    """Give cached pinned memory back, with all else that is cached: the two are kept together."""
    cuda.empty_cache()


class device_index:
    """`with device_index(1):` makes a GPU the current one within; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self._chosen = None if device is None else cuda.device(device)

    def __enter__(self) -> None:
        if self._chosen is not None:
            self._chosen.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._chosen is not None:
            self._chosen.__exit__(*error)
