"""The GPU's public functions: availability, synchronization, streams, memory. Device cuda is emulated under TRITON_INTERPRET=1."""

from __future__ import annotations

from typing import Any

from tritensor.cuda import availability
from tritensor.cuda import backend as _choice  # noqa: F401  (tells serving whom to ask)
from tritensor.cuda.devices import can_device_access_peer as can_device_access_peer
from tritensor.cuda.devices import current_device as current_device
from tritensor.cuda.devices import device as device
from tritensor.cuda.devices import device_of as device_of
from tritensor.cuda.devices import get_device_properties as get_device_properties
from tritensor.cuda.devices import index_of as _index
from tritensor.cuda.devices import set_device as set_device
from tritensor.cuda.memory.statistics import empty_cache as empty_cache
from tritensor.cuda.memory.statistics import get_per_process_memory_fraction as get_per_process_memory_fraction
from tritensor.cuda.memory.statistics import host_memory_stats as host_memory_stats
from tritensor.cuda.memory.statistics import max_memory_allocated as max_memory_allocated
from tritensor.cuda.memory.statistics import max_memory_reserved as max_memory_reserved
from tritensor.cuda.memory.statistics import mem_get_info as mem_get_info
from tritensor.cuda.memory.statistics import memory_allocated as memory_allocated
from tritensor.cuda.memory.statistics import memory_reserved as memory_reserved
from tritensor.cuda.memory.statistics import memory_snapshot as memory_snapshot
from tritensor.cuda.memory.statistics import memory_stats as memory_stats
from tritensor.cuda.memory.statistics import memory_summary as memory_summary
from tritensor.cuda.memory.statistics import reset_max_memory_allocated as reset_max_memory_allocated
from tritensor.cuda.memory.statistics import reset_peak_memory_stats as reset_peak_memory_stats
from tritensor.cuda.memory.statistics import set_per_process_memory_fraction as set_per_process_memory_fraction
from tritensor.cuda.memory.statistics import why_alive as why_alive
from tritensor.cuda.random import get_rng_state as get_rng_state
from tritensor.cuda.random import get_rng_state_all as get_rng_state_all
from tritensor.cuda.random import initial_seed as initial_seed
from tritensor.cuda.random import manual_seed as manual_seed
from tritensor.cuda.random import manual_seed_all as manual_seed_all
from tritensor.cuda.random import seed as seed
from tritensor.cuda.random import set_rng_state as set_rng_state
from tritensor.cuda.random import set_rng_state_all as set_rng_state_all
from tritensor.cuda.runtime.active import emulated as emulated
from tritensor.cuda.runtime.active import runtime as _runtime
from tritensor.cuda.runtime.active import started as _started
from tritensor.cuda.streams.graphs import CUDAGraph as CUDAGraph
from tritensor.cuda.streams.graphs import graph as graph
from tritensor.cuda.streams.graphs import graph_pool_handle as graph_pool_handle
from tritensor.cuda.streams.stream import Event as Event
from tritensor.cuda.streams.stream import ExternalStream as ExternalStream
from tritensor.cuda.streams.stream import Stream as Stream
from tritensor.cuda.streams.stream import StreamContext as StreamContext
from tritensor.cuda.streams.stream import current_stream as current_stream
from tritensor.cuda.streams.stream import default_stream as default_stream
from tritensor.cuda.streams.stream import is_current_stream_capturing as is_current_stream_capturing
from tritensor.cuda.streams.stream import set_stream as set_stream
from tritensor.cuda.streams.stream import stream as stream
from tritensor.cuda.streams.stream import synchronize as synchronize
from tritensor.ground import nvtx as nvtx


def is_available() -> bool:
    """Whether tensors can be put on device cuda. Never raises; True also where the device is emulated."""
    # not by making a runtime: a program that only asks must not start the driver, which a later fork would not live through
    return availability.gpus() > 0


def why() -> str:
    """Why device cuda is not available and what to do about it; "" where it is."""
    return availability.reason()


def device_count() -> int:
    """The number of GPUs (0 without a driver). Never raises."""
    return availability.gpus()


def get_device_name(device: Any = None) -> str:
    """The maker's name of a GPU."""
    index = _index(device)
    return _runtime().device_name(index)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability of a GPU: (9, 0) for an H100. An emulated one says (9, 0)."""
    index = _index(device)
    return _runtime().capability(index)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes in bfloat16 (from sm_80 on by itself; older ones through float32). False where there is none."""
    # PyTorch's default is True of older GPUs, too, which compute it through float32
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def init() -> None:
    """Start the driver now rather than at the first use. Raises DeviceError when there is no driver or GPU."""
    _runtime()


def is_initialized() -> bool:
    """Whether this process has started the driver."""
    return _started()


def open_pack(path: Any) -> Any:
    """Take compiled kernels from a pack that `tritensor precompile` made; the environment variable TRITENSOR_PACK does the same.

    Packs in ~/.cache/tritensor/packs are found by themselves. Raises LaunchError when the file is missing, torn, no pack, or made
    by another version of Triton.
    """
    from tritensor.cuda.compiler.cubin_cache import open_pack

    return open_pack(path)
