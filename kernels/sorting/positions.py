"""nonzero_static: the positions of what is not zero, as many rows as are asked for: counted by blocks, summed, written."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.errors import ArgumentError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.sorting.search import comparable
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, op, refuse_kind

INT64 = np.dtype(np.int64)
BLOCK, SCAN = 1024, 1024


@triton.jit
def _flags(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    value = comparable(tl.load(x + i, mask=i < n, other=0))
    return i, ((value != 0) & (i < n)).to(tl.int32)


# counts[block] = how many elements of the block are not 0
@triton.jit
def _count_kernel(x, counts, n, BLOCK: tl.constexpr):
    _, flags = _flags(x, n, BLOCK)
    tl.store(counts + tl.program_id(0), tl.sum(flags, 0).to(tl.int64))


# before[block] = sum of counts[:block]
@triton.jit
def _scan_kernel(counts, before, blocks, BLOCK: tl.constexpr):
    total = tl.zeros((), tl.int64)
    for first in range(0, blocks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        c = tl.load(counts + i, mask=i < blocks, other=0)
        tl.store(before + i, total + tl.cumsum(c, 0) - c, mask=i < blocks)
        total += tl.sum(c, 0)


# y[r, :] = the coordinates of the r-th element that is not 0, r < size
@triton.jit(do_not_specialize=["size", "shape"])
def _write_kernel(x, before, y, n, size, shape, NDIM: tl.constexpr, BLOCK: tl.constexpr):
    i, flags = _flags(x, n, BLOCK)
    to = tl.load(before + tl.program_id(0)) + tl.cumsum(flags, 0) - flags  # (BLOCK,)
    live = (flags != 0) & (to < size)
    for d in tl.static_range(NDIM):
        tl.store(y + to * NDIM + NDIM - 1 - d, i % shape[NDIM - 1 - d], mask=live)
        i = i // shape[NDIM - 1 - d]


def _nonzero_static(x: np.ndarray, *, size: int, fill_value: int = -1) -> np.ndarray:
    """Positions (size, ndim) of the first elements that are not 0; rows beyond the last one hold fill_value."""
    y, found = np.full((size, x.ndim), fill_value, np.int64), np.argwhere(x)[:size]
    y[: len(found)] = found
    return y


def _nonzero_static_cpu(x: np.ndarray, *, size: int, fill_value: int = -1) -> np.ndarray:
    """Column by column: numpy's argwhere would put all positions into an array first."""
    y = np.full((size, x.ndim), fill_value, np.int64)
    if x.ndim:
        found = np.nonzero(x)
        count = min(size, found[0].size)
        for d, column in enumerate(found):
            y[:count, d] = column[:count]
    return y


def _forward(x: CudaArray, *, size: int, fill_value: int = -1) -> CudaArray:
    y = filled((size, x.ndim), INT64, x.device, fill_value)
    if y.size == 0 or x.size == 0:
        return y
    x = to_c_order(x)
    blocks = cdiv(x.size, BLOCK)
    counts, before = (allocate((blocks,), INT64, x) for _ in range(2))
    launch(_count_kernel, (blocks,), x, counts, x.size, BLOCK=BLOCK)
    launch(_scan_kernel, (1,), counts, before, blocks, BLOCK=SCAN)
    launch(_write_kernel, (blocks,), x, before, y, x.size, size, x.shape, NDIM=x.ndim, BLOCK=BLOCK)
    return y


def _shape(x: Any, *, size: int, fill_value: int = -1) -> Spec:
    refuse_kind("nonzero_static", x.dtype, ("bool", "uint", "int", "float", "complex"))
    if size < 0:
        raise ArgumentError(f"nonzero_static: size is {size}; give 0 or more")
    return Spec((size, len(x.shape)), INT64)


def _samples(rng: np.random.Generator) -> list[Sample]:
    x = np.round(rng.normal(size=(4, 5, 6)))
    x[0, 0, 0], x[0, 0, 1] = np.nan, -0.0
    return [
        Sample(x, size=60, fill_value=-1),
        Sample(np.round(rng.normal(size=(2200,)) * 0.6), size=700, fill_value=7),
        Sample(np.zeros((3, 4)), size=2, fill_value=-1),
        Sample(rng.normal(size=(0, 3)), size=2, fill_value=-1),
        Sample(np.asarray(2.0), size=1, fill_value=-1),
    ]


op(
    "nonzero_static", _nonzero_static, cpu=_nonzero_static_cpu, shape=_shape, forward=_forward, differentiable=False, samples=_samples,
    dtypes=("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"),
)  # fmt: skip
