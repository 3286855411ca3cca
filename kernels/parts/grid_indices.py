"""Indices of kernels over images: the elements that a program works on, where they lie, and whether that needs 64 bits."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import triton
import triton.language as tl

from tritensor.kernels.parts.axes import PROGRAMS
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.ops.array import CudaArray

ELEMENTS, FEW = 1024, 128  # of a tile; of one where there are few
COLUMNS, ROW_COST = (1, 8, 16, 32, 64), 8  # a tile may have; of how many elements finding a row's place takes the time


@triton.jit
def positions(LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr):
    """This program's elements; in 64 bits, whose division is slow, only where the arrays need that."""
    first = tl.program_id(0)
    if LONG_OFFSETS:
        first = first.to(tl.int64)
    return first * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def place(at, channels, size, DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr):
    """Image, channel, plane, row and column of the element at a place in memory. DEEP: there are planes."""
    width = channels if CHANNELS_LAST else size[2]
    return place_of(at // width, at % width, channels, size, DEEP, CHANNELS_LAST)


@triton.jit
def place_of(row, col, channels, size, DEEP: tl.constexpr, CHANNELS_LAST: tl.constexpr):
    """The same of column `col` of a row of memory: what lies innermost, channels or columns of the image. What a row decides has the shape of `row`."""
    if CHANNELS_LAST:
        c = col
        w = row % size[2]
        rest = row // size[2]
    else:
        w = col
        rest = row
    h = rest % size[1]
    rest = rest // size[1]
    d = tl.zeros_like(rest)
    if DEEP:
        d = rest % size[0]
        rest = rest // size[0]
    if CHANNELS_LAST:
        n = rest
    else:
        c = rest % channels
        n = rest // channels
    return n, c, d, h, w


@triton.jit
def memory_at(n, c, d, h, w, channels, size, CHANNELS_LAST: tl.constexpr):
    """The inverse of place."""
    if CHANNELS_LAST:
        at = (((n * size[0] + d) * size[1] + h) * size[2] + w) * channels + c
    else:
        at = (((n * channels + c) * size[0] + d) * size[1] + h) * size[2] + w
    return at


@triton.jit
def tile_of(rows, width, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """This program's rows (ROWS, 1) and columns (1, COLS) of memory, what is inside, and where that lies."""
    across = tl.cdiv(width, COLS)
    pid = tl.program_id(0)
    row = (pid // across * ROWS + tl.arange(0, ROWS))[:, None]
    col = (pid % across * COLS + tl.arange(0, COLS))[None, :]
    if LONG_OFFSETS:
        row, col = row.to(tl.int64), col.to(tl.int64)
    return row, col, (row < rows) & (col < width), row * width + col


class Tile(NamedTuple):
    """Rows of memory and elements of each: a tile's, and the whole array's; how many programs they make."""

    rows: int
    width: int
    tile_rows: int
    tile_columns: int

    @property
    def constants(self) -> dict[str, Any]:
        """What a kernel is told as constants."""
        return {"EVEN": 1 if self.width % 8 else 8, "ROWS": self.tile_rows, "COLS": self.tile_columns}

    @property
    def programs(self) -> int:
        return cdiv(self.rows, self.tile_rows) * cdiv(self.width, self.tile_columns)


def tile(shape: tuple[int, ...], last: bool = False, elements: int = ELEMENTS) -> Tile:
    """Tiles over an image or volume (N, C, *size) in memory: of whole rows where they are short. Places are found once a row."""
    width = shape[1] if last else shape[-1]
    rows = math.prod(shape) // max(width, 1)
    columns = min(COLUMNS, key=lambda c: cdiv(width, c) * (c + ROW_COST))
    found = Tile(rows, width, elements // columns, columns)
    return found if found.programs >= PROGRAMS else found._replace(tile_rows=FEW // columns)


def long_offsets(*arrays: CudaArray) -> bool:
    """Whether offsets into one of them can pass 32 bits."""
    return any(sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) >= 1 << 31 for a in arrays)
