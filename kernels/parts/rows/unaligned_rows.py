"""Rows that begin between 16-byte boundaries: a body that wide accesses reach, and edges of the few elements before and after it.

A row of 4095 elements of 16 bits begins 2 bytes earlier than a boundary, the next one 4. A program takes rows that lie V apart, V elements to 16
bytes: they all begin equally far behind a boundary, at its *phase*, so that columns are counted from that boundary, the same for all of them. VECTOR is V,
or 1 for rows that need none of it or cannot have it: then body is all of a row, and there are no edges.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import upcast
from tritensor.kernels.parts.rows import row_tiles
from tritensor.kernels.parts.rows.row_tiles import Rows, RowTiles
from tritensor.ops.array import CudaArray

ACCESS = 16  # bytes of a wide access
SHORTEST = 64  # elements of a row from which on edges of up to 2 V lanes are the lesser cost


def c_ordered_rows(x: CudaArray, columns: int) -> Rows:
    """A C-ordered array as rows."""
    return Rows(x, (0, columns, 1))


def vector_length(columns: int, *arrays: Rows) -> int:
    """V where rows of these arrays are cut at 16 bytes of the narrowest, else 1: they divide by that anyway, are short, or do not lie alike."""
    v = ACCESS // min(a.array.itemsize for a in arrays)
    steps = [a.strides[1] for a in arrays]
    if columns < SHORTEST or (columns % v == 0 and all(s % v == 0 for s in steps)):
        return 1
    alike = all(
        a.strides[0] == 0 and a.strides[2] == 1 and s >= 0 and (s - steps[0]) % v == 0 and a.array.pointer % 16 == 0
        for a, s in zip(arrays, steps, strict=True)
    )  # fmt: skip
    return v if alike else 1


def align(columns: int, *arrays: Rows) -> int:
    """A power of two, at most 8, that divides the number of columns and the strides of rows: with it a masked access stays wide."""
    return math.gcd(8, columns, *(s for a in arrays for s in a.strides[:2]))


def programs(on: RowTiles, vector: int) -> int:
    """The number of programs that walk the rows."""
    return on.batch * cdiv(on.rows, on.BM * vector) * vector if on.columns else 0


@triton.jit
def known(strides, ALIGN: tl.constexpr):
    """Strides (batch, rows, columns), the first two known to divide by ALIGN."""
    return strides[0] // ALIGN * ALIGN, strides[1] // ALIGN * ALIGN, strides[2]


@triton.jit
def place(rows, BM: tl.constexpr, ONE: tl.constexpr, VECTOR: tl.constexpr):
    """This program's place: (batch, row numbers, which of them are inside). ONE: there is one batch, which spares a division."""
    if VECTOR == 1:
        if ONE:
            b, row = tl.zeros((), tl.int64), tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
            inside = row < rows
        else:
            b, row, inside = row_tiles.place(rows, BM)
    else:
        pid = tl.program_id(0).to(tl.int64)
        row = pid // VECTOR * (BM * VECTOR) + pid % VECTOR + tl.arange(0, BM) * VECTOR
        b, inside = tl.zeros((), tl.int64), row < rows
    return b, row, inside


@triton.jit
def phase_of(first, stride, VECTOR: tl.constexpr):
    """The elements between a boundary and the beginning of the rows whose numbers are `first` modulo VECTOR."""
    return ((first % VECTOR).to(tl.int64) * stride % VECTOR).to(tl.int32)


@triton.jit
def phase(strides, VECTOR: tl.constexpr):
    """The elements between a boundary and the beginning of this program's rows."""
    return 0 if VECTOR == 1 else phase_of(tl.program_id(0), strides[1], VECTOR)


@triton.jit
def last(shift, columns, VECTOR: tl.constexpr):
    """The end of the body, counted from the boundary."""
    return columns if VECTOR == 1 else (shift + columns) // VECTOR * VECTOR


@triton.jit
def body(start, shift, columns, BN: tl.constexpr, VECTOR: tl.constexpr):
    """BN columns of the body from `start` on, and which of them are inside."""
    col = start + tl.arange(0, BN)
    if VECTOR == 1:
        within = col < columns
    else:
        within = (col >= (shift + VECTOR - 1) // VECTOR * VECTOR) & (col < (shift + columns) // VECTOR * VECTOR)
    return col, within


@triton.jit
def edges(shift, columns, VECTOR: tl.constexpr):
    """The columns before and after the body, 2 VECTOR of them, and which are inside."""
    lane = tl.arange(0, 2 * VECTOR)
    end = (shift + columns) // VECTOR * VECTOR
    col = tl.where(lane < VECTOR, shift + lane, end + lane - VECTOR)
    return col, tl.where(lane < VECTOR, col < (shift + VECTOR - 1) // VECTOR * VECTOR, col < shift + columns)


@triton.jit
def starts(row, stride, shift, VECTOR: tl.constexpr):
    """The boundary before each row: a multiple of VECTOR, and known to be one."""
    return (row * stride - shift) // VECTOR * VECTOR


@triton.jit
def load(x, b, row, col, strides, shift, inside, other, UNIT: tl.constexpr, VECTOR: tl.constexpr):
    """A tile (rows, cols) in float32 or wider. UNIT names the stride known to be 1: 1 along rows, 2 along columns."""
    if VECTOR == 1:
        value = row_tiles.load(x, b, row, col, strides, inside, other, UNIT)
    else:
        value = upcast(tl.load(x + starts(row, strides[1], shift, VECTOR)[:, None] + col[None, :], mask=inside, other=other))
    return value


@triton.jit
def store(y, value, b, row, col, strides, shift, inside, UNIT: tl.constexpr, VECTOR: tl.constexpr):
    """A tile (rows, cols) of a C-ordered result, rounded once."""
    if VECTOR == 1:
        row_tiles.store(y, value, b, row, col, strides, inside, UNIT)
    else:
        tl.store(y + starts(row, strides[1], shift, VECTOR)[:, None] + col[None, :], value.to(y.dtype.element_ty), mask=inside)
