"""Axes of a reduction: arrays of one shape as rows (kept axes) of columns (reduced axes), and their tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts.launch_rules import cdiv, next_power_of_2
from tritensor.kernels.parts.view_arithmetic import merge_axes
from tritensor.ops.array import CudaArray
from tritensor.ops.table import ops

TILE = 8192  # bytes of state that one program holds at a time: 16 registers of each of its 128 threads
SPLIT = 4096  # elements a program reads before its rows are shared among several programs
PROGRAMS = 528  # programs that fill the largest GPU: 132 multiprocessors, 4 each
LONGEST = 256  # tiles that one program folds at most: keeps the error of a sum flat


@lru_cache(maxsize=4096)
def reduced(shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape that is left when `dim` is reduced."""
    if keepdim:
        return tuple(1 if a in dim else n for a, n in enumerate(shape))
    return tuple(n for a, n in enumerate(shape) if a not in dim)


def count(shape: tuple[int, ...], dim: tuple[int, ...]) -> int:
    """The number of elements that are reduced to one."""
    return math.prod(shape[a] for a in dim)


class ReductionView(NamedTuple):
    """Arrays of one shape seen as (rows, outer, inner): kept axes, reduced axes, and the innermost of the reduced."""

    rows: int
    count: int
    kept: tuple[int, ...]
    kept_strides: tuple[tuple[int, ...], ...]
    outer: tuple[int, ...]
    outer_strides: tuple[tuple[int, ...], ...]
    inner: int
    inner_strides: tuple[int, ...]
    kept_kinds: tuple[int, ...]
    inner_kinds: tuple[int, ...]
    align: int
    long_offsets: bool


def _merged(
    shape: tuple[int, ...], axes: Sequence[int], strides: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Sizes and, for each array, strides of some axes; one of a single element where there are none."""
    sizes, steps = merge_axes([shape[a] for a in axes], [[s[a] for a in axes] for s in strides])
    return (sizes, steps) if sizes else ((1,), [(0,) for _ in strides])


def _kind(stride: int) -> int:
    return stride if stride in (0, 1) else -1


@lru_cache(maxsize=4096)
def layout(shape: tuple[int, ...], dims: tuple[int, ...], strides: tuple[tuple[int, ...], ...], lead: int, ordered: bool) -> ReductionView:
    """See arrays of `shape` as (rows, outer, inner). Unless `ordered`, array number `lead` says which axis is innermost."""
    kept, kept_steps = _merged(shape, [a for a in range(len(shape)) if a not in dims], strides)
    reduced, steps = _merged(shape, dims if ordered else sorted(dims, key=lambda a: -abs(strides[lead][a])), strides)
    inner = reduced[-1]
    outer, outer_steps = (reduced[:-1], [s[:-1] for s in steps]) if len(reduced) > 1 else _merged(shape, (), strides)
    inner_kinds = tuple(_kind(s[-1]) for s in steps)
    kept_kinds = tuple(1 if len(kept) == 1 and s == (1,) else -1 for s in kept_steps)
    numbers = [inner] + [k for s in outer_steps for k in s] + [s[0] for s, kind in zip(kept_steps, kept_kinds, strict=True) if kind != 1]
    reach = max((sum(abs(k) * (n - 1) for n, k in zip(shape, s, strict=True)) for s in strides), default=0)
    return ReductionView(
        rows=math.prod(kept), count=math.prod(reduced), kept=kept, kept_strides=tuple(kept_steps),
        outer=outer, outer_strides=tuple(outer_steps), inner=inner, inner_strides=tuple(s[-1] for s in steps),
        kept_kinds=kept_kinds, inner_kinds=inner_kinds, align=math.gcd(8, *numbers), long_offsets=max(reach, math.prod(shape)) >= 2**31,
    )  # fmt: skip


class Blocks(NamedTuple):
    """A tile of a reduction, and among how many programs the tiles of a row are shared (0: as the rule says for that tile)."""

    rows: int
    columns: int
    splits: int = 0


def blocks(rows: int, inner: int, along_rows: bool, size: int, least: int = 0) -> tuple[int, int]:
    """Rows and columns of a tile of elements that take `size` bytes each: long where memory runs along, small enough that small
    problems use many programs. `least` are the elements of a tile at least, however large their state is."""
    tile = max(TILE // next_power_of_2(size), least)
    if along_rows:
        tile_rows = min(next_power_of_2(rows), 128)
        return tile_rows, min(next_power_of_2(inner), max(tile // tile_rows, 1))
    tile_columns = min(next_power_of_2(inner), tile)
    tile_rows = min(next_power_of_2(rows), tile // tile_columns)
    while cdiv(rows, tile_rows) < PROGRAMS // 4 and tile_rows * tile_columns > 256 and tile_rows > 1:
        tile_rows //= 2
    return tile_rows, tile_columns


def reduction_blocks(rows: int, inner: int, along_rows: bool, size: int) -> tuple[int, int]:
    """The same of what is folded: where rows are enough, each warp has rows of its own, whose totals meet in it, and not in shared memory."""
    if along_rows:
        return blocks(rows, inner, along_rows, size)
    least = (2048 if cdiv(rows, 8) >= PROGRAMS else 1024) if size <= 12 else 0  # more states of 64 bits would spill
    tile_rows, tile_columns = blocks(rows, inner, along_rows, size, least)
    while tile_columns > 128 and cdiv(rows, 2 * tile_rows) >= PROGRAMS:
        tile_rows, tile_columns = 2 * tile_rows, tile_columns // 2
    return tile_rows, tile_columns


def splits_of(row_blocks: int, tiles: int, tile: int) -> int:
    """Among how many programs the tiles of a row are shared."""
    wanted = min(cdiv(PROGRAMS, max(row_blocks, 1)), cdiv(tiles * tile, SPLIT), cdiv(tiles, 2))
    return max(1, wanted if row_blocks < PROGRAMS // 2 else 1, cdiv(tiles, LONGEST))


# Reduced arrays laid along the axes that were reduced.
def along(y: CudaArray, shape: tuple[int, ...], dim: tuple[int, ...]) -> CudaArray:
    """A reduced array (with or without its dims) as a view of the shape it was reduced from."""
    return y.reshape(reduced(shape, dim, True)).expand(shape)


def along_host(y: np.ndarray, shape: tuple[int, ...], dim: tuple[int, ...]) -> np.ndarray:
    """The same on the CPU; a small gradient is written out, which is cheaper than numpy's view of it."""
    if math.prod(shape) <= 1024:
        out = np.empty(shape, y.dtype)
        out[...] = y if y.ndim == 0 else y.reshape(reduced(shape, dim, True))
        return out
    return np.broadcast_to(y.reshape(reduced(shape, dim, True)), shape)


def stretch(g: Any, shape: tuple[int, ...], dim: tuple[int, ...]) -> Any:
    """The gradient of a reduced tensor laid along the dims that were reduced."""
    kept = reduced(shape, dim, True)
    g = ops.reshape(g, shape=kept) if g.shape != kept else g
    return ops.expand(g, shape=shape) if kept != shape else g


def deviations(x: Any, dim: tuple[int, ...]) -> Any:
    """A tensor less its mean over dims, which is taken twice, the second time of what the first left: so that of a constant nothing is left."""
    y = ops.sub(x, ops.mean(x, dim=dim, keepdim=True))
    rest = ops.mean(y, dim=dim, keepdim=True)
    return ops.sub(y, ops.where(ops.isfinite(rest), rest, 0.0))  # of an infinite mean nothing is left
