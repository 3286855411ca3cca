"""Row tapes: one kernel that runs any tape of formulas and folds over rows, which a program keeps in registers, or walks once for each level of folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.launch_rules import cdiv, next_power_of_2
from tritensor.kernels.parts.reduction import CHAIN, as_tuple, mapped_state, nothing
from tritensor.kernels.parts.tapes.row_walks import walks_of, words_of
from tritensor.kernels.parts.tapes.separate_steps import arguments, between, hidden, read, steps_of
from tritensor.kernels.parts.tapes.tape import Tape
from tritensor.ops.array import CudaArray

WORDS = 65536  # of 4 bytes, that the values of a row may take in the registers of 16 warps: 128 of each thread
WHOLE = 16384  # columns of the longest row that a program keeps
TILE = 4096  # elements of a tile of several rows, and of one step of a walk


# A value is (BM, BN), (BM, 1) where it is one per row, (1, BN) where it is one per column, or (1, 1)
@triton.jit
def _pointers(x, row, col, strides, KIND: tl.constexpr):
    """Addresses of an array's elements. KIND is (0 where rows share them, 0 where columns do, 1 where they lie side by side along columns, else 2)."""
    if KIND[0] != 0:
        x += row * strides[0]
    if KIND[1] == 1:
        x += col
    elif KIND[1] == 2:
        x += col * strides[1]
    return x


@triton.jit
def _inside(here, within, KIND: tl.constexpr):
    """Which elements of a value there are; None where all."""
    if KIND[0] != 0 and KIND[1] != 0 and within is not None:
        mask = here & within
    elif KIND[1] != 0:
        mask = within if KIND[0] == 0 else here
    elif KIND[0] != 0:
        mask = here
    else:
        mask = None
    return mask


@triton.jit
def _load(x, row, col, strides, here, within, KIND: tl.constexpr):
    at = _pointers(x, row, col, strides, KIND)
    mask = _inside(here, within, KIND)
    if KIND[0] == 0 and KIND[1] == 0:
        value = tl.broadcast_to(tl.load(x), (1, 1))
    elif mask is None:
        value = tl.load(at)
    else:
        value = tl.load(at, mask=mask, other=1)
    return read(value)


@triton.jit
def _store(y, value, row, col, strides, here, within, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A value as a result; one that rows share is written by the first."""
    if KIND[1] == 0:
        value = tl.broadcast_to(value, (BM, 1))
        mask = here & (row == 0) if KIND[0] == 0 else here
        at = y + row * strides[0]
    else:
        value = tl.broadcast_to(value, (BM, BN))
        mask = here if within is None else here & within
        mask = mask & (row == 0) if KIND[0] == 0 else mask
        at = tl.broadcast_to(y + row * strides[0] + (col if KIND[1] == 1 else col * strides[1]), (BM, BN))
    tl.store(at, maths.stored(value, y.dtype.element_ty), mask=mask)


@triton.jit
def _element_states(values, index, inside, PICKS: tl.constexpr, FOLD: tl.constexpr):
    """The states of a tile's elements in a fold."""
    args = ()
    for k in tl.static_range(len(PICKS)):
        args = args + (values[PICKS[k]],)  # type: ignore[assignment]
    numbers = ()
    for k in tl.static_range(len(FOLD[7])):
        numbers = numbers + (values[FOLD[7][k]],)  # type: ignore[assignment]
    return mapped_state(args, index, numbers, inside, FOLD[0], FOLD[4], FOLD[5])


@triton.jit
def _results(values, state, FOLD: tl.constexpr, KINDS: tl.constexpr, APART: tl.constexpr):
    """The values of a fold, one per row each, of the states of a tile."""
    rows = FOLD[2](state)
    found = ()
    for k in tl.static_range(len(rows)):
        found = found + (rows[k][:, None],)  # type: ignore[assignment]
    # as every fold begins: a sum of nothing but -0 is 0
    args = as_tuple(FOLD[1](*nothing(found[0].shape, FOLD[4], FOLD[5]), *found), len(FOLD[5]))
    for k in tl.static_range(len(FOLD[6])):
        args = args + (values[FOLD[6][k]],)  # type: ignore[assignment]
    found = args if FOLD[3] is None else as_tuple(FOLD[3](*args), len(KINDS))
    made = ()
    for k in tl.static_range(len(KINDS)):
        y = read(found[k].to(KINDS[k]))
        made = made + (hidden(y) if APART else y,)  # type: ignore[assignment]
    return made


# --- rows that fit
@triton.jit
def _whole_row(
    outs, ins, scalars, strides, row, col, here, within, STEPS: tl.constexpr, KINDS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    values = ()
    for i in tl.static_range(len(ins)):
        values = values + (_load(ins[i], row, col, strides[i], here, within, KINDS[i]),)
    for i in tl.static_range(len(scalars)):
        values = values + (tl.broadcast_to(scalars[i], (1, 1)),)
    inside = tl.broadcast_to(here if within is None else here & within, (BM, BN))
    index = tl.broadcast_to(col, (BM, BN))
    for s in tl.static_range(len(STEPS[0])):
        if STEPS[6] >> s & 1:
            state = _element_states(values, index, inside, STEPS[1][s], STEPS[0][s])
            made = _results(values, state, STEPS[0][s], STEPS[4][s], STEPS[5] >> s & 1)
        else:
            y = STEPS[0][s](*arguments(values, STEPS[1][s], STEPS[2] >> s & 1))
            made = (between(y, STEPS[4][s], STEPS[5] >> s & 1),)
        # where it is made: until a store at the end it would take registers
        for k in tl.static_range(len(made)):
            for o in tl.static_range(len(outs)):
                if STEPS[3][o] == len(values) + k:
                    _store(outs[o], made[k], row, col, strides[len(ins) + o], here, within, KINDS[len(ins) + o], BM, BN)
        values = values + made


# --- rows that are walked
@triton.jit
def _with_steps(found, known, STEPS: tl.constexpr, WANTED: tl.constexpr):
    """`found`, the values that a tape begins with, and those of its steps: of WANTED made anew, of others as they are known."""
    for s in tl.static_range(len(STEPS[0])):
        if STEPS[6] >> s & 1:
            for _ in tl.static_range(len(STEPS[4][s])):
                found = found + (known[len(found)],)
        elif WANTED >> s & 1:
            y = STEPS[0][s](*arguments(found, STEPS[1][s], STEPS[2] >> s & 1))
            found = found + (between(y, STEPS[4][s], STEPS[5] >> s & 1),)
        else:
            found = found + (known[len(found)],)
    return found


@triton.jit
def _tile_values(
    ins, known, strides, row, col, here, within, STEPS: tl.constexpr, KINDS: tl.constexpr, FIRST: tl.constexpr, WANTED: tl.constexpr, INPUTS: tl.constexpr
):  # fmt: skip
    """All values at some columns: of INPUTS and WANTED steps there, of others as they are known."""
    found = ()
    for i in tl.static_range(len(ins)):
        found = found + (_load(ins[i], row, col, strides[i], here, within, KINDS[i]) if INPUTS >> i & 1 else known[i],)
    for i in tl.static_range(FIRST - len(ins)):
        found = found + (known[len(ins) + i],)
    return _with_steps(found, known, STEPS, WANTED)


@triton.jit
def _start(STEPS: tl.constexpr, FOLDS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The states of no elements, of all folds of a walk."""
    state = ()
    for f in tl.static_range(len(FOLDS)):
        state = state + nothing((BM, BN), STEPS[0][FOLDS[f][0]][4], STEPS[0][FOLDS[f][0]][5])
    return state


@triton.jit
def _own(state, STEPS: tl.constexpr, FOLD: tl.constexpr):
    """The part of the states of a walk's folds that is one fold's."""
    own = ()
    for k in tl.static_range(len(STEPS[0][FOLD[0]][5])):
        own = own + (state[FOLD[1] + k],)
    return own


@triton.jit
def _joined(a, b, STEPS: tl.constexpr, FOLDS: tl.constexpr):
    """The states of two sets of elements as those of both."""
    state = ()
    for f in tl.static_range(len(FOLDS)):
        both = _own(a, STEPS, FOLDS[f]) + _own(b, STEPS, FOLDS[f])
        state = state + as_tuple(STEPS[0][FOLDS[f][0]][1](*both), len(STEPS[0][FOLDS[f][0]][5]))
    return state


@triton.jit
def _tile_states(values, index, inside, STEPS: tl.constexpr, FOLDS: tl.constexpr):
    state = ()
    for f in tl.static_range(len(FOLDS)):
        state = state + _element_states(values, index, inside, STEPS[1][FOLDS[f][0]], STEPS[0][FOLDS[f][0]])
    return state


@triton.jit
def _closed(known, state, STEPS: tl.constexpr, FIRST: tl.constexpr, FOLDS: tl.constexpr):
    """The values that are known when a walk is over: those of its folds, too."""
    found = ()
    for i in tl.static_range(FIRST):
        found = found + (known[i],)
    for s in tl.static_range(len(STEPS[0])):
        if STEPS[6] >> s & 1:
            made = ()
            for f in tl.static_range(len(FOLDS)):
                if FOLDS[f][0] == s:
                    made = _results(known, _own(state, STEPS, FOLDS[f]), STEPS[0][s], STEPS[4][s], STEPS[5] >> s & 1)
            for k in tl.static_range(len(STEPS[4][s])):
                found = found + (made[k] if len(made) > 0 else known[len(found)],)
        else:
            found = found + (known[len(found)],)
    return found


@triton.jit
def _walked_row(
    outs, ins, scalars, strides, row, n, here,
    STEPS: tl.constexpr, KINDS: tl.constexpr, WALKS: tl.constexpr, CHAIN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, LONG: tl.constexpr,
):  # fmt: skip
    first: tl.constexpr = len(ins) + len(scalars)
    known = ()
    for i in tl.static_range(len(ins)):
        known = known + (_load(ins[i], row, 0, strides[i], here, None, KINDS[i]) if KINDS[i][1] == 0 else 0,)
    for i in tl.static_range(len(scalars)):
        known = known + (tl.broadcast_to(scalars[i], (1, 1)),)
    begun = known
    for _ in tl.static_range(WALKS[0]):
        known = known + (0,)
    known = _with_steps(begun, known, STEPS, WALKS[1])
    for w in tl.static_range(len(WALKS[2])):
        state = _start(STEPS, WALKS[2][w][2], BM, BN)
        # chains as in parts/reduction.py, which keep the error of a sum flat
        for link in range(0, n, CHAIN * BN):
            part = _start(STEPS, WALKS[2][w][2], BM, BN)
            for start in range(link, tl.minimum(link + CHAIN * BN, n), BN):
                col = (start + tl.arange(0, BN))[None, :]
                col = col.to(tl.int64) if LONG else col
                within = col < n
                values = _tile_values(ins, known, strides, row, col, here, within, STEPS, KINDS, first, WALKS[2][w][1], WALKS[2][w][0])
                new = _tile_states(values, tl.broadcast_to(col, (BM, BN)), tl.broadcast_to(here & within, (BM, BN)), STEPS, WALKS[2][w][2])
                part = _joined(part, new, STEPS, WALKS[2][w][2])
            state = _joined(state, part, STEPS, WALKS[2][w][2])
        known = _closed(known, state, STEPS, first, WALKS[2][w][2])
        known = _with_steps(begun, known, STEPS, WALKS[2][w][3])
    for o in tl.static_range(len(outs)):
        if KINDS[len(ins) + o][1] == 0:
            _store(outs[o], known[STEPS[3][o]], row, 0, strides[len(ins) + o], here, None, KINDS[len(ins) + o], BM, BN)
    if len(WALKS[3]) > 0:
        for start in range(0, n, BN):
            col = (start + tl.arange(0, BN))[None, :]
            col = col.to(tl.int64) if LONG else col
            within = col < n
            values = _tile_values(ins, known, strides, row, col, here, within, STEPS, KINDS, first, WALKS[3][1], WALKS[3][0])
            for o in tl.static_range(len(outs)):
                if KINDS[len(ins) + o][1] != 0:
                    _store(outs[o], values[STEPS[3][o]], row, col, strides[len(ins) + o], here, within, KINDS[len(ins) + o], BM, BN)


# The values of a tape are inputs, scalars, then what each step makes (see Steps); outs[o] = value number stores[o]. strides: rows' and columns' of inputs, then
# of outs. WALKS: see Walks; None where BN holds a row. FULL: it holds no more
@triton.jit
def _row_tape_kernel(
    outs, ins, scalars, strides, rows, n,
    STEPS: tl.constexpr, KINDS: tl.constexpr, WALKS: tl.constexpr, CHAIN: tl.constexpr, ALIGN: tl.constexpr, LONG: tl.constexpr, FULL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    here = row < rows
    n = n // ALIGN * ALIGN
    known = ()
    for i in tl.static_range(len(strides)):
        known = known + ((strides[i][0] // ALIGN * ALIGN if KINDS[i][1] == 1 else strides[i][0], strides[i][1]),)
    if WALKS is None:
        col = tl.arange(0, BN)[None, :]
        within = None if FULL else col < n
        col = col.to(tl.int64) if LONG else col
        _whole_row(outs, ins, scalars, known, row, col, here, within, STEPS, KINDS, BM, BN)
    else:
        _walked_row(outs, ins, scalars, known, row, n, here, STEPS, KINDS, WALKS, CHAIN, BM, BN, LONG)


# --- host
class Rows(NamedTuple):
    """The tile of a row tape: BM rows of BN columns; whether that is all of a row; a program's warps."""

    BM: int
    BN: int
    whole: bool
    warps: int


def _floor_power(n: int) -> int:
    return 1 << max(n, 1).bit_length() - 1


@lru_cache(maxsize=4096)
def tile_of(rows: int, n: int, words: int) -> Rows:
    """The tile for rows of n elements whose values take so many words of each."""
    words, columns = max(words, 1), next_power_of_2(max(n, 1))
    whole = columns <= WHOLE and columns * words <= WORDS
    across = columns if whole else min(TILE, max(_floor_power(WORDS // 4 // words), 256))
    high = min(next_power_of_2(rows), max(_floor_power(min(TILE, WORDS // 8 // words) // across), 1)) if whole else 1
    while cdiv(rows, high) < 264 and high * across > 512 and high > 1:
        high //= 2
    return Rows(high, across, whole, max(4 if whole else 8, min(16, _floor_power(high * across * words // 2048))))


def _kind(x: CudaArray, place: str, rows: int, n: int) -> tuple[int, int]:
    """How an array lies over (rows, n), see _pointers. Raises ShapeError where it does not."""
    if len(x.shape) != 2 or x.shape[0] not in (1, rows) or x.shape[1] not in (1, n):
        raise ShapeError(
            f"row tape: {place} is {x.shape}; of {rows} rows of {n} it is {(rows, n)}, {(rows, 1)}, {(1, n)} or (1, 1): give such a view"
        )
    down, across = [0 if size == 1 else step for size, step in zip(x.shape, x.strides, strict=True)]
    return int(down != 0), across if across in (0, 1) else 2


def run_rows(tape: Tape, inputs: Sequence[CudaArray], numbers: Sequence[Any], outs: Sequence[CudaArray], rows: int, n: int) -> None:
    """Run a tape over `rows` rows of `n` elements in one launch; its folds are over each row.

    Args:
        inputs: views of two dims of the tape's types, any strides: (rows, n), (rows, 1) one per row, (1, n) one per column, or (1, 1).
        numbers: as kernels get them, of the tape's types.
        outs: arrays of two dims that do not overlap, one for each of the tape's stores and of its type, and of the shape that its value has: as inputs.
    Raises ShapeError for arrays of other shapes. Sums are taken in another order than those of reduction.fold.
    """
    kinds = tuple([_kind(x, f"{place} {k}", rows, n) for place, xs in (("input", inputs), ("result", outs)) for k, x in enumerate(xs)])
    if rows == 0 or not outs:
        return
    along = tuple([k[1] != 0 for k in kinds[: len(inputs)]])
    on = tile_of(rows, n, words_of(tape, along))
    both = (*inputs, *outs)
    steps = [x.strides[0] if kind[0] else 0 for x, kind in zip(both, kinds, strict=True) if kind[1] == 1]
    reach = max([sum([abs(s) * (size - 1) for s, size in zip(x.strides, x.shape, strict=True)]) for x in both])
    launch(
        _row_tape_kernel, (cdiv(rows, on.BM),), tuple(outs), tuple(inputs), tuple(numbers), tuple([x.strides for x in both]), rows, n,
        STEPS=tuple(steps_of(tape)), KINDS=kinds, WALKS=None if on.whole else tuple(walks_of(tape, along)), CHAIN=CHAIN, ALIGN=math.gcd(8, n, *steps),
        LONG=reach >= 2**31, FULL=on.whole and n == on.BN, BM=on.BM, BN=on.BN, num_warps=on.warps,
    )  # fmt: skip
