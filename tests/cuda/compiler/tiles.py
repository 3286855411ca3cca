"""Kernels that copy, gather and multiply tiles through tensor descriptors, and arrays to launch them on."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty, from_host

GPU = device("cuda", 0)
F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
FP8 = np.dtype(ml_dtypes.float8_e4m3fn)


@triton.jit
def copy(x, y, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    y.store([i, j], x.load([i, j]))


@triton.jit
def copy_row(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N
    y.store([i], x.load([i]))


@triton.jit
def copy_cube(x, y, M: tl.constexpr, N: tl.constexpr):
    i, j, k = tl.program_id(0), tl.program_id(1) * M, tl.program_id(2) * N
    y.store([i, j, k], x.load([i, j, k]))


@triton.jit
def gathered(x, y, rows, scale, M: tl.constexpr, N: tl.constexpr):
    """A map between plain addresses and numbers: y[i] = scale * x[rows[i]]."""
    i = tl.program_id(0)
    row = tl.load(rows + i)
    y.store([i, 0], x.load([row, 0]) * scale)


@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BLOCK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total.to(c.dtype))


@triton.jit
def in_a_tuple(pair, N: tl.constexpr):
    i = tl.program_id(0) * N
    pair[1].store([i, 0], pair[0].load([i, 0]))


@triton.jit
def two_stores(x, y, N: tl.constexpr):
    y.store([0, 0], x.load([tl.program_id(0) * N, 0]))


def on_gpu(x: Any) -> CudaArray:
    found = from_host(np.asarray(x), GPU)
    assert isinstance(found, CudaArray)
    return found


def sample(*shape: int, dtype: np.dtype = F32) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 240).reshape(shape).astype(dtype)


def copied(x: CudaArray, padding: str = "zero", block: int = 32) -> CudaArray:
    y = on_gpu(np.full(x.shape, 7, x.dtype))
    grid = (-(-x.shape[0] // block), -(-x.shape[1] // block))
    launch(copy, grid, TensorDescriptor(x, (block, block), padding), TensorDescriptor(y, (block, block)), M=block, N=block)
    return y


class Copies:
    """A corner that copies by tiles, and how often its Python ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, x: CudaArray) -> CudaArray:
        self.runs += 1
        y = empty(x.shape, x.dtype, GPU)
        assert isinstance(y, CudaArray)
        launch(copy, (1, 1), TensorDescriptor(x[4:], (32, 32)), TensorDescriptor(y, (32, 32)), M=32, N=32)
        return y
