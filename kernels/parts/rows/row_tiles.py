"""Arrays seen as rows along one dim, and tiles of several rows: what softmax, scans, layer norm and cross-entropy walk in."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.parts.configs.spaces import rows_problem, rows_space
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.launch_rules import cdiv, config_of, next_power_of_2
from tritensor.kernels.parts.reduction import upcast
from tritensor.ops.array import CudaArray, reshape_strides
from tritensor.ops.tuning.tunables import tunable

WHOLE = 16384  # columns a program keeps in registers; longer rows are walked twice
TILE = 4096  # elements of one step of that walk, and of a tile of several short rows


class Rows(NamedTuple):
    """An array as (batch, rows, columns) with three strides; `rows` is the direction in which memory runs where columns do not."""

    array: CudaArray
    strides: tuple[int, int, int]


class RowTile(NamedTuple):
    """The choice of a tile of rows: BM rows and BN columns, whether BN holds a whole row, the warps of a program."""

    BM: int
    BN: int
    whole: bool
    warps: int


class RowTiles(NamedTuple):
    """Sizes of (batch, rows, columns), and the tile: rows BM, columns BN; WHOLE if BN holds a row."""

    batch: int
    rows: int
    columns: int
    BM: int
    BN: int
    whole: bool
    warps: int

    @property
    def full(self) -> bool:
        """Whether a row is as long as the tile, which then needs no mask along it."""
        return self.whole and self.columns == self.BN


def row_tunable(name: str) -> None:
    """Declare a kernel that `tiles_for` gives a tile to."""
    tunable(name, RowTile, rows_space, rows_problem)


def split_shape(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """(elements before dim, along dim, after it); a 0-d array is one row of one."""
    if not shape:
        return 1, 1, 1
    return math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])


def as_rows(x: CudaArray, dim: int) -> Rows:
    """x seen along dim, without a copy where its strides allow."""
    before, n, after = split_shape(x.shape, dim)
    strides = reshape_strides(x.shape, x.strides, (before, n, after))
    # rows at uneven distances have no three strides: they are copied
    if strides is None:
        x = to_c_order(x)
        strides = (n * after, after, 1)
    outer, along, inner = strides
    return Rows(x, (0, outer, along) if after == 1 else (outer, inner, along))


def tiles_for(
    kernel: str, shape: tuple[int, ...], dim: int, dtype: np.dtype, limit: int = WHOLE, tile: int = TILE, size: int = 0,
    few_warps: bool = False,
) -> RowTiles:  # fmt: skip
    """The tile that a kernel gets for rows of `dtype`, which it keeps in `size` bytes an element (0: those of the type): the rule's, a tuned or a
    forced one. few_warps: twice as many elements to a thread in 16 bits, of a kernel in which what each thread does once a row weighs more."""
    size = size or dtype.itemsize
    rule = row_tiles(shape, dim, size, limit, tile)
    if few_warps and rule.whole and size == 2:
        rule = rule._replace(warps=max(rule.warps // 2, 1))
    chosen = config_of(kernel, (*split_shape(shape, dim), size, dtype), RowTile(*rule[3:]))
    return RowTiles(rule.batch, rule.rows, rule.columns, chosen.BM, chosen.BN, chosen.whole, chosen.warps)


def row_tiles(shape: tuple[int, ...], dim: int, size: int, limit: int = WHOLE, tile: int = TILE) -> RowTiles:
    """The tile of a shape of elements of `size` bytes. `limit` and `tile` are arguments so that a test reaches long rows with short ones."""
    limit, tile = (limit // 2, tile // 2) if size > 4 else (limit, tile)
    before, n, after = split_shape(shape, dim)
    batch, rows = (1, before) if after == 1 else (before, after)
    columns = max(next_power_of_2(n), 1)
    if columns <= limit and (after == 1 or columns * min(next_power_of_2(rows), 16) <= limit):
        high = min(
            next_power_of_2(rows), max(tile // columns, 1) if after == 1 else max(min(tile // columns, 128), min(16, next_power_of_2(rows)))
        )
        while batch * cdiv(rows, high) < 264 and high * columns > 512 and high > (1 if after == 1 else 16):
            high //= 2
        share = 256 if size > 4 else 512 if size > 2 or after > 1 else 1024  # elements of a warp: 16 registers of a thread, of 16 bits 32
        return RowTiles(batch, rows, n, high, columns, True, max(4, min(16, high * columns // share)))
    high = 1 if after == 1 else min(next_power_of_2(rows), 32)
    return RowTiles(batch, rows, n, high, max(tile // high, 1), False, 8)


@triton.jit
def place(rows, BM: tl.constexpr):
    """This program's place: (batch, row numbers, which of them are inside)."""
    blocks = tl.cdiv(rows, BM)
    pid = tl.program_id(0)
    row = (pid % blocks) * BM + tl.arange(0, BM)
    return (pid // blocks).to(tl.int64), row.to(tl.int64), row < rows


@triton.jit
def load(x, b, row, col, strides, inside, other, UNIT: tl.constexpr):
    """A tile (rows, cols) in float32 or wider. UNIT names the stride known to be 1: 1 along rows, 2 along columns."""
    if UNIT == 2:
        pointers = x + b * strides[0] + (row * strides[1])[:, None] + col[None, :]
    elif UNIT == 1:
        pointers = x + b * strides[0] + row[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    else:
        pointers = x + b * strides[0] + (row * strides[1])[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    return upcast(tl.load(pointers, mask=inside, other=other))


@triton.jit
def store(y, value, b, row, col, strides, inside, UNIT: tl.constexpr):
    """A tile (rows, cols) of a C-ordered result, rounded once."""
    tl.static_assert(UNIT == 1 or UNIT == 2, "a C-ordered result runs along its rows or its columns")
    if UNIT == 2:
        pointers = y + b * strides[0] + (row * strides[1])[:, None] + col[None, :]
    else:
        pointers = y + b * strides[0] + row[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    tl.store(pointers, value.to(y.dtype.element_ty), mask=inside)


def unit(strides: tuple[int, int, int]) -> int:
    """The stride that is 1: 2 that of columns, 1 that of rows, 0 neither."""
    return 2 if strides[2] == 1 else 1 if strides[1] == 1 else 0


def align(columns: int) -> int:
    """A power of two that divides the number of columns: with it a masked access stays wide."""
    return math.gcd(8, columns)
