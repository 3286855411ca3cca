"""Kernels as their authors write them for Triton alone, for the tests of this room."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scaled_sum(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside, other=0.0)
    y = tl.load(y_ptr + i, mask=inside, other=0.0)
    tl.store(out_ptr + i, x + scale * y, mask=inside)


@triton.jit
def scaled_product(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x * y * scale, mask=i < n)


@triton.jit
def strided_copy(x_ptr, out_ptr, rows, columns, stride_row, stride_column, FLIP: tl.constexpr = False, BLOCK: tl.constexpr = 16):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_row + j * stride_column, mask=j < columns, other=0.0)
    if FLIP:
        x = -x
    tl.store(out_ptr + row * columns + j, x, mask=j < columns)


@triton.jit
def square(x):
    return x * x


@triton.jit
def mapped(x_ptr, out_ptr, n, f, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, f(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)


@triton.jit
def accumulate(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@triton.jit
def tiles_times_two(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([r, c], x.load([r, c]) * 2)


@triton.jit
def described_inside(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS])
    r, c = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out = tl.make_tensor_descriptor(out_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS])
    out.store([r, c], x.load([r, c]) + 1)
