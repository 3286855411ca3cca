"""A formula over many sets of arrays in one call: a table holds, row by row, a length and the addresses of a set's arrays."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.llvm import compiler, threads
from tritensor.llvm.loops import SHARED, STORED, loop_text
from tritensor.llvm.simd import NotVectorizableError

_PIECE = 64  # elements of which threads take whole numbers: no line of the cache is written by two
FIELD = object.__basicsize__  # of a numpy array the first field behind those of every object is the address of its elements


def fields_work() -> bool:
    """Whether arrays of this numpy in this Python are laid out so."""
    return all(ctypes.c_void_p.from_address(id(x) + FIELD).value == x.__array_interface__["data"][0] for x in (np.ones(3), np.ones(8)[2:]))


def fields_of(arrays: Sequence[np.ndarray]) -> list[int]:
    """Where each array notes the address of its elements: told many times faster than the address itself, which Python wraps up in a dict."""
    return [x + FIELD for x in map(id, arrays)]


_fields_work = functools.cache(fields_work)
_read_word = ctypes.c_ssize_t.from_address


def addresses_of(arrays: Sequence[np.ndarray]) -> list[int]:
    """Where each array's elements are: an eighth of the time of `__array_interface__`."""
    if _fields_work():
        return [_read_word(at).value for at in fields_of(arrays)]
    return [x.__array_interface__["data"][0] for x in arrays]


class TableLoop:
    """A formula of `arrays` vectors and then `numbers` numbers whose results go to the arrays `written`, element by element, in place.
    Of the array `through` the table does not hold the address but the place that holds it (see `fields_of`).

    Compiled when it is first needed, once for each type; floats of 16 bits arrive as float32 and are rounded once.
    """

    def __init__(self, formula: Callable[..., Any], arrays: int, numbers: int, written: tuple[int, ...], through: int = -1) -> None:
        self.formula, self.arrays, self.numbers, self.written, self.through = formula, arrays, numbers, written, through
        self.compiled: dict[np.dtype, Any] = {}

    def of(self, dtype: np.dtype) -> Callable[[np.ndarray, np.ndarray], None] | None:
        """run(table, numbers) for arrays of this type; None where there is no machine code.

        table is an int64 (rows, 1 + arrays), numbers a (rows, numbers) of the type that is computed in, or (1, numbers) for all rows.
        """
        if dtype not in self.compiled:
            self.compiled[dtype] = self._compile(dtype)
        return self.compiled[dtype]

    def _compile(self, dtype: np.dtype) -> Callable[[np.ndarray, np.ndarray], None] | None:
        if compiler.refusal() or (self.through >= 0 and not fields_work()) or dtype not in STORED or dtype.kind not in "fV":
            return None
        kind = "f64" if dtype.itemsize == 8 else "f32"
        types = (*[dtype] * (len(self.written) + self.arrays), *[None] * self.numbers)
        try:
            module, gives_up = loop_text(self.formula, types, len(self.written), kind)
        except (NotVectorizableError, AttributeError, TypeError, ValueError):  # as in loops.py: numpy computes it
            return None
        if gives_up:  # it may have written before it did
            return None
        made = compiler.build(self._over_rows(module, 8 if kind == "f64" else 4, dtype.itemsize))
        made.restype = None
        made.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]

        def run(table: np.ndarray, numbers: np.ndarray) -> None:
            if not len(table):
                return
            # one row of numbers serves all: its stride must not be walked
            step = numbers.strides[0] if len(numbers) > 1 else 0
            at, own = table.ctypes.data, numbers.ctypes.data
            # parts are cut by elements, not by rows: one large parameter among small ones is shared as well
            ends = table[:, 0].cumsum()
            elements = int(ends[-1])

            def part(low: int, high: int) -> list[int]:
                """The elements of pieces low to high, from within the row in which they begin to within the one in which they end."""
                start, stop = low * _PIECE, min(high * _PIECE, elements)
                first, last = int(ends.searchsorted(start, "right")), int(ends.searchsorted(stop))
                skipped, kept = start - int(ends[first] - table[first, 0]), stop - int(ends[last] - table[last, 0])
                return [last + 1 - first, at + first * table.strides[0], own + first * step, step, skipped, kept]

            if elements >= SHARED:
                threads.run_shared(made, -(-elements // _PIECE), part)
            elif elements:
                made(len(table), at, own, step, 0, int(table[-1, 0]))

        return run

    def _over_rows(self, module: str, size: int, item: int) -> str:
        """The module with a function `run` that calls the loop over elements for each row: of the first without the `skipped` elements, of the
        last the `kept` ones. Numbers are of `size` bytes, elements of `item`."""
        loads = [f"  %g{k} = getelementptr i64, ptr %at, i64 {1 + k}\n  %a{k} = load ptr, ptr %g{k}, align 8" for k in range(self.arrays)]
        loads = [line + f"\n  %b = load ptr, ptr %a{self.through}, align 8" if k == self.through else line for k, line in enumerate(loads)]
        for k in range(self.arrays):
            loads.append(f"  %f{k} = getelementptr i8, ptr {'%b' if k == self.through else f'%a{k}'}, i64 %behind")
        given = [f"%f{k}" for k in (*self.written, *range(self.arrays))]
        for k in range(self.numbers):
            loads.append(f"  %n{k} = getelementptr i8, ptr %own, i64 {size * k}")
            given.append(f"%n{k}")
        return module.replace("define i64 @run(", "define internal i64 @one(") + "\n".join([
            "define void @run(i64 %rows, ptr %table, ptr %numbers, i64 %step, i64 %skipped, i64 %kept) {",
            "entry:",
            "  %final = sub i64 %rows, 1",
            "  br label %row",
            "row:",
            "  %r = phi i64 [0, %entry], [%next, %row]",
            "  %before = phi i64 [%skipped, %entry], [0, %row]",
            f"  %start = mul i64 %r, {1 + self.arrays}",
            "  %at = getelementptr i64, ptr %table, i64 %start",
            "  %length = load i64, ptr %at, align 8",
            "  %ends = icmp eq i64 %r, %final",
            "  %end = select i1 %ends, i64 %kept, i64 %length",
            "  %n = sub i64 %end, %before",
            f"  %behind = mul i64 %before, {item}",
            "  %far = mul i64 %r, %step",
            "  %own = getelementptr i8, ptr %numbers, i64 %far",
            *loads,
            f"  %answer = call i64 @one(i64 %n, {', '.join('ptr ' + name for name in given)})",
            "  %next = add i64 %r, 1",
            "  br i1 %ends, label %done, label %row",
            "done:",
            "  ret void",
            "}",
            "",
        ])  # fmt: skip
