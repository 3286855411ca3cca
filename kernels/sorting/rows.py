"""Rows of an array in order on the device: tiles in registers where a row fits one, a radix sort where it does not; the first k in rounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.indices.radix_sort import sort_keys
from tritensor.kernels.parts.launch_rules import cdiv, config_of, next_power_of_2
from tritensor.kernels.parts.rows.row_tiles import Rows, as_rows, split_shape, unit
from tritensor.kernels.sorting.bitonic import sorted_rows
from tritensor.kernels.sorting.ordered_keys import is_signed, key_bits, ordered
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.tunables import powers, tile_problem, tunable

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
NARROW, WIDE = 1024, 512  # the longest row that a tile sorts, with keys of 4 bytes and of 8
TILE = 512  # elements of a tile of several rows


class SortTile(NamedTuple):
    """Rows and columns of a tile that is sorted in registers; longer rows are cut into pieces of so many columns."""

    BM: int
    BN: int


def tile_for(rows: int, columns: int, itemsize: int) -> SortTile:
    """The tile that the rule says for rows of elements of a size."""
    across = min(max(next_power_of_2(columns), 2), WIDE if itemsize == 8 else NARROW)
    return SortTile(min(max(TILE // across, 1), next_power_of_2(rows)), across)


def _space(key: tuple[Any, ...], default: SortTile) -> list[SortTile]:
    """More or fewer rows; longer and shorter pieces of rows that no tile holds."""
    found = [default._replace(BM=default.BM * f // 4) for f in (1, 2, 8, 16)]
    if key[1] > default.BN:
        found += [default._replace(BN=n) for n in (default.BN // 2, default.BN * 2)]
    return [t for t in found if t.BM >= 1 and t.BM * t.BN <= 4096]


tunable("sort", SortTile, _space, lambda t, key: powers(t) or tile_problem(t.BM, t.BN))


@triton.jit
def _offset(b, row, col, strides, UNIT: tl.constexpr):
    """Offsets of a tile's elements; UNIT says which stride is known to be 1."""
    if UNIT == 2:
        return b * strides[0] + row * strides[1] + col
    elif UNIT == 1:
        return b * strides[0] + row + col * strides[2]
    else:
        return b * strides[0] + row * strides[1] + col * strides[2]


@triton.jit
def _far(key):
    """A key that is not before any."""
    return 0x7FFFFFFFFFFFFFFF if key.dtype == tl.int64 else 0x7FFFFFFF


# (keys, places)[row, piece, :kept] = the first `kept` pairs of every piece of BN columns in order; of elements x or of pairs before.
# The last round writes values[row, :kept] = x[row, places] instead.
@triton.jit(do_not_specialize=["rows", "pieces"])
def _sort_tiles_kernel(
    x, keys, places, new_keys, new_places, values, rows, columns, kept, pieces, x_strides, y_strides,
    FRESH: tl.constexpr, LAST: tl.constexpr, DESCENDING: tl.constexpr, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr, FIRST: tl.constexpr,
    LOG: tl.constexpr, COLUMNS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    piece = program % pieces
    row_blocks = tl.cdiv(rows, BM)
    b = (program // pieces // row_blocks).to(tl.int64)
    row = ((program // pieces % row_blocks) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]  # (BM, 1)
    col = piece * BN + tl.arange(0, BN)[None, :]  # (1, BN)
    inside = (row < rows) & (col < columns)
    line = b * rows + row
    if FRESH:
        key = ordered(tl.load(x + _offset(b, row, col.to(tl.int64), x_strides, X_UNIT), mask=inside, other=0), DESCENDING)
        place = tl.broadcast_to(col, (BM, BN))
    else:
        key = tl.load(keys + line * columns + col, mask=inside, other=0)
        place = tl.load(places + line * columns + col, mask=inside, other=0)
    key = tl.where(inside, key, _far(key))
    place = tl.where(inside, place, 0x7FFFFFFF)
    key, place = sorted_rows(key, place, LOG, COLUMNS, FIRST)
    out = tl.arange(0, FIRST)[None, :]  # (1, FIRST)
    live = (row < rows) & (out < kept)
    if LAST:
        to = _offset(b, row, out.to(tl.int64), y_strides, Y_UNIT)
        tl.store(new_places + to, place.to(tl.int64), mask=live)
        found = tl.load(x + _offset(b, row, place.to(tl.int64), x_strides, X_UNIT), mask=live, other=0)
        tl.store(values + to, found, mask=live)
    else:
        to = (line * pieces + piece) * kept + out
        tl.store(new_keys + to, key, mask=live)
        tl.store(new_places + to, place, mask=live)


def _first_in_rounds(x: CudaArray, dim: int, k: int, descending: bool, tile: SortTile, values: CudaArray, indices: CudaArray) -> None:
    """The first k in order along dim, k at most half a tile, or all of a row that fits one: in each round those of every piece stay."""
    before, n, after = split_shape(x.shape, dim)
    batch, rows = (1, before) if after == 1 else (before, after)
    source, target = as_rows(x, dim), as_rows(values, dim)
    narrow = x.dtype.itemsize < 8
    keys = places = None
    columns = n
    while True:
        pieces = cdiv(columns, tile.BN)
        high, across = tile.BM if pieces == 1 else 1, tile.BN
        kept = min(k, columns)
        first = min(max(next_power_of_2(kept), 2), across) if narrow else across
        last = pieces == 1
        new_keys = new_places = None
        if not last:
            new_keys = allocate((batch * rows, pieces * kept), INT32 if narrow else INT64, x)
            new_places = allocate((batch * rows, pieces * kept), INT32, x)
        elements = high * across
        launch(
            _sort_tiles_kernel, (batch * cdiv(rows, high) * pieces,), source.array, keys, places, new_keys, indices if last else new_places,
            values if last else None, rows, columns, kept, pieces, source.strides, target.strides, FRESH=keys is None, LAST=last,
            DESCENDING=descending, X_UNIT=unit(source.strides), Y_UNIT=unit(target.strides), FIRST=first, LOG=elements.bit_length() - 1,
            COLUMNS=across.bit_length() - 1, BM=high, BN=across, num_warps=max(min(elements // 128, 8), 1),
        )  # fmt: skip
        if last:
            return
        keys, places, columns = new_keys, new_places, pieces * kept


# keys[row, col] = the key of x, as an unsigned number of its lowest bits
@triton.jit(do_not_specialize=["rows"])
def _keys_kernel(
    x, keys, n, rows, columns, x_strides, DESCENDING: tl.constexpr, X_UNIT: tl.constexpr, SIGN: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    row, col = i // columns, i % columns
    at = _offset(row // rows, row % rows, col, x_strides, X_UNIT)
    key = ordered(tl.load(x + at, mask=i < n, other=0), DESCENDING)
    tl.store(keys + i, key ^ SIGN, mask=i < n)


# values[row, col] = x[row, order[row, col]], indices[row, col] = order[row, col], for col < kept
@triton.jit(do_not_specialize=["rows"])
def _pick_kernel(
    x, order, values, indices, n, rows, columns, kept, x_strides, y_strides, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    row, col = i // kept, i % kept
    b, row_in = row // rows, row % rows
    place = tl.load(order + row * columns + col, mask=i < n, other=0)
    found = tl.load(x + _offset(b, row_in, place, x_strides, X_UNIT), mask=i < n, other=0)
    to = _offset(b, row_in, col, y_strides, Y_UNIT)
    tl.store(values + to, found, mask=i < n)
    tl.store(indices + to, place, mask=i < n)


# dx[row, places[row, col]] = g[row, col]: no place comes twice
@triton.jit(do_not_specialize=["rows", "columns"])
def _put_kernel(g, places, dx, n, rows, columns, g_strides, i_strides, x_strides, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    row, col = i // columns, i % columns
    b, row_in = row // rows, row % rows
    place = tl.load(places + _offset(b, row_in, col, i_strides, 0), mask=i < n, other=0)
    value = tl.load(g + _offset(b, row_in, col, g_strides, 0), mask=i < n, other=0)
    tl.store(dx + _offset(b, row_in, place, x_strides, 0), value, mask=i < n)


BLOCK = 512


def _radix_order(source: Rows, rows: int, lines: int, n: int, descending: bool) -> CudaArray:
    """(lines, n) the places of every row in order."""
    x = source.array
    keys = allocate((lines, n), INT64 if x.dtype.itemsize == 8 else INT32, x)
    bits = key_bits(x.dtype)
    sign = (-(1 << 63) if bits == 64 else -(1 << 31) if bits == 32 else 1 << (bits - 1)) if is_signed(x.dtype) else 0
    launch(
        _keys_kernel, (cdiv(keys.size, BLOCK),), x, keys, keys.size, rows, n, source.strides, DESCENDING=descending,
        X_UNIT=unit(source.strides), SIGN=sign, BLOCK=BLOCK,
    )  # fmt: skip
    return sort_keys(keys, bits)[1]


def first_of_rows(x: CudaArray, dim: int, k: int, descending: bool) -> tuple[CudaArray, CudaArray]:
    """(values, indices) of the first k in order along dim, equal ones in the order of their places."""
    before, n, after = split_shape(x.shape, dim)
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :]) if x.shape else ()
    values, indices = allocate(shape, x.dtype, x), allocate(shape, INT64, x)
    if values.size == 0:
        return values, indices
    batch, rows = (1, before) if after == 1 else (before, after)
    tile = config_of("sort", (rows, n, x.dtype), tile_for(rows, n, x.dtype.itemsize))
    if n <= tile.BN or 2 * k <= tile.BN:
        _first_in_rounds(x, dim, k, descending, tile, values, indices)
        return values, indices
    source, target = as_rows(x, dim), as_rows(values, dim)
    order = _radix_order(source, rows, batch * rows, n, descending)
    launch(
        _pick_kernel, (cdiv(values.size, BLOCK),), source.array, order, values, indices, values.size, rows, n, k, source.strides, target.strides,
        X_UNIT=unit(source.strides), Y_UNIT=unit(target.strides), BLOCK=BLOCK,
    )  # fmt: skip
    return values, indices


def put_back(g: CudaArray, places: CudaArray, dx: CudaArray, dim: int) -> None:
    """dx[.., places[.., i, ..], ..] = g[.., i, ..] along dim, where no place comes twice."""
    if g.size == 0:
        return
    before, n, after = split_shape(g.shape, dim)
    rows = before if after == 1 else after
    given, at, to = as_rows(g, dim), as_rows(places, dim), as_rows(dx, dim)
    launch(
        _put_kernel, (cdiv(g.size, BLOCK),), given.array, at.array, dx, g.size, rows, n, given.strides, at.strides, to.strides, BLOCK=BLOCK,
    )  # fmt: skip
