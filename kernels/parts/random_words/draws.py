"""Draws as formulas: numbers of a stream, each made of its place alone, so that they can be steps of a tape, with the bits of the ops that fill arrays.

A formula takes (place, seed, offset): the number of an element in C order, int32 or int64, and two int64 (see `signed`). Where four places in a row
stand side by side in a tile, and the first is a multiple of four, `by_fours` has a formula that computes each block once, and not for each of its words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground.device import device
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.random_words.normal import polar
from tritensor.kernels.parts.random_words.philox import in_order, philox
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import Drawn, StepRecorder


@triton.jit
def _block(place, seed, offset, NUMBERS: tl.constexpr):
    """The words of the block that each number is made of, so many numbers to a block."""
    block = place.to(tl.uint64) // NUMBERS + offset.to(tl.uint64)
    return philox(block, seed.to(tl.uint32), (seed >> 32).to(tl.uint32))


@triton.jit
def _first(place, NUMBERS: tl.constexpr):
    """Of every so many places in a row the first."""
    if NUMBERS == 4:
        pairs, _ = tl.split(tl.reshape(place, (place.shape[0], place.shape[1] // 4, 2, 2)))
    else:
        pairs = tl.reshape(place, (place.shape[0], place.shape[1] // 2, 2))
    first, _ = tl.split(pairs)
    return first


@triton.jit
def _of_32(place, seed, offset, MAKE: tl.constexpr, TOGETHER: tl.constexpr):
    """Four numbers made of a block's words."""
    if TOGETHER:
        a, b, c, d = MAKE(*_block(_first(place, 4), seed, offset, 4))
        y = in_order(a, b, c, d)
    else:
        a, b, c, d = MAKE(*_block(place, seed, offset, 4))
        own = place & 3
        y = tl.where(own < 2, tl.where(own == 0, a, b), tl.where(own == 2, c, d))
    return y


@triton.jit
def _long(low, high):
    return (high.to(tl.uint64) << 32) | low.to(tl.uint64)


@triton.jit
def _of_64(place, seed, offset, MAKE: tl.constexpr, TOGETHER: tl.constexpr):
    """Two numbers made of a block's words of 64 bits."""
    w0, w1, w2, w3 = _block(_first(place, 2) if TOGETHER else place, seed, offset, 2)
    a, b = MAKE(_long(w0, w1), _long(w2, w3))
    if TOGETHER:
        y = tl.interleave(a, b)
    else:
        y = tl.where((place & 1) == 0, a, b)
    return y


@triton.jit
def _from_least(w):
    return (w ^ 0x80000000).to(tl.int32, bitcast=True)


@triton.jit
def _words(a, b, c, d):
    return _from_least(a), _from_least(b), _from_least(c), _from_least(d)


@triton.jit
def _uniform(w):
    return (w >> 8).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def _uniforms(a, b, c, d):
    return _uniform(a), _uniform(b), _uniform(c), _uniform(d)


@triton.jit
def _cut(w, KEPT: tl.constexpr):
    return (_uniform(w).to(tl.int32, bitcast=True) & KEPT).to(tl.float32, bitcast=True)


@triton.jit
def _cut_to_11(a, b, c, d):
    return _cut(a, -8192), _cut(b, -8192), _cut(c, -8192), _cut(d, -8192)


@triton.jit
def _cut_to_8(a, b, c, d):
    return _cut(a, -65536), _cut(b, -65536), _cut(c, -65536), _cut(d, -65536)


@triton.jit
def _uniforms_64(a, b):
    return (a >> 11).to(tl.float64) * 1.1102230246251565e-16, (b >> 11).to(tl.float64) * 1.1102230246251565e-16


@triton.jit
def _normals(a, b, c, d):
    y0, y1 = polar(a, b)
    y2, y3 = polar(c, d)
    return y0, y1, y2, y3


# --- the formulas
@triton.jit
def words(place, seed, offset):
    """Words of 32 bits as int32, the least as the least: each word less 2^31."""
    return _of_32(place, seed, offset, _words, False)


@triton.jit
def uniforms(place, seed, offset):
    """float32 of [0, 1)."""
    return _of_32(place, seed, offset, _uniforms, False)


@triton.jit
def uniforms_float16(place, seed, offset):
    """The same cut to the digits of float16."""
    return _of_32(place, seed, offset, _cut_to_11, False)


@triton.jit
def uniforms_bfloat16(place, seed, offset):
    """The same cut to the digits of bfloat16."""
    return _of_32(place, seed, offset, _cut_to_8, False)


@triton.jit
def uniforms_float64(place, seed, offset):
    """float64 of [0, 1)."""
    return _of_64(place, seed, offset, _uniforms_64, False)


@triton.jit
def normals(place, seed, offset):
    """float32 normals."""
    return _of_32(place, seed, offset, _normals, False)


@triton.jit
def normals_float64(place, seed, offset):
    """float64 normals."""
    return _of_64(place, seed, offset, polar, False)


# --- the same of blocks
@triton.jit
def _words_by_fours(place, seed, offset):
    return _of_32(place, seed, offset, _words, True)


@triton.jit
def _uniforms_by_fours(place, seed, offset):
    return _of_32(place, seed, offset, _uniforms, True)


@triton.jit
def _uniforms_float16_by_fours(place, seed, offset):
    return _of_32(place, seed, offset, _cut_to_11, True)


@triton.jit
def _uniforms_bfloat16_by_fours(place, seed, offset):
    return _of_32(place, seed, offset, _cut_to_8, True)


@triton.jit
def _uniforms_float64_by_fours(place, seed, offset):
    return _of_64(place, seed, offset, _uniforms_64, True)


@triton.jit
def _normals_by_fours(place, seed, offset):
    return _of_32(place, seed, offset, _normals, True)


@triton.jit
def _normals_float64_by_fours(place, seed, offset):
    return _of_64(place, seed, offset, polar, True)


by_fours: dict[Any, Any] = {
    words: _words_by_fours, uniforms: _uniforms_by_fours, uniforms_float16: _uniforms_float16_by_fours, uniforms_bfloat16: _uniforms_bfloat16_by_fours,
    uniforms_float64: _uniforms_float64_by_fours, normals: _normals_by_fours, normals_float64: _normals_float64_by_fours,
}  # fmt: skip
UNIFORMS = {"float16": uniforms_float16, "bfloat16": uniforms_bfloat16, "float32": uniforms, "float64": uniforms_float64}
NORMALS = {"float16": normals, "bfloat16": normals, "float32": normals, "float64": normals_float64}


def signed(word: int) -> np.int64:
    """A seed or an offset as kernels of tapes get it."""
    return np.uint64(word & 0xFFFFFFFFFFFFFFFF).astype(np.int64)


def noted(formula: Any, shape: tuple[int, ...], dtype: np.dtype, on: CudaArray | device, seed: int, offset: int) -> CudaArray | None:
    """A C-ordered array of numbers of a stream where steps are recorded, whose step it is then; else None: a kernel is to be launched."""
    if type(here.recorder) is not StepRecorder:
        return None
    y = allocate(shape, dtype, on)
    here.recorder.steps.append(Drawn(formula, y, seed, offset))
    return y
