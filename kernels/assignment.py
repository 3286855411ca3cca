"""Writing into windows of device memory: what joining, padding and indexing share. Typed for CudaArrays, where array.py serves both devices."""

from __future__ import annotations

from typing import cast

import numpy as np

from tritensor.array import CudaArray, empty
from tritensor.device import device
from tritensor.kernels.copy import contiguous, write


def fresh(shape: tuple[int, ...], dtype: np.dtype, on: device) -> CudaArray:
    """Uninitialised device memory."""
    return cast(CudaArray, empty(shape, dtype, on))


def dense(x: CudaArray) -> CudaArray:
    """x itself where it lies in C order, else a C-ordered copy."""
    return cast(CudaArray, contiguous(x))


def assign_into(target: CudaArray, source: CudaArray) -> None:
    """target[...] = source, cast to target's type; source broadcasts. Memory that both share is copied first."""
    if source.storage is target.storage:
        source = assigned(fresh(source.shape, source.dtype, source.device), source)
    write(target, source)


def assigned(target: CudaArray, source: CudaArray) -> CudaArray:
    """`target`, which is new memory, after the same."""
    write(target, source)
    return target
