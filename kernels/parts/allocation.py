"""Memory for kernels' results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty, empty_elementwise
from tritensor.ops.table import broadcast


def allocate(shape: tuple[int, ...], dtype: np.dtype, on: CudaArray | device, strides: tuple[int, ...] | None = None) -> CudaArray:
    """Uninitialised memory on a GPU, a named one or that of an array: C-ordered, or with the strides of another order."""
    # `empty` serves the CPU, too: this tells mypy which of both it is
    made = empty(shape, dtype, on.device if isinstance(on, CudaArray) else on, strides)
    assert isinstance(made, CudaArray)
    return made


def allocate_result(operands: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype) -> CudaArray:
    """Uninitialised memory for the result of an elementwise op, laid out as its operands are and on their GPU; numbers have no say."""
    on = next(x for x in operands if isinstance(x, CudaArray)).device
    made = empty_elementwise(shape, dtype, on, operands)
    assert isinstance(made, CudaArray)
    return made


def allocate_pair_result(name: str, a: Any, b: Any) -> CudaArray:
    """The same of an op of two arrays, or of one and a number, in the array's type."""
    arrays = [x for x in (a, b) if isinstance(x, CudaArray)]
    return allocate_result((a, b), broadcast(name, *[x.shape for x in arrays]), arrays[0].dtype)


def image_for(shape: tuple[int, ...], dtype: np.dtype, like: CudaArray, last: bool) -> tuple[CudaArray, CudaArray]:
    """Uninitialised memory of an image or volume of shape (N, C, *size), with channels `last` or not: in the order of memory, and as a view of that shape."""
    n, c, *size = shape
    memory = allocate((n, *size, c) if last else shape, dtype, like)
    return memory, memory.transpose((0, len(shape) - 1, *range(1, len(shape) - 1))) if last else memory
