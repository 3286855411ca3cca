"""Scans along rows by any associative function, long rows in parts: each part's total, then each part from those before it (Blelloch, 1990)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import cdiv, config_of
from tritensor.kernels.parts.rows.row_tiles import RowTiles, align, as_rows, load, place, store, unit
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.tunables import tunable

tunable(
    "scan_parts", int, lambda key, default: [n for n in (default // 4, default // 2, default * 2, default * 4) if n],
    lambda n, key: "" if isinstance(n, int) and 1 <= n <= 65535 else f"parts of a row are {n!r}; a number from 1 to 65535, a grid's height, is needed",
)  # fmt: skip

PROGRAMS = 1024  # wanted where rows are taken in parts: some for each multiprocessor of any GPU
SHORTEST = 4  # steps of a part's loop


def parts_rule(programs: int, columns: int, step: int) -> int:
    """The rule: rows in as many parts as make PROGRAMS programs, each of SHORTEST steps of the loop at least; the same on every GPU, and so the bits."""
    return max(min(cdiv(PROGRAMS, max(programs, 1)), columns // (SHORTEST * step)), 1)


def in_parts(programs: int, columns: int, step: int, dtype: np.dtype) -> tuple[int, int]:
    """(parts of a row, columns of each, whole steps) where `programs` programs are enough for one part of every row."""
    key = (programs, columns, step, dtype)
    parts = config_of("scan_parts", key, parts_rule(*key[:3]))
    length = cdiv(cdiv(columns, parts), step) * step
    return max(cdiv(columns, max(length, 1)), 1), length


@triton.jit
def last_of(states, last):
    """(BM, BN) -> (BM,): of each state the one column that `last` names."""
    found = ()
    for k in tl.static_range(len(states)):
        found = found + (tl.sum(tl.where(last[None, :], states[k], 0), axis=1),)
    return found


@triton.jit
def _nothing(IDENTITY: tl.constexpr, KINDS: tl.constexpr, BM: tl.constexpr):
    states = ()
    for k in tl.static_range(len(KINDS)):
        states = states + (tl.full((BM,), IDENTITY[k], KINDS[k]),)
    return states


@triton.jit
def _each_row(states):
    wide = ()
    for k in tl.static_range(len(states)):
        wide = wide + (states[k][:, None],)
    return wide


@triton.jit
def keep(totals, states, at, inside):
    """Write a part's total, of one state or more."""
    for k in tl.static_range(len(totals)):
        tl.store(totals[k] + at, states[k], mask=inside)


@triton.jit
def total_before(
    totals, at, part, inside, SCAN: tl.constexpr, JOIN: tl.constexpr, IDENTITY: tl.constexpr, KINDS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """The total before a part: the totals of those before it, which follow one another from `at` on, joined in order."""
    before = _nothing(IDENTITY, KINDS, BM)
    for t in range(tl.cdiv(part, BN)):
        i = t * BN + tl.arange(0, BN)
        lanes = inside[:, None] & (i < part)[None, :]
        states = ()
        for k in tl.static_range(len(KINDS)):
            states = states + (tl.load(totals[k] + at[:, None] + i[None, :], mask=lanes, other=0),)  # (BM, BN)
        states = SCAN(states)
        before = JOIN(before, last_of(states, i == tl.minimum((t + 1) * BN, part) - 1))
    return before


# ys_i = finish(state_i), state_i = map(x_0) o ... o map(x_i), o associative. Of rows in several parts: TOTALS, each part's alone; STARTS, from those
@triton.jit(do_not_specialize=["columns", "length"])
def _scan_kernel(
    x, ys, totals, rows, columns, length, x_strides, y_strides, MAP: tl.constexpr, SCAN: tl.constexpr, JOIN: tl.constexpr, FINISH: tl.constexpr,
    IDENTITY: tl.constexpr, KINDS: tl.constexpr, OTHER: tl.constexpr, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, ALIGN: tl.constexpr, TOTALS: tl.constexpr, STARTS: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    if TOTALS or STARTS:
        part, parts = tl.program_id(1), tl.num_programs(1)
        low = part * (length // BN * BN)  # whole steps: with that known, accesses are wide
        tiles = tl.cdiv(tl.minimum(columns - low, length), BN)
        at = (b * rows + row) * parts
    else:
        low, tiles = 0, tl.cdiv(columns, BN)
    if STARTS:
        before = total_before(totals, at, part, inside, SCAN, JOIN, IDENTITY, KINDS, BM, BN)
    else:
        before = _nothing(IDENTITY, KINDS, BM)
    for t in range(tiles):
        start = low + t * BN
        col = start + tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        value = load(x, b, row, col, x_strides, lanes, OTHER, X_UNIT).to(KINDS[0])  # (BM, BN)
        states = JOIN(_each_row(before), SCAN(MAP(value, col)))
        if not TOTALS:
            found = FINISH(states)
            for k in tl.static_range(len(ys)):
                store(ys[k], found[k], b, row, col, y_strides, lanes, Y_UNIT)
        before = last_of(states, col == start + BN - 1)
    if TOTALS:
        keep(totals, before, at + part, inside)


class Scan(NamedTuple):
    """An associative scan: jitted functions of tuples of states, and what stands before the first element.

    map(value, column) -> states; scan(states) -> their scan along axis 1; join(states, states) -> states; finish(states) -> a value for each result.
    identity: the states of nothing. kinds: their types. other: what is read beyond a row's end.
    """

    map: Any
    scan: Any
    join: Any
    finish: Any
    identity: tuple[Any, ...]
    kinds: tuple[np.dtype, ...]
    other: Any


def scan_rows(x: CudaArray, ys: tuple[CudaArray, ...], dim: int, on: RowTiles, by: Scan) -> None:
    """Scan x along dim into ys, new C-ordered arrays of its shape: in one launch, or where few rows are long in two."""
    a, c = as_rows(x, dim), as_rows(ys[0], dim)
    programs = on.batch * cdiv(on.rows, on.BM) if on.columns else 0
    parts, length = in_parts(programs, on.columns, on.BN, x.dtype)
    totals = totals_of(parts, on, by.kinds, x)
    shared = {"MAP": by.map, "SCAN": by.scan, "JOIN": by.join, "FINISH": by.finish, "IDENTITY": by.identity, "OTHER": by.other}
    shared |= {"KINDS": types_of(by.kinds), "X_UNIT": unit(a.strides), "Y_UNIT": unit(c.strides), "BM": on.BM, "BN": on.BN}
    for sums in (True, False) if parts > 1 else (False,):
        launch(
            _scan_kernel, (programs, parts), a.array, ys, totals, on.rows, on.columns, length, a.strides, c.strides, **shared,
            ALIGN=align(on.columns), TOTALS=sums, STARTS=not sums and parts > 1,
        )  # fmt: skip


def totals_of(parts: int, on: RowTiles, kinds: tuple[np.dtype, ...], like: CudaArray) -> tuple[CudaArray, ...]:
    """Memory for the total of each part of each row; nothing where a row is one part."""
    return tuple(allocate((on.batch * on.rows, parts), kind, like) for kind in kinds) if parts > 1 else ()


def types_of(kinds: tuple[np.dtype, ...]) -> tuple[Any, ...]:
    """Triton's types of the same names."""
    return tuple(getattr(tl, dtypes.of(kind).name) for kind in kinds)
