"""Running sums along the rows of a matrix in machine code: sixteen at a time by doubling (Hillis and Steele 1986), kept in float64, rounded once."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loops import STORED, rows_loop_text, takes_rows, to_compute_type, to_stored_type
from tritensor.llvm.simd import LLVM, Code, Vector

_WIDTH = 16


def _scan_vector(code: Code, dtype: np.dtype) -> tuple[Vector, Vector]:
    """The running sums of the vector %x behind %carry, and their last one in every lane."""
    doubles = code.type("f64")
    y = to_compute_type(Vector(code, "%x", STORED[dtype]), dtype).to("f64")
    for distance in (1, 2, 4, 8):  # y_i += y_(i - distance): the second operand's zeros come in from the left
        order = ", ".join(f"i32 {i - distance if i >= distance else _WIDTH}" for i in range(_WIDTH))
        moved = code.emit("f64", f"shufflevector {doubles} {y.name}, {doubles} zeroinitializer, <{_WIDTH} x i32> <{order}>")
        y = y + moved
    y = y + Vector(code, "%carry", "f64")
    ends = ", ".join([f"i32 {_WIDTH - 1}"] * _WIDTH)
    return y, code.emit("f64", f"shufflevector {doubles} {y.name}, {doubles} poison, <{_WIDTH} x i32> <{ends}>")


def _text(dtype: np.dtype) -> str:
    """Writes the running sums of each of `rows` rows of n elements to out."""
    code, last = Code(_WIDTH, "v"), Code(1, "s")
    stored, size, doubles = STORED[dtype], dtype.itemsize, code.type("f64")
    y, carry = _scan_vector(code, dtype)
    whole = to_stored_type(y, dtype)
    z = to_compute_type(Vector(last, "%sx", stored), dtype).to("f64") + Vector(last, "%so", "f64")
    single = to_stored_type(z, dtype)
    return rows_loop_text(
        _WIDTH,
        start=[],
        loop=[
            f"  %carry = phi {doubles} [zeroinitializer, %row], [{carry.name}, %loop]",
            "  %at = add i64 %start, %i",
            f"  %from = getelementptr {LLVM[stored]}, ptr %in, i64 %at",
            f"  %to = getelementptr {LLVM[stored]}, ptr %out, i64 %at",
            f"  %x = load {code.type(stored)}, ptr %from, align {size}",
            *code.lines,
            f"  store {code.type(stored)} {whole.name}, ptr %to, align {size}",
        ],
        tail=[
            f"  %kept = phi {doubles} [zeroinitializer, %row], [{carry.name}, %loop]",
            f"  %first = shufflevector {doubles} %kept, {doubles} poison, <1 x i32> zeroinitializer",
        ],
        one=[
            f"  %so = phi <1 x double> [%first, %tail], [{z.name}, %one]",
            "  %sat = add i64 %start, %j",
            f"  %sfrom = getelementptr {LLVM[stored]}, ptr %in, i64 %sat",
            f"  %sto = getelementptr {LLVM[stored]}, ptr %out, i64 %sat",
            f"  %sx = load <1 x {LLVM[stored]}>, ptr %sfrom, align {size}",
            *last.lines,
            f"  store <1 x {LLVM[stored]}> {single.name}, ptr %sto, align {size}",
        ],
    )


@functools.cache
def _function(dtype: np.dtype) -> Any:
    return compiler.build_typed(_text(dtype), None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def running_sums(x: np.ndarray) -> np.ndarray | None:
    """Running sums along the last axis of a C-ordered floating array; None for few elements, other types, and where there is no machine code."""
    function = _function(x.dtype) if takes_rows(x) else None
    if function is None:
        return None
    out = np.empty(x.shape, x.dtype)
    function(out.ctypes.data, x.ctypes.data, x.size // x.shape[-1], x.shape[-1])
    return out
