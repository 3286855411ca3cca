"""overlap_add: windows of a signal put back where they were taken, added up where they overlap; the transpose of taking them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order, write
from tritensor.kernels.parts.cpu.strided_views import window
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.view_arithmetic import zero_tensor
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind

BLOCK = 512


# y[r, t] = sum over windows f with f step <= t < f step + size of x[r, f, t - f step]
@triton.jit(do_not_specialize=["blocks", "count", "overlaps"])
def _overlap_kernel(x, y, blocks, length, count, size, step, overlaps, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    t = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    last = t // step  # the last window that begins at or before t
    found = tl.zeros((BLOCK,), KIND)
    for j in range(overlaps):
        f = last - j
        at = t - f * step
        there = (t < length) & (f >= 0) & (f < count) & (at < size)
        found += tl.load(x + row * count * size + f.to(tl.int64) * size + at, mask=there, other=0).to(KIND)
    tl.store(y + row * length + t, found.to(y.dtype.element_ty), mask=t < length)


def _overlap_add(x: np.ndarray, *, step: int, length: int) -> np.ndarray:
    """x (..., count, size) as (..., length): window f begins at f * step. A step's worth of all windows at a time: no two of them overlap."""
    count, size = x.shape[-2:]
    y = np.zeros((*x.shape[:-2], length), x.dtype)
    for f in range(count):
        y[..., f * step : f * step + size] += x[..., f, :]
    return y


def _overlap_add_cpu(x: np.ndarray, *, step: int, length: int) -> np.ndarray:
    *lead, count, size = x.shape
    kept = dtypes.accumulator(x.dtype)
    y = np.zeros((math.prod(lead), max(length, (count + -(-size // step)) * step)), kept)
    flat = x.reshape(math.prod(lead), count, size)
    for start in range(0, size if count else 0, step):
        width = min(step, size - start)
        lanes = y[:, start : start + count * step].reshape(-1, count, step)
        lanes[:, :, :width] += flat[:, :, start : start + width]
    return np.ascontiguousarray(y[:, :length]).astype(x.dtype, copy=False).reshape(*lead, length)


def _overlap_shape(x: Any, *, step: int, length: int) -> Spec:
    refuse_kind("overlap_add", x.dtype, ("bool", "uint", "int", "float", "complex"))
    if len(x.shape) < 2:
        raise ShapeError(f"overlap_add: x {tuple(x.shape)}; it takes windows (..., count, size)")
    count, size = x.shape[-2:]
    if step < 1 or (count and (count - 1) * step + size > length):
        raise ShapeError(f"overlap_add: {count} windows of {size}, {step} apart, do not fit into {length}; step must be positive")
    return Spec((*x.shape[:-2], length), x.dtype)


def _overlap_forward(x: CudaArray, *, step: int, length: int) -> CudaArray:
    *lead, count, size = x.shape
    y = allocate((*lead, length), x.dtype, x)
    kind = getattr(tl, dtypes.of(dtypes.accumulator(x.dtype)).name)
    blocks = cdiv(length, BLOCK)
    launch(
        _overlap_kernel, (math.prod(lead) * blocks,), to_c_order(x), y, max(blocks, 1), length, count, size, step, -(-size // step),
        KIND=kind, BLOCK=BLOCK,
    )  # fmt: skip
    return y


def _windows(g: Any, x_shape: tuple[int, ...], step: int) -> Any:
    """The windows of g that x's shape says; positions behind the last one have none."""
    count, size = x_shape[-2:]
    ndim = len(x_shape) - 1
    if not count:
        return zero_tensor(x_shape, g)
    kept = ops.index_view(g, index=(slice(None),) * (ndim - 1) + (slice(0, (count - 1) * step + size),))
    return ops.copy(ops.unfold(kept, dim=ndim - 1, size=size, step=step))


def _cpu_backward(g: np.ndarray, x_shape: tuple[int, ...], step: int) -> np.ndarray:
    *outer, inner = g.strides
    return np.array(window(g, x_shape, (*outer, step * inner, inner)))


def _backward(g: CudaArray, x_shape: tuple[int, ...], step: int) -> CudaArray:
    y = allocate(x_shape, g.dtype, g)
    if y.size:
        d = to_c_order(g)
        *outer, _ = d.strides
        write(y, d.as_strided(x_shape, (*outer, step, 1), 0))
    return y


def _samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((3, 4)), step=2, length=8),
        Sample(rng.standard_normal((2, 3, 5)), step=3, length=12),
        Sample(rng.standard_normal((2, 2, 3)), step=4, length=7),
        Sample(rng.standard_normal((4, 1)), step=1, length=4),
        Sample(rng.standard_normal((700, 2)), step=1, length=701),
        Sample(np.zeros((2, 0, 3)), step=1, length=3),
    ]


op(
    "overlap_add", _overlap_add, cpu=_overlap_add_cpu, shape=_overlap_shape, forward=_overlap_forward, rule=(_windows,), backward=(_backward,),
    cpu_backward=_cpu_backward,
    samples=_samples, dtypes=("float16", "bfloat16", "float32", "float64", "int64"), condition="absolute",
    doc="Windows (..., count, size), each `step` after the one before, added up to (..., length).",
    sizes=lambda rng: [Sample(rng.standard_normal((8, 512, 512)), step=128, length=511 * 128 + 512)],
    work=lambda x, *, step, length: Work(x.size, (x.size + math.prod(x.shape[:-2]) * length) * x.dtype.itemsize),
)  # fmt: skip
