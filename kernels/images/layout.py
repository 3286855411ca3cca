"""Memory of images (N, C, H, W), signals (N, C, W) and volumes (N, C, D, H, W), for kernels."""

from __future__ import annotations

import numpy as np

from tritensor.kernels.parts.allocation import allocate
from tritensor.ops.array import CudaArray


def image_for(shape: tuple[int, ...], dtype: np.dtype, like: CudaArray, last: bool) -> tuple[CudaArray, CudaArray]:
    """An empty image in the wanted layout: its memory in order, and its (N, C, ...) view."""
    # channels first: memory is in the order of the shape
    if not last:
        memory = allocate(shape, dtype, like)
        return memory, memory
    memory = allocate((shape[0], *shape[2:], shape[1]), dtype, like)
    return memory, memory.transpose((0, len(shape) - 1, *range(1, len(shape) - 1)))


def volume(x: CudaArray) -> CudaArray:
    """x (N, C, one to three axes) as (N, C, D, H, W), a view."""
    missing = 5 - len(x.shape)
    return x.as_strided((*x.shape[:2], *(1,) * missing, *x.shape[2:]), (*x.strides[:2], *(0,) * missing, *x.strides[2:]), 0)
