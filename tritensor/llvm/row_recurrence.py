"""Row recurrences in machine code: each row is made of the one before it, its shifts and a row of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loop_nest import LoopNest
from tritensor.llvm.simd import LLVM, Code, Vector

WIDTH = 16  # lanes; the length of rows is a multiple of it


class RowRecurrence:
    """rows[t, i + 2] = formula(rows[t - 1, i + 2], rows[t - 1, i + 1], rows[t - 1, i] + bar[i], p[t, i]), compiled when it is first needed."""

    def __init__(self, formula: Callable[..., Any]) -> None:
        self.formula = formula
        self.compiled: dict[np.dtype, Any] = {}

    def __call__(self, rows: np.ndarray, bar: np.ndarray, p: np.ndarray) -> bool:
        """Fill rows (time, n + 2) from row 1 on, their first two numbers apart; bar (n,), p (time, n); float32 or float64 in C order, n a multiple of
        WIDTH. False where there is no machine code."""
        if rows.dtype not in self.compiled:
            text = "" if compiler.refusal() else _text(self.formula, "f64" if rows.dtype.char == "d" else "f32")
            made = compiler.build_typed(text, None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64) if text else None
            self.compiled[rows.dtype] = made
        function = self.compiled[rows.dtype]
        if function is None:
            return False
        if len(p):  # the loop counts rows but one
            function(rows.ctypes.data, bar.ctypes.data, p.ctypes.data, p.shape[0], p.shape[1])
        return True


def _text(formula: Callable[..., Any], kind: str) -> str:
    code, size = Code(WIDTH, "v"), 8 if kind == "f64" else 4
    vector, one = code.type(kind), LLVM[kind]
    a, b, far, bar, p = (Vector(code, f"%{name}", kind) for name in ("a", "b", "c", "bar", "p"))
    made = formula(a, b, far + bar, p)
    loads = {"a": "before2", "b": "before1", "c": "before", "bar": "barat", "p": "pat"}
    # rows follow from one another, so that only elements of one row can stand side by side
    nest = LoopNest()
    nest.lines += ["  %length = add i64 %n, 2", "  %turns = sub i64 %time, 1", f"  %blocks = udiv i64 %n, {WIDTH}"]
    with nest.maybe_empty_loop("last", "%turns"):
        nest.lines += ["  %t = add i64 %last, 1", "  %start = mul i64 %last, %length", "  %pstart = mul i64 %t, %n"]
        with nest.loop("block", "%blocks"):
            nest.lines += [
                f"  %i = mul i64 %block, {WIDTH}",
                "  %at = add i64 %start, %i",
                f"  %before = getelementptr {one}, ptr %rows, i64 %at",
                f"  %before1 = getelementptr {one}, ptr %before, i64 1",
                f"  %before2 = getelementptr {one}, ptr %before, i64 2",
                f"  %barat = getelementptr {one}, ptr %bars, i64 %i",
                "  %place = add i64 %pstart, %i",
                f"  %pat = getelementptr {one}, ptr %ps, i64 %place",
                *[f"  %{name} = load {vector}, ptr %{address}, align {size}" for name, address in loads.items()],
                *code.lines,
                f"  %to = getelementptr {one}, ptr %before2, i64 %length",
                f"  store {vector} {made.name}, ptr %to, align {size}",
            ]
    return "\n".join([*sorted(code.declared), nest.text("ptr %rows", "ptr %bars", "ptr %ps", "i64 %time", "i64 %n")])
