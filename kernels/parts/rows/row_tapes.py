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
from tritensor.kernels.parts.reduction import CHAIN, as_tuple
from tritensor.kernels.parts.rows import row_tiles, unaligned_rows
from tritensor.kernels.parts.rows.row_walks import walks_of, words_of
from tritensor.kernels.parts.rows.unaligned_rows import vector_length
from tritensor.kernels.parts.tapes.separate_steps import arguments, between, hidden, read, steps_of
from tritensor.kernels.parts.tapes.tape import Places, Tape
from tritensor.ops.array import CudaArray

WORDS = 65536  # of 4 bytes, that the values of a row may take in the registers of 16 warps: 128 of each thread
WHOLE = 16384  # columns of the longest row that a program keeps
TILE = 4096  # elements of a tile of several rows, and of one step of a walk


# A value is (BM, BN), (BM, 1) where it is one per row, (1, BN) where it is one per column, or (1, 1). `rows` are a program's (numbers, which of them there are,
# elements between a 16-byte boundary and their beginning), `columns` (numbers, counted from there, and which there are; None where all)
@triton.jit
def _pointers(x, rows, columns, strides, KIND: tl.constexpr, VECTOR: tl.constexpr):
    """Addresses of an array's elements. KIND is 1 where they vary along rows, and 2 more where they lie side by side along columns, else 4."""
    if VECTOR > 1 and KIND == 3 and x.dtype.is_ptr():
        x += unaligned_rows.starts(rows[0], strides[0], rows[2], VECTOR) + columns[0]
    else:
        if KIND & 1:
            x += rows[0] * strides[0]
        if KIND > 1:
            col = columns[0] if VECTOR == 1 else columns[0] - rows[2]
            x += col if KIND >> 1 == 1 else col * strides[1]
    return x


@triton.jit
def _load(x, rows, columns, strides, KIND: tl.constexpr, VECTOR: tl.constexpr):
    at = _pointers(x, rows, columns, strides, KIND, VECTOR)
    if not x.dtype.is_ptr():  # places, which are where they are
        value = tl.broadcast_to(at, (1, 1)) if KIND == 0 else at
    elif KIND == 0:
        value = tl.broadcast_to(tl.load(x), (1, 1))
    elif KIND & 1 == 0:
        value = tl.load(at) if columns[1] is None else tl.load(at, mask=columns[1], other=1)
    else:
        value = tl.load(at, mask=rows[1] if KIND < 2 or columns[1] is None else rows[1] & columns[1], other=1)
    return read(value)


@triton.jit
def _store(y, value, rows, columns, strides, KIND: tl.constexpr, VECTOR: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A value as a result; one that rows share is written by the first."""
    mask = rows[1] & (rows[0] == 0) if KIND & 1 == 0 else rows[1]
    if KIND > 1 and columns[1] is not None:
        mask = mask & columns[1]
    at = _pointers(y, rows, columns, strides, KIND, VECTOR)
    WIDTH: tl.constexpr = 1 if KIND < 2 else BN
    value = maths.stored(tl.broadcast_to(value, (BM, WIDTH)), y.dtype.element_ty)
    tl.store(tl.broadcast_to(at, (BM, WIDTH)), value, mask=tl.broadcast_to(mask, (BM, WIDTH)))


# S is the number of a fold, whose parts are: 0 map, 1 combine, 2 its fold of a tile, 3 finish, 4 identity, 5 states, 6 scalars, 7 numbers, 8 whether there is
# a finish, 9 the types of its values
@triton.jit
def _identity(SHAPE: tl.constexpr, STEPS: tl.constexpr, S: tl.constexpr):
    """The states of no elements at all."""
    state = ()
    for k in tl.static_range(len(STEPS[0][S][5])):
        state = state + (tl.full(SHAPE, STEPS[0][S][4][k], STEPS[0][S][5][k]),)
    return state


@triton.jit
def _element_states(values, rows, columns, STEPS: tl.constexpr, S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The states of a tile's elements in a fold."""
    args = ()
    for k in tl.static_range(len(STEPS[1][S])):
        args = args + (values[STEPS[1][S][k]],)
    args = args + (tl.broadcast_to(columns[0] - rows[2], (BM, BN)),)
    for k in tl.static_range(len(STEPS[0][S][7])):
        args = args + (values[STEPS[0][S][7][k]],)
    mapped = as_tuple(STEPS[0][S][0](*args), len(STEPS[0][S][5]))
    inside = tl.broadcast_to(rows[1] if columns[1] is None else rows[1] & columns[1], (BM, BN))
    outside = _identity((1, 1), STEPS, S)
    state = ()
    for k in tl.static_range(len(STEPS[0][S][5])):
        state = state + (tl.where(inside, mapped[k].to(STEPS[0][S][5][k]), outside[k]),)
    return state


@triton.jit
def _row_states(state, STEPS: tl.constexpr, S: tl.constexpr):
    """The states of a tile's rows, (BM, 1) each, of those of its elements."""
    rows = STEPS[0][S][2](state)
    found = ()
    for k in tl.static_range(len(rows)):
        found = found + (rows[k][:, None],)
    return found


@triton.jit
def _both(a, b, STEPS: tl.constexpr, S: tl.constexpr):
    """The states of two sets of elements as those of both."""
    return as_tuple(STEPS[0][S][1](*a, *b), len(STEPS[0][S][5]))


@triton.jit
def _results(values, state, STEPS: tl.constexpr, S: tl.constexpr):
    """The values of a fold of the states of rows."""
    # as every fold begins: a sum of nothing but -0 is 0
    args = _both(_identity((1, 1), STEPS, S), state, STEPS, S)
    for k in tl.static_range(len(STEPS[0][S][6])):
        args = args + (values[STEPS[0][S][6][k]],)
    found = as_tuple(STEPS[0][S][3](*args), len(STEPS[0][S][9])) if STEPS[0][S][8] else args
    made = ()
    for k in tl.static_range(len(STEPS[0][S][9])):
        y = read(found[k].to(STEPS[0][S][9][k]))
        made = made + (hidden(y) if STEPS[5] >> S & 1 else y,)
    return made


# --- rows that fit
@triton.jit
def _begun(ins, scalars, rows, columns, strides, KINDS: tl.constexpr, VECTOR: tl.constexpr):
    """The values that a tape begins with, at some columns."""
    values = ()
    for i in tl.static_range(len(ins)):
        values = values + (_load(ins[i], rows, columns, strides[i], KINDS[i], VECTOR),)
    for i in tl.static_range(len(scalars)):
        values = values + (tl.broadcast_to(scalars[i], (1, 1)),)
    return values


@triton.jit
def _store_made(
    outs, made, FIRST: tl.constexpr, rows, columns, strides, STEPS: tl.constexpr, KINDS: tl.constexpr, VECTOR: tl.constexpr, ALONG: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Those of the values from number FIRST on that are results. ALONG: those alone that vary along columns."""
    for k in tl.static_range(len(made)):
        for o in tl.static_range(len(outs)):
            if STEPS[3][o] == FIRST + k and (KINDS[len(KINDS) - len(outs) + o] > 1 or not ALONG):
                _store(
                    outs[o], made[k], rows, columns, strides[len(KINDS) - len(outs) + o], KINDS[len(KINDS) - len(outs) + o], VECTOR, BM, BN
                )  # fmt: skip


# A row has its columns, those that wide accesses reach, and edges where VECTOR is more than 1: those before and after them
@triton.jit
def _whole_row(
    outs, ins, scalars, rows, columns, edges, strides,
    STEPS: tl.constexpr, KINDS: tl.constexpr, VECTOR: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    EDGE: tl.constexpr = 2 * VECTOR
    values = _begun(ins, scalars, rows, columns, strides, KINDS, VECTOR)
    beside = _begun(ins, scalars, rows, edges, strides, KINDS, VECTOR) if VECTOR > 1 else values
    COUNT: tl.constexpr = STEPS[7]
    for s in tl.static_range(COUNT):
        if STEPS[6] >> s & 1:
            state = _row_states(_element_states(values, rows, columns, STEPS, s, BM, BN), STEPS, s)
            if VECTOR > 1:
                state = _both(state, _row_states(_element_states(beside, rows, edges, STEPS, s, BM, EDGE), STEPS, s), STEPS, s)
            made = _results(values, state, STEPS, s)
        else:
            made = (between(STEPS[0][s](*arguments(values, STEPS, s)), STEPS, s),)
        # where it is made: until a store at the end it would take registers
        _store_made(outs, made, len(values), rows, columns, strides, STEPS, KINDS, VECTOR, False, BM, BN)
        if VECTOR > 1:
            more = made if STEPS[6] >> s & 1 else (between(STEPS[0][s](*arguments(beside, STEPS, s)), STEPS, s),)
            _store_made(outs, more, len(values), rows, edges, strides, STEPS, KINDS, VECTOR, True, BM, EDGE)
            beside = beside + more
        values = values + made


# --- rows that are walked
@triton.jit
def _with_steps(found, known, STEPS: tl.constexpr, WANTED: tl.constexpr):
    """`found`, the values that a tape begins with, and those of its steps: of WANTED made anew, of others as they are known."""
    COUNT: tl.constexpr = STEPS[7]
    for s in tl.static_range(COUNT):
        if STEPS[6] >> s & 1:
            for _ in tl.static_range(len(STEPS[0][s][9])):
                found = found + (known[len(found)],)
        elif WANTED >> s & 1:
            found = found + (between(STEPS[0][s](*arguments(found, STEPS, s)), STEPS, s),)
        else:
            found = found + (known[len(found)],)
    return found


@triton.jit
def _tile_values(
    ins, known, rows, columns, strides, STEPS: tl.constexpr, KINDS: tl.constexpr, VECTOR: tl.constexpr, FIRST: tl.constexpr, WALKS: tl.constexpr,
    W: tl.constexpr
):  # fmt: skip
    """All values at some columns: of the inputs and steps that walk W needs there, of others as they are known."""
    found = ()
    for i in tl.static_range(len(ins)):
        found = found + (_load(ins[i], rows, columns, strides[i], KINDS[i], VECTOR) if WALKS[2][W][0] >> i & 1 else known[i],)
    for i in tl.static_range(FIRST - len(ins)):
        found = found + (known[len(ins) + i],)
    return _with_steps(found, known, STEPS, WALKS[2][W][1])


@triton.jit
def _start(STEPS: tl.constexpr, WALKS: tl.constexpr, W: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The states of no elements, of all folds of a walk."""
    state = ()
    for f in tl.static_range(len(WALKS[2][W][2])):
        state = state + _identity((BM, BN), STEPS, WALKS[2][W][2][f])
    return state


@triton.jit
def _own(state, STEPS: tl.constexpr, WALKS: tl.constexpr, W: tl.constexpr, F: tl.constexpr):
    """The part of the states of a walk's folds that is fold number F's."""
    own = ()
    for k in tl.static_range(len(STEPS[0][WALKS[2][W][2][F]][5])):
        own = own + (state[WALKS[2][W][3][F] + k],)
    return own


@triton.jit
def _joined(a, b, STEPS: tl.constexpr, WALKS: tl.constexpr, W: tl.constexpr):
    """The states of two sets of elements, of all folds of a walk, as those of both."""
    state = ()
    for f in tl.static_range(len(WALKS[2][W][2])):
        state = state + _both(_own(a, STEPS, WALKS, W, f), _own(b, STEPS, WALKS, W, f), STEPS, WALKS[2][W][2][f])
    return state


@triton.jit
def _tile_states(
    ins, known, rows, columns, strides,
    STEPS: tl.constexpr, KINDS: tl.constexpr, VECTOR: tl.constexpr, FIRST: tl.constexpr, WALKS: tl.constexpr,
    W: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The states of a tile's elements, of all folds of a walk."""
    values = _tile_values(ins, known, rows, columns, strides, STEPS, KINDS, VECTOR, FIRST, WALKS, W)
    state = ()
    for f in tl.static_range(len(WALKS[2][W][2])):
        state = state + _element_states(values, rows, columns, STEPS, WALKS[2][W][2][f], BM, BN)
    return state


@triton.jit
def _tile_rows(state, STEPS: tl.constexpr, WALKS: tl.constexpr, W: tl.constexpr):
    """The states of rows, of all folds of a walk."""
    found = ()
    for f in tl.static_range(len(WALKS[2][W][2])):
        found = found + _row_states(_own(state, STEPS, WALKS, W, f), STEPS, WALKS[2][W][2][f])
    return found


@triton.jit
def _closed(known, state, STEPS: tl.constexpr, FIRST: tl.constexpr, WALKS: tl.constexpr, W: tl.constexpr):
    """The values that are known when a walk is over: those of its folds, too."""
    found = ()
    for i in tl.static_range(FIRST):
        found = found + (known[i],)
    COUNT: tl.constexpr = STEPS[7]
    for s in tl.static_range(COUNT):
        if STEPS[6] >> s & 1:
            made = ()
            for f in tl.static_range(len(WALKS[2][W][2])):
                if WALKS[2][W][2][f] == s:
                    made = _results(known, _own(state, STEPS, WALKS, W, f), STEPS, s)
            for k in tl.static_range(len(STEPS[0][s][9])):
                found = found + (made[k] if len(made) > 0 else known[len(found)],)
        else:
            found = found + (known[len(found)],)
    return found


@triton.jit
def _store_tile(
    outs, ins, known, rows, columns, strides,
    STEPS: tl.constexpr, KINDS: tl.constexpr, VECTOR: tl.constexpr, FIRST: tl.constexpr, WALKS: tl.constexpr,
    W: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    values = _tile_values(ins, known, rows, columns, strides, STEPS, KINDS, VECTOR, FIRST, WALKS, W)
    _store_made(outs, values, 0, rows, columns, strides, STEPS, KINDS, VECTOR, True, BM, BN)


@triton.jit
def _columns(start, shift, n, BN: tl.constexpr, VECTOR: tl.constexpr, LONG: tl.constexpr):
    col, within = unaligned_rows.body(start, shift, n, BN, VECTOR)
    return (col.to(tl.int64) if LONG else col)[None, :], within[None, :]


@triton.jit
def _edges(shift, n, VECTOR: tl.constexpr):
    col, within = unaligned_rows.edges(shift, n, VECTOR)
    return col[None, :], within[None, :]


@triton.jit
def _walked_row(
    outs, ins, scalars, rows, n, strides,
    STEPS: tl.constexpr, KINDS: tl.constexpr, WALKS: tl.constexpr, CHAIN: tl.constexpr, VECTOR: tl.constexpr, LONG: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    first: tl.constexpr = len(ins) + len(scalars)
    known = ()
    for i in tl.static_range(len(ins)):
        known = known + (_load(ins[i], rows, (0, None), strides[i], KINDS[i], VECTOR) if KINDS[i] < 2 else 0,)
    for i in tl.static_range(len(scalars)):
        known = known + (tl.broadcast_to(scalars[i], (1, 1)),)
    begun = known
    MADE: tl.constexpr = WALKS[0]
    for _ in tl.static_range(MADE):
        known = known + (0,)
    known = _with_steps(begun, known, STEPS, WALKS[1])
    end = unaligned_rows.last(rows[2], n, VECTOR)
    edges = _edges(rows[2], n, VECTOR) if VECTOR > 1 else (0, None)
    last: tl.constexpr = WALKS[3]
    for w in tl.static_range(last):
        state = _start(STEPS, WALKS, w, BM, BN)
        # chains as in parts/reduction.py, which keep the error of a sum flat
        for link in range(0, end, CHAIN * BN):
            part = _start(STEPS, WALKS, w, BM, BN)
            for start in range(link, tl.minimum(link + CHAIN * BN, end), BN):
                columns = _columns(start, rows[2], n, BN, VECTOR, LONG)
                new = _tile_states(ins, known, rows, columns, strides, STEPS, KINDS, VECTOR, first, WALKS, w, BM, BN)
                part = _joined(part, new, STEPS, WALKS, w)
            state = _joined(state, part, STEPS, WALKS, w)
        found = _tile_rows(state, STEPS, WALKS, w)
        if VECTOR > 1:
            rest = _tile_states(ins, known, rows, edges, strides, STEPS, KINDS, VECTOR, first, WALKS, w, BM, 2 * VECTOR)
            found = _joined(found, _tile_rows(rest, STEPS, WALKS, w), STEPS, WALKS, w)
        known = _closed(known, found, STEPS, first, WALKS, w)
        known = _with_steps(begun, known, STEPS, WALKS[2][w][4])
    for o in tl.static_range(len(outs)):
        if KINDS[len(ins) + o] < 2:
            _store(outs[o], known[STEPS[3][o]], rows, (0, None), strides[len(ins) + o], KINDS[len(ins) + o], VECTOR, BM, BN)
    if WALKS[2][last][4] >= 0:
        for start in range(0, end, BN):
            columns = _columns(start, rows[2], n, BN, VECTOR, LONG)
            _store_tile(outs, ins, known, rows, columns, strides, STEPS, KINDS, VECTOR, first, WALKS, last, BM, BN)
        if VECTOR > 1:
            _store_tile(outs, ins, known, rows, edges, strides, STEPS, KINDS, VECTOR, first, WALKS, last, BM, 2 * VECTOR)


# The values of a tape are inputs, scalars, then what each step makes (see Steps); outs[o] = value number stores[o]. strides: rows' and columns' of inputs, then
# of outs. WALKS: see Walks; None where BN holds a row. FULL: it holds no more. VECTOR: see unaligned_rows.py; LEAD is an array that tells where rows begin
@triton.jit
def _row_tape_kernel(
    outs, ins, scalars, strides, rows, n,
    STEPS: tl.constexpr, KINDS: tl.constexpr, WALKS: tl.constexpr, CHAIN: tl.constexpr, ALIGN: tl.constexpr, VECTOR: tl.constexpr, LEAD: tl.constexpr,
    LONG: tl.constexpr, FULL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    _, row, here = unaligned_rows.place(rows, BM, True, VECTOR)
    n = n // ALIGN * ALIGN
    known = ()
    for i in tl.static_range(len(strides)):
        known = known + ((strides[i][0] // ALIGN * ALIGN if KINDS[i] >> 1 == 1 else strides[i][0], strides[i][1]),)
    shift = unaligned_rows.phase_of(tl.program_id(0), strides[LEAD][0], VECTOR) if VECTOR > 1 else 0
    at = (row[:, None], here[:, None], shift)
    if WALKS is not None:
        _walked_row(outs, ins, scalars, at, n, known, STEPS, KINDS, WALKS, CHAIN, VECTOR, LONG, BM, BN)
    else:
        col, within = _columns(0, shift, n, BN, VECTOR, LONG)
        columns = (col, None if FULL else within)
        edges = _edges(shift, n, VECTOR) if VECTOR > 1 else columns
        _whole_row(outs, ins, scalars, at, columns, edges, known, STEPS, KINDS, VECTOR, BM, BN)


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
    # a walk keeps sums of two lengths beside the values: 8 elements to a thread
    return Rows(high, across, whole, max(4, min(16, _floor_power(high * across * words // 2048) if whole else across // 256)))


def _kind(x: CudaArray | Places, place: str, rows: int, n: int) -> int:
    """How an array lies over (rows, n), see _pointers. Raises ShapeError where it does not."""
    if len(x.shape) != 2 or x.shape[0] not in (1, rows) or x.shape[1] not in (1, n):
        raise ShapeError(
            f"row tape: {place} is {x.shape}; of {rows} rows of {n} it is {(rows, n)}, {(rows, 1)}, {(1, n)} or (1, 1): give such a view"
        )
    down, across = [0 if size == 1 else step for size, step in zip(x.shape, x.strides, strict=True)]
    return int(down != 0) + (2 * across if across in (0, 1) else 4)


def run_rows(
    tape: Tape, inputs: Sequence[CudaArray | Places], numbers: Sequence[Any], outs: Sequence[CudaArray], rows: int, n: int
) -> None:
    """Run a tape over `rows` rows of `n` elements in one launch; its folds are over each row.

    Args:
        inputs: views of two dims of the tape's types, any strides: (rows, n), (rows, 1) one per row, (1, n) one per column, or (1, 1);
            Places for what is INDEX.
        numbers: as kernels get them, of the tape's types.
        outs: arrays of two dims that do not overlap, one for each of the tape's stores and of its type, and of the shape that its value has: as inputs.
    Raises ShapeError for arrays of other shapes. Sums are taken in another order than those of reduction.fold.
    """
    kinds = tuple([_kind(x, f"{place} {k}", rows, n) for place, xs in (("input", inputs), ("result", outs)) for k, x in enumerate(xs)])
    if rows == 0 or not outs:
        return
    along = tuple([k > 1 for k in kinds[: len(inputs)]])
    on = tile_of(rows, n, words_of(tape, along))
    both = (*inputs, *outs)
    places = [k for k, x in enumerate(inputs) if type(x) is Places]
    tiles = [k for k, kind in enumerate(kinds) if kind == 3 and k not in places]
    vector = vector_length(n, *[row_tiles.Rows(both[k], (0, both[k].strides[0], 1)) for k in tiles]) if tiles else 1  # type: ignore[arg-type]
    align = math.gcd(8, n, *[both[k].strides[0] for k, kind in enumerate(kinds) if kind == 3]) if vector == 1 else 1
    by_fours = vector == 1 and n >= 4 and all([kinds[k] >> 1 == 1 and (kinds[k] == 2 or both[k].strides[0] % 4 == 0) for k in places])
    reach = max([sum([abs(s) * (size - 1) for s, size in zip(x.strides, x.shape, strict=True)]) for x in both])
    launch(
        _row_tape_kernel, (cdiv(rows, on.BM * vector) * vector,), tuple(outs), tuple([0 if k in places else x for k, x in enumerate(inputs)]), tuple(numbers),
        tuple([x.strides for x in both]), rows, n,
        STEPS=tuple(steps_of(tape, by_fours)), KINDS=kinds, WALKS=None if on.whole else tuple(walks_of(tape, along)), CHAIN=CHAIN, ALIGN=align, VECTOR=vector,
        LEAD=tiles[0] if vector > 1 else -1, LONG=reach >= 2**31, FULL=on.whole and n == on.BN and vector == 1, BM=on.BM, BN=on.BN, num_warps=on.warps,
    )  # fmt: skip
