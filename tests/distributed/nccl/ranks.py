"""Ranks of one NCCL communicator in this process, each on a GPU of the stub driver, and arrays on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.stub import control
from tritensor.cuda.runtime.active import runtime
from tritensor.distributed.backends.nccl import NcclBackend, unique_id, watchdog
from tritensor.distributed.calls import Call
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.ops.array import CudaArray, from_host

AGES = 3600 * 10**6  # microseconds that a copy takes where a stream is to stay busy for the whole test


def call(name: str, number: int = 7) -> Call:
    """A call as the public functions make one."""
    return Call(name, number, "default_pg")


def ranks(size: int, seconds: float = 30.0) -> list[NcclBackend]:
    """The backends of all ranks, on cuda:0, cuda:1, cuda:0, ... (the stub allows it). The watchdog sleeps: tests call check() themselves."""
    watchdog.LOOK = 3600.0
    identity = unique_id()
    return [NcclBackend(rank, size, identity, rank % 2, seconds) for rank in range(size)]


def array(dtype: str, *shape: int, device: int = 0) -> CudaArray:
    """Ones of an element type on a GPU; those that no kernel takes are bytes there, seen as the type."""
    kind = getattr(dtypes, dtype).numpy
    host = np.ones(shape, kind)
    if getattr(dtypes, dtype).triton is None:
        found: Any = from_host(host.view(np.float32), gpu(device))
        return CudaArray(found.storage, shape, kind)
    return from_host(host, gpu(device))  # type: ignore[no-any-return]


def busy(x: CudaArray) -> None:
    """Copies take ages from now on, and the current stream has one to do."""
    control.slow(copies=AGES)
    runtime().copy_on_device(x.storage, 0, x.storage, 0, 4)


def is_busy(stream: int, device: int = 0) -> bool:
    """Whether a stream has work, or waits for some."""
    return not runtime().stream_query(device, stream)
