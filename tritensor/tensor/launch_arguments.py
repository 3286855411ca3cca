"""Tensors among a launch's arguments: the kernel gets their arrays, and a tensor that no kernel can read is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.launch import register_conversion
from tritensor.ground.errors import DeviceError, TransformError
from tritensor.ops.array import CudaArray
from tritensor.ops.lazy_array import LazyArray, compute_now, following, run_before_write, waiting
from tritensor.tensor.core import Tensor


def _cuda_array(x: Tensor, kernel: str, parameter: str) -> CudaArray:
    array = x._array
    # First, and by type: this runs for every tensor of every launch.
    if type(array) is CudaArray:
        if waiting or following:  # what the kernel does to its memory nobody knows
            run_before_write(array)
        return array
    if type(array) is LazyArray:
        compute_now(x)
        return _cuda_array(x, kernel, parameter)
    if isinstance(array, np.ndarray):
        fix = "x.cuda(), or make it there with device='cuda'" if x.shape else "x.item() for a number, x.cuda() for a pointer to one"
        raise DeviceError(
            f"launch {kernel}: {parameter} is a CPU tensor, {x.dtype.name}{list(x.shape)}, and kernels run on device cuda; give {fix}"
        )
    raise TransformError(
        f"launch {kernel}: {parameter} is a tensor inside a transform (vmap, grad or jvp of func), of which a kernel sees no values; "
        "put the launch into an autograd.Function or an op of the table, whose rules transforms know"
    )


def _refuse_host_array(x: np.ndarray, kernel: str, parameter: str) -> Any:
    raise DeviceError(
        f"launch {kernel}: {parameter} is a numpy array, {x.dtype}{list(x.shape)}, and kernels run on device cuda; give tensor(x, device='cuda')"
    )


register_conversion(Tensor, _cuda_array)
register_conversion(np.ndarray, _refuse_host_array)
