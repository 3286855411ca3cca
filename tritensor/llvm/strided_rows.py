"""Formulas in machine code over windows of matrices: rows that lie anywhere, elements of a row side by side, the same for row after row."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.loop_nest import LoopNest
from tritensor.llvm.loops import SHARED, STORED, loop_text
from tritensor.llvm.simd import NotVectorizableError

_HEAVY = 8  # times the work on an element of a plain loop's: a recurrent cell has some functions and a dozen arrays


class WindowLoop:
    """A formula of vectors over (rows, n) windows, compiled when it is first needed, once for each combination of types."""

    def __init__(self, formula: Callable[..., Any]) -> None:
        self.formula = formula
        self.compiled: dict[tuple[np.dtype, ...], Any] = {}

    def bind(self, outs: Sequence[np.ndarray], inputs: Sequence[np.ndarray], moving: Sequence[bool]) -> BoundLoop | None:
        """run(start, rows): formula(*inputs) to outs, of rows start to start + rows of the matrices that are `moving` (one word for each of outs and
        inputs), and of the first rows of the others. None where numpy has to compute it.

        All are (any number of rows, n), elements of a row side by side; a stride of 0 repeats one row. A window of outs may be one of the
        inputs' too, but overlap none otherwise.
        """
        arrays = (*outs, *inputs)
        function = self._function(tuple([x.dtype for x in arrays]), len(outs))
        if function is None or any(x.shape[1] > 1 and x.strides[1] != x.itemsize for x in arrays):
            return None
        return BoundLoop(function, arrays, moving)

    def _function(self, types: tuple[np.dtype, ...], results: int) -> Any:
        if types not in self.compiled:
            self.compiled[types] = self._compile(types, results)
        return self.compiled[types]

    def _compile(self, types: tuple[np.dtype, ...], results: int) -> Any:
        if compiler.refusal() or any(t not in STORED for t in types):
            return None
        try:
            module, gives_up = loop_text(self.formula, types, results, "f64" if any(t.char == "d" for t in types) else "f32", thinner=4)
        except (NotVectorizableError, AttributeError, TypeError):  # the formula does what no vector can: numpy computes it
            return None
        return None if gives_up else compiler.build_typed(
            _rows_module(module, len(types)), None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
        )  # fmt: skip


class BoundLoop:
    """A loop over the rows of some matrices: `function` of a row count, the elements of a row, and the addresses of a table of first rows and of `steps`
    from row to row."""

    def __init__(self, function: Any, arrays: Sequence[np.ndarray], moving: Sequence[bool]) -> None:
        self.function, self.n = function, arrays[0].shape[1]
        self._bases = np.array([x.__array_interface__["data"][0] for x in arrays], np.int64)
        self.steps = np.array([x.strides[0] for x in arrays], np.int64)
        self._moves = self.steps * np.array(moving, np.int64)
        self._tables = np.empty((threads.count(), len(arrays)), np.int64)  # one for each thread: where its first row is
        self._at_steps, self._at_tables = self.steps.ctypes.data, [t.ctypes.data for t in self._tables]
        self._few = SHARED // _HEAVY if len(self._tables) > 1 else sys.maxsize
        self._held = arrays  # their memory must outlive the addresses

    def __call__(self, start: int, rows: int) -> None:
        table = self._tables[0]
        np.multiply(self._moves, start, out=table)
        np.add(table, self._bases, out=table)
        if rows * self.n < self._few or not self._shared(rows):
            self.function(rows, self.n, self._at_tables[0], self._at_steps)

    def _shared(self, rows: int) -> bool:
        count = len(self._tables)
        ends = [rows * k // count for k in range(count + 1)]
        for other, first in zip(self._tables[1:], ends[1:], strict=False):
            np.add(self._tables[0], self.steps * first, out=other)
        parts = [
            (high - low, self.n, at, self._at_steps) for (low, high), at in zip(itertools.pairwise(ends), self._at_tables, strict=True)
        ]
        return threads.free() == count and threads.call_parts(workers.address(self.function), parts) is not None

    def tables(self, starts: np.ndarray, first: int) -> np.ndarray:
        """The tables of calls that begin at these rows, from their row `first` on."""
        return self._bases + self._moves * starts[:, None] + self.steps * first


def _rows_module(module: str, arrays: int) -> str:
    """The module of a loop, called for each of `rows` rows: addresses of first elements from %table, bytes from row to row from %steps."""
    each, nest = range(arrays), LoopNest()
    nest.lines += [f"  %q{i} = getelementptr i64, ptr %table, i64 {i}\n  %base{i} = load ptr, ptr %q{i}" for i in each]
    nest.lines += [f"  %t{i} = getelementptr i64, ptr %steps, i64 {i}\n  %step{i} = load i64, ptr %t{i}" for i in each]
    with nest.maybe_empty_loop("r", "%rows"):
        nest.lines += [f"  %o{i} = mul i64 %r, %step{i}\n  %p{i} = getelementptr i8, ptr %base{i}, i64 %o{i}" for i in each]
        nest.lines.append(f"  %answer = call i64 @row(i64 %n, {', '.join(f'ptr %p{i}' for i in each)})")
    return module.replace("define i64 @run(", "define internal i64 @row(") + nest.text("i64 %rows", "i64 %n", "ptr %table", "ptr %steps")
