"""The kernels of the planted ops: the sound ones, and each error beside what it spoils."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def held(x, at, mask):
    """What is computed in: float32 for 16-bit floats."""
    v = tl.load(x + at, mask=mask, other=0.0)
    return v if x.dtype.element_ty == tl.float64 else v.to(tl.float32)


# y = scale x^2
@triton.jit
def squares(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(y + i, scale.to(v.dtype) * v * v, mask=i < n)


@triton.jit
def squares_in_place(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    v = v * v
    tl.store(x + i, v, mask=i < n)
    tl.store(y + i, scale.to(v.dtype) * v, mask=i < n)


@triton.jit
def squares_peeking(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, (i < n) | (i == 7))
    tl.store(y + i, scale.to(v.dtype) * v * v, mask=i < n)


@triton.jit
def squares_without_nan(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(y + i, tl.maximum(scale.to(v.dtype) * v * v, float("-inf")), mask=i < n)


@triton.jit
def squares_rounded(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(y + i, scale.to(v.dtype) * (v * v).to(tl.float16).to(v.dtype), mask=i < n)


@triton.jit
def squares_whole_blocks(x, y, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n // 16 * 16
    v = held(x, i, inside)
    tl.store(y + i, scale.to(v.dtype) * v * v, mask=inside)


# dx = 2 scale g x
@triton.jit
def squares_back(g, x, dx, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(dx + i, 2 * scale.to(v.dtype) * v * held(g, i, i < n), mask=i < n)


@triton.jit
def squares_back_negative(g, x, dx, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(dx + i, -2 * scale.to(v.dtype) * v * held(g, i, i < n), mask=i < n)


@triton.jit
def squares_back_without_g(g, x, dx, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(dx + i, 2 * scale.to(v.dtype) * v, mask=i < n)


@triton.jit
def squares_back_adding(g, x, dx, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = held(x, i, i < n)
    tl.store(dx + i, held(dx, i, i < n) + 2 * scale.to(v.dtype) * v * held(g, i, i < n), mask=i < n)


# y = sum of a row
@triton.jit
def total(x, y, columns, row, column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    s = tl.sum(held(x, r * row + tl.arange(0, BLOCK) * column, tl.arange(0, BLOCK) < columns), 0)
    for start in range(BLOCK, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        s += tl.sum(held(x, r * row + c * column, c < columns), 0)
    tl.store(y + r, s)


@triton.jit
def total_first_block(x, y, columns, row, column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r, tl.sum(held(x, r * row + c * column, c < columns), 0))


@triton.jit
def total_rounding(x, y, columns, row, column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    kind: tl.constexpr = y.dtype.element_ty
    s = tl.zeros((BLOCK,), kind)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        s = (s + held(x, r * row + c * column, c < columns)).to(kind)
    tl.store(y + r, tl.sum(s if kind == tl.float64 else s.to(tl.float32), 0))


@triton.jit
def total_tail_twice(x, y, columns, row, column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    s = tl.sum(held(x, r * row + tl.arange(0, BLOCK) * column, tl.arange(0, BLOCK) < columns), 0)
    for start in range(BLOCK, columns, BLOCK):
        c = tl.minimum(start, columns - BLOCK) + tl.arange(0, BLOCK)
        s += tl.sum(held(x, r * row + c * column, c < columns), 0)
    tl.store(y + r, s)


@triton.jit
def total_without_other(x, y, columns, row, column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    s = tl.zeros((BLOCK,), kind)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        s += tl.load(x + r * row + c * column, mask=c < columns).to(kind)
    tl.store(y + r, tl.sum(s, 0))


@triton.jit
def total_back(g, dx, columns, row, column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    up = tl.load(g + r)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        tl.store(dx + r * row + c * column, up, mask=c < columns)


# y = x b
@triton.jit
def rows(x, b, y, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        tl.store(y + r * columns + c, held(x, r * columns + c, c < columns) * held(b, c, c < columns), mask=c < columns)


@triton.jit
def rows_without_nan(x, b, y, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = held(x, r * columns + c, c < columns) * held(b, c, c < columns)
        tl.store(y + r * columns + c, tl.where(v == v, v, 0.0), mask=c < columns)


@triton.jit
def rows_clamped(x, b, y, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.minimum(held(x, r * columns + c, c < columns), 65504.0)
        tl.store(y + r * columns + c, v * held(b, c, c < columns), mask=c < columns)


@triton.jit
def rows_spreading(x, b, y, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = held(x, r * columns + c, c < columns) * held(b, c, c < columns)
        tl.store(y + r * columns + c, v + 0 * tl.sum(v, 0), mask=c < columns)


# dx = g b;  db = sum over rows of g x
@triton.jit
def rows_back(g, x, b, dx, db, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        up = held(g, r * columns + c, c < columns)
        tl.store(dx + r * columns + c, up * held(b, c, c < columns), mask=c < columns)
        tl.atomic_add(db + c, up * held(x, r * columns + c, c < columns), mask=c < columns)


@triton.jit
def rows_back_confused(g, x, b, dx, db, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        up = held(g, r * columns + c, c < columns)
        tl.store(dx + r * columns + c, up * held(x, r * columns + c, c < columns), mask=c < columns)
        tl.atomic_add(db + c, up * held(b, c, c < columns), mask=c < columns)


@triton.jit
def rows_back_racing(g, x, b, dx, db, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        up = held(g, r * columns + c, c < columns)
        tl.store(dx + r * columns + c, up * held(b, c, c < columns), mask=c < columns)
        v = up * held(x, r * columns + c, c < columns)
        tl.store(db + c, tl.load(db + c, mask=c < columns) + v, mask=c < columns)


@triton.jit
def rows_back_biased(g, x, b, dx, db, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    off = 1.01 if dx.dtype.element_ty.primitive_bitwidth == 16 else 1.0
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        up = held(g, r * columns + c, c < columns)
        tl.store(dx + r * columns + c, up * held(b, c, c < columns) * off, mask=c < columns)
        tl.atomic_add(db + c, up * held(x, r * columns + c, c < columns), mask=c < columns)
