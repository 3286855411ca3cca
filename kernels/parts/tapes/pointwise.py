"""Pointwise tapes: one kernel that runs any tape of formulas over strided arrays, of which an elementwise op is the shortest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.configs.element_tiles import FEW, HEAVY, LARGE, SMALL, ElementTile, Heavy
from tritensor.kernels.parts.launch_rules import config_of
from tritensor.kernels.parts.tapes.separate_steps import arguments, between, read, steps_of, told
from tritensor.kernels.parts.tapes.tape import INDEX, Places, Tape
from tritensor.kernels.parts.view_arithmetic import merge_axes
from tritensor.ops.array import CudaArray


@triton.jit
def _coordinates(row, sizes):
    """Coordinates of a row number along every axis but the last, innermost first."""
    found = ()
    for d in tl.static_range(len(sizes) - 1):
        if d == len(sizes) - 2:
            found = found + (row,)  # type: ignore[assignment]
        else:
            found = found + (row % sizes[len(sizes) - 2 - d],)  # type: ignore[assignment]
            row = row // sizes[len(sizes) - 2 - d]
    return found


@triton.jit
def _offset(row, col, coordinates, strides, LAST: tl.constexpr):
    """sum of coordinate * stride. LAST tells what the compiler must know of the last axis: 0 it is broadcast, 1 its stride
    is 1, 2 any other, 3 any other, but the axis before it has stride 1."""
    offset = tl.zeros_like(row)  # (rows, 1)
    for d in tl.static_range(len(strides) - 1):
        if d == 0 and LAST == 3:
            offset += coordinates[d]
        else:
            offset += coordinates[d] * strides[len(strides) - 2 - d]
    if LAST == 1:
        offset = offset + col  # (rows, cols)
    elif LAST != 0:
        offset = offset + col * strides[len(strides) - 1]
    return offset


@triton.jit
def _loaded(ins, scalars, row, col, coordinates, rows, cols, strides, first, LAST: tl.constexpr, MASKED: tl.constexpr):
    """Every operand's tile, then the scalars."""
    found = ()
    for i in tl.static_range(len(ins)):
        at = ins[i] + _offset(row, col, coordinates, strides[first + i], LAST[first + i])
        if not ins[i].dtype.is_ptr():  # places, which are where they are
            x = at
        elif MASKED:
            mask = (row < rows) if LAST[first + i] == 0 else (row < rows) & (col < cols)
            x = tl.load(at, mask=mask, other=1)
        else:
            x = tl.load(at)
        found = found + (read(x),)  # type: ignore[assignment]
    for i in tl.static_range(len(scalars)):
        found = found + (tl.broadcast_to(scalars[i], (1, 1)),)  # type: ignore[assignment]
    return found


@triton.jit
def _tile(
    outs, ins, scalars, row, col, rows, sizes, strides,
    STEPS: tl.constexpr, LAST: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    cols = sizes[len(sizes) - 1]
    coordinates = _coordinates(row, sizes)
    values = _loaded(ins, scalars, row, col, coordinates, rows, cols, strides, len(outs), LAST, MASKED)
    first: tl.constexpr = len(ins) + len(scalars)
    for s in tl.static_range(len(STEPS[0])):
        y = STEPS[0][s](*arguments(values, STEPS, s))
        values = values + (between(y, STEPS, s),)  # type: ignore[assignment]
        # where it is made: until a store at the end it would take a register
        for o in tl.static_range(len(outs)):
            if STEPS[3][o] == first + s:
                y = tl.broadcast_to(maths.stored(values[STEPS[3][o]], outs[o].dtype.element_ty), (ROWS, COLS))
                at = outs[o] + _offset(row, col, coordinates, strides[o], LAST[o])
                if MASKED:
                    tl.store(at, y, mask=(row < rows) & (col < cols))
                else:
                    tl.store(at, y)


# The values of a tape are operands, scalars, then what each step makes (see Steps); outs[o] = value number stores[o], over axes collapsed as far as all
# strides allow
@triton.jit
def _kernel(
    outs, ins, scalars, rows, sizes, strides,
    STEPS: tl.constexpr, LAST: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    if LONG_OFFSETS:
        program = program.to(tl.int64)
    cols = sizes[len(sizes) - 1]
    top, left = 0, program * COLS
    if len(sizes) > 1:  # for one row a division would cost as much as the rest
        across = tl.cdiv(cols, COLS)
        top, left = program // across * ROWS, program % across * COLS
    row = top + tl.arange(0, ROWS)[:, None]  # (ROWS, 1)
    col = left + tl.arange(0, COLS)[None, :]  # (1, COLS)
    # A mask with a bound that does not divide by 16 makes every access scalar: only the edge pays for it.
    if (top + ROWS <= rows) & (left + COLS <= cols):
        _tile(outs, ins, scalars, row, col, rows, sizes, strides, STEPS, LAST, ROWS, COLS, False)
    else:
        _tile(outs, ins, scalars, row, col, rows, sizes, strides, STEPS, LAST, ROWS, COLS, True)


class Plan(NamedTuple):
    """A call cut into tiles: collapsed sizes, strides of every array over them, what is known of last strides, the tile."""

    grid: tuple[int]
    rows: int
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    long_offsets: bool
    tile: tuple[int, int]
    crossed: bool


def collapse(shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merge neighbouring axes that every array steps through evenly, and drop axes of size 1; at least one axis is left."""
    sizes, merged = merge_axes(shape, strides)
    return (sizes, tuple(merged)) if sizes else ((1,), ((1,),) * len(strides))


def _expanded(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """An array's strides over the broadcast shape."""
    lead = len(shape) - len(own)
    return (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(own, strides, strict=True))


def _tile_shape(rows: int, cols: int, crossed: bool, large: int = LARGE, exact: int = 0) -> tuple[int, int]:
    """Rows and columns of a tile, of `exact` elements where that is not 0. `crossed`: some array is contiguous along the rows, so that a square
    tile serves both ways."""
    total = exact or (SMALL if rows * cols <= FEW else large)
    if rows == 1:
        return 1, total
    across = total
    if crossed:
        across = 32 if total >= LARGE else 16
    else:
        while across > 16 and -(-cols // across) * across > 1.25 * cols:
            across //= 2
    across = min(across, triton.next_power_of_2(cols))
    return min(total // across, triton.next_power_of_2(rows)), across


@lru_cache(maxsize=4096)
def _plan(shape: tuple[int, ...], layouts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], large: int = LARGE, exact: int = 0) -> Plan:
    """The plan of a call with result `shape` and arrays of these (shape, strides), in tiles of `large` elements where there are many, of `exact`
    whatever there is where that is not 0."""
    expanded = [_expanded(shape, own, steps) for own, steps in layouts]
    # axes as the result lies, so that it is written along memory
    order = sorted(range(len(shape)), key=lambda d: -abs(expanded[0][d]))
    sizes, strides = collapse(tuple([shape[d] for d in order]), [tuple([steps[d] for d in order]) for steps in expanded])
    cols = sizes[-1]
    rows = math.prod(sizes[:-1])
    crossed = len(sizes) > 1 and any(s[-2] == 1 and s[-1] != 0 for s in strides)
    tile = _tile_shape(rows, cols, crossed, large, exact)
    reach = max(sum(abs(step) * (size - 1) for step, size in zip(s, sizes, strict=True)) for s in strides)
    grid = (-(-rows // tile[0]) * -(-cols // tile[1]),)
    long_offsets = max(reach, rows * cols) >= 2**31 - 2 * max(LARGE, exact)
    last = tuple(s[-1] if s[-1] in (0, 1) else 3 if len(s) > 1 and s[-2] == 1 else 2 for s in strides)
    return Plan(grid, rows, sizes, strides, last, long_offsets, tile, crossed)


def run_steps(
    steps: tuple[Any, ...], arrays: tuple[Any, ...], numbers: tuple[Any, ...], outs: tuple[CudaArray, ...], heavy: Heavy = None,
    given: tuple[Any, ...] | None = None,
) -> None:  # fmt: skip
    """outs[o] = value number stores[o] of `steps`, see `told`, over arrays, which broadcast to the outs' common shape, and numbers, in one launch.
    `given` is what the kernel gets for arrays where there are Places among them."""
    shape = outs[0].shape
    both = outs + arrays
    widest = max([x.itemsize for x in both])
    large = heavy.get(widest, LARGE) if heavy else LARGE
    layouts = tuple([(x.shape, x.strides) for x in both])
    plan = _plan(shape, layouts, large)
    rule = ElementTile(SMALL if plan.rows * plan.sizes[-1] <= FEW else large)
    key = (plan.rows, plan.sizes[-1], plan.crossed, widest, (arrays if arrays and given is None else outs)[0].dtype)
    tile = config_of("elementwise", key, rule)
    if tile.elements != rule.elements:
        plan = _plan(shape, layouts, large, tile.elements)
    launch(
        _kernel, plan.grid, outs, arrays if given is None else given, numbers, plan.rows, plan.sizes, plan.strides,
        STEPS=steps, LAST=plan.last, LONG_OFFSETS=plan.long_offsets, ROWS=plan.tile[0], COLS=plan.tile[1], num_warps=tile.warps,
    )  # fmt: skip


def run_tape(tape: Tape, inputs: Sequence[CudaArray | Places], numbers: Sequence[Any], outs: Sequence[CudaArray]) -> None:
    """Run a tape without folds in one launch, with the numbers that its steps' own kernels give.

    Args:
        inputs: arrays of the tape's types, any strides, that broadcast to the shape of outs; Places where
            its type is INDEX.
        numbers: as kernels get them (`scalar` in parts/elementwise.py), of the tape's types.
        outs: arrays of one shape that do not overlap, one for each of the tape's stores and of its type.
    """
    if 0 in outs[0].shape:
        return
    arrays, results = tuple(inputs), tuple(outs)
    if INDEX not in tape.inputs:
        run_steps(told(steps_of(tape)), arrays, tuple(numbers), results, HEAVY)
        return
    plan = _plan(results[0].shape, tuple([(x.shape, x.strides) for x in (*results, *arrays)]))
    places = [k for k, x in enumerate((*results, *arrays)) if type(x) is Places]
    # every tile holds whole blocks then, whatever its size: four columns at least
    by_fours = plan.sizes[-1] >= 4 and all([plan.last[k] == 1 and all([s % 4 == 0 for s in plan.strides[k][:-1]]) for k in places])
    run_steps(
        told(steps_of(tape, by_fours)), arrays, tuple(numbers), results, HEAVY, tuple([0 if type(x) is Places else x for x in arrays])
    )
