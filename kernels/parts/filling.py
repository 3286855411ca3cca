"""New arrays of one value, and the refusal of negative sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import device as Device
from tritensor.ground.errors import ShapeError
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.elementwise import run, unchanged
from tritensor.kernels.parts.float8 import as_bytes, byte_of, is_float8
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import StepRecorder

BLOCK = 1024


def rounded(value: Any, dtype: np.dtype) -> Any:
    """A Python number as a kernel argument that converts to `dtype` exactly: rounded on the host, then widened."""
    kind = dtypes.of(dtype).kind
    if kind in ("float", "float8"):
        with np.errstate(over="ignore"):  # a number that is too large for the type is infinite
            return np.float64(np.asarray(value, np.float64).astype(dtype))
    return dtype.type(value) if kind in ("uint", "int") else bool(value)


# y[i] = value
@triton.jit
def _fill_kernel(y, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    tl.store(y + i, value, mask=i < n)


def filled(shape: tuple[int, ...], dtype: np.dtype, on: Device, value: Any, out: CudaArray | None = None) -> CudaArray:
    """A new device array, or a contiguous one that is there, with one value everywhere; one launch."""
    y = allocate(shape, dtype, on) if out is None else out
    # float8 is stored by its byte, which the host finds
    number, memory = (byte_of(value, dtype), as_bytes(y)) if is_float8(dtype) else (rounded(value, dtype), y)
    if type(here.recorder) is StepRecorder:  # as a step it is the number, unchanged
        run((unchanged,), ((0,),), (number,), (memory,), memory.dtype)
        return y
    launch(_fill_kernel, (triton.cdiv(y.size, BLOCK),), memory, number, y.size, BLOCK=BLOCK)
    return y


def refuse_negative_size(name: str, shape: tuple[int, ...]) -> None:
    """Refuse negative sizes of a new tensor."""
    for n in shape:
        if n < 0:
            raise ShapeError(f"{name}: shape {shape} has a negative size; give sizes of 0 or more")
