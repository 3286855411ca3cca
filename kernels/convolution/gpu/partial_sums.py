"""Results of convolutions, and the sum over the parts that programs share, always in the same order."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import strides
from tritensor.kernels.convolution.geometry import Sizes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.gemm import dot_accumulator
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, next_power_of_2
from tritensor.ops.array import CudaArray

Gradients = tuple[CudaArray, CudaArray | None]
_TOGETHER = 2048  # elements of a tile of parts


# dw[i] = sum over p of parts[p, i] for i < weights, db[i - weights] for those behind
@triton.jit(do_not_specialize=["many"])
def _fold_kernel(parts, dw, db, weights, size, many, BLOCK_P: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    p = tl.arange(0, BLOCK_P)
    total = tl.zeros((BLOCK,), dtype=parts.dtype.element_ty)
    for first in range(0, many, BLOCK_P):
        good = (first + p < many)[:, None] & (at < size)[None, :]
        total += tl.sum(tl.load(parts + (first + p).to(tl.int64)[:, None] * size + at[None, :], mask=good, other=0), 0)
    tl.store(dw + at, total.to(dw.dtype.element_ty), mask=at < weights)
    tl.store(db + (at - weights), total.to(db.dtype.element_ty), mask=(at >= weights) & (at < size))


def split_sum(k: int, tiles: Tiles) -> tuple[int, int]:
    """Length of one part of the summed dimension, and how many parts there are."""
    part = cdiv(cdiv(max(k, 1), tiles.block_k), tiles.split) * tiles.block_k
    return part, cdiv(max(k, 1), part)


def image_like(x: CudaArray, weight: CudaArray, channels: int, size: Sizes) -> CudaArray:
    """An empty (N, channels, *size) whose channels lie innermost if x's or weight's do."""
    shape = (x.shape[0], channels, *size)
    return allocate(shape, x.dtype, x, strides.image_strides(shape, ((x.shape, x.strides), (weight.shape, weight.strides))))


class Sums:
    """The gradients to a weight of `shape` and, where `bias` asks, to the biases of its `out` channels: what programs write into, which is the weight's
    own where one program has all of a sum, else `parts` times both, one behind the other; and the launch that adds those up."""

    def __init__(self, x: CudaArray, out: int, shape: Sizes, parts: int, bias: bool) -> None:
        stored, self.acc = dot_accumulator(x.dtype)
        self.parts, self.weights = parts, math.prod(shape)
        self.size = self.weights + out * bias
        self.dw = allocate(shape, x.dtype, x)
        self.db = allocate((out,), x.dtype, x) if bias else None
        self.into: Any = self.dw if parts == 1 and not bias else allocate((parts, self.size), stored, x)

    def add_parts(self) -> Gradients:
        """Both, after the launch that adds the parts, if any."""
        # parts are added in a launch of their own, always in one order: the same bits each time
        if self.into is not self.dw:
            together = min(next_power_of_2(self.parts), 32)
            block = max(_TOGETHER // together, 64)
            launch(
                _fold_kernel, (cdiv(self.size, block),), self.into, self.dw, self.dw if self.db is None else self.db, self.weights, self.size, self.parts,
                BLOCK_P=together, BLOCK=block,
            )  # fmt: skip
        return self.dw, self.db
