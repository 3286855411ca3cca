"""Dropout: elements zeroed at random. The mask is drawn from (seed, offset) again in the backward pass, so nothing is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.errors import ArgumentError
from tritensor.ground.thread_state import here
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate, allocate_result
from tritensor.kernels.parts.copying import to_c_order, to_elementwise_layout
from tritensor.kernels.parts.elementwise import run, scalar, unchanged
from tritensor.kernels.parts.random_words import draws
from tritensor.kernels.parts.random_words.dropout_mask import dropped, kept_scale, threshold
from tritensor.kernels.parts.random_words.philox import draw_origin, in_order, kernel_seed, philox
from tritensor.kernels.random.plain_numbers import words
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import Pointwise
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind
from tritensor.random import blocks_used

BLOCK = 256  # Philox blocks per program, four elements each


# y[i] = x[i] / (1 - p) where word i of the stream is at least p * 2^32, else 0
@triton.jit
def _kernel(x, y, n, k0, k1, offset, state, threshold, scale, BLOCK: tl.constexpr):
    k0, k1, offset = draw_origin(k0, k1, offset, state)
    block = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)).to(tl.uint64) + offset
    w0, w1, w2, w3 = philox(block, k0, k1)
    w = in_order(w0, w1, w2, w3)  # (4 BLOCK,)
    i = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    compute_type = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    value = tl.load(x + i, mask=i < n, other=0).to(compute_type) * scale.to(compute_type)
    value = tl.where(w.to(tl.int64) >= threshold, value, 0.0)
    tl.store(y + i, value.to(y.dtype.element_ty), mask=i < n)


def reference(x: np.ndarray, *, p: float, seed: int, offset: int) -> np.ndarray:
    drawn = words(x.size, 32, seed, offset).reshape(x.shape)
    return np.where(drawn >= np.uint64(threshold(p)), x * kept_scale(p), 0)


def shape(x: Any, *, p: float, seed: int, offset: int) -> Spec:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"dropout: p is {p}; it must be between 0 and 1")
    refuse_kind("dropout", x.dtype, ("float",))
    return Spec(tuple(x.shape), x.dtype)


@triton.jit
def _kept(x, word, last, scale):
    """x scaled where its word lies above the last that drops it."""
    return maths.where(word > last, x * scale, 0.0)


def _steps(x: CudaArray, p: float, seed: int, offset: int) -> CudaArray | None:
    """The result where steps are recorded; None where a kernel is to be launched."""
    words = draws.noted(draws.words, x.shape, np.dtype(np.int32), x, seed, offset)
    if words is None:
        return None
    y = allocate_result((x,), x.shape, x.dtype)
    if threshold(p) == 0:
        run((unchanged,), ((0,),), (x,), (y,), x.dtype)
    else:
        # of p = 1 the last of all
        last = np.int32(threshold(p) - 1 - (1 << 31))
        here.recorder.steps.append(
            Pointwise((_kept,), ((0, 1, 2, 3),), (x, words, last, scalar(kept_scale(p), x.dtype)), (y,), x.dtype == np.float64)
        )
    return y


def forward(x: CudaArray, *, p: float, seed: int, offset: int) -> CudaArray:
    if (y := _steps(x, p, seed, offset)) is not None:
        return y
    given, x = x, to_c_order(x)
    y = allocate(x.shape, x.dtype, x.device)
    grid = (triton.cdiv(blocks_used(x.size, 32), BLOCK),)
    launch(_kernel, grid, x, y, x.size, *kernel_seed(seed, offset), np.int64(threshold(p)), np.float64(kept_scale(p)), BLOCK=BLOCK)
    return to_elementwise_layout(y, (given,))


def samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((3, 7)), p=0.5, seed=7, offset=3),
        Sample(rng.standard_normal((2, 3, 5)), p=0.1, seed=2**63 + 1, offset=2**33),
        Sample(rng.standard_normal((1030,)), p=0.25, seed=7, offset=0),
        Sample(rng.standard_normal((5,)), p=0.0, seed=7, offset=0),
        Sample(rng.standard_normal((5,)), p=1.0, seed=7, offset=0),
        Sample(rng.standard_normal(()), p=0.3, seed=7, offset=0),
        Sample(np.zeros((0, 3)), p=0.3, seed=7, offset=0),
    ]


op(
    "dropout", reference, cpu=dropped, layout="elementwise", shape=shape, forward=forward, samples=samples,
    sizes=lambda rng: [Sample(rng.standard_normal((8192, 4096)), p=0.1, seed=7, offset=0)],
    work=lambda x, *, p, seed, offset: Work(2 * x.size, 2 * x.size * x.dtype.itemsize),
    rule=lambda g, p, seed, offset: ops.dropout(g, p=p, seed=seed, offset=offset),
    backward=lambda g, p, seed, offset: forward(g, p=p, seed=seed, offset=offset),
    cpu_backward=lambda g, p, seed, offset: dropped(g, p, seed, offset),
    doc="Zero each element with probability p, drawn from (seed, offset) in C order, and scale the others by 1 / (1 - p).",
)  # fmt: skip
