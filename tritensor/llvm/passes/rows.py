"""Products of the rows of a matrix in machine code: four vectors side by side, folded at the end of each row."""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loops import STORED, rows_loop_text, takes_rows, to_compute_type, to_stored_type
from tritensor.llvm.simd import LLVM, Code, Vector, fold_lanes

_WIDTH, _SIDE_BY_SIDE = 16, 4
_CHUNK = _WIDTH * _SIDE_BY_SIDE


def _multiply_vectors(code: Code, dtype: np.dtype, kind: str) -> list[Vector]:
    """The running products %y0, %y1, ... times the vectors from %at on."""
    stored, size = STORED[dtype], dtype.itemsize
    products = []
    for k in range(_SIDE_BY_SIDE):
        code.lines.append(f"  %p{k} = getelementptr i8, ptr %at, i64 {k * _WIDTH * size}")
        code.lines.append(f"  %x{k} = load {code.type(stored)}, ptr %p{k}, align {size}")
        products.append(Vector(code, f"%y{k}", kind) * to_compute_type(Vector(code, f"%x{k}", stored), dtype))
    return products


def _text(dtype: np.dtype) -> str:
    """Writes the product of each of `rows` rows of n elements to out."""
    stored, size = STORED[dtype], dtype.itemsize
    main, fold, one = Code(_WIDTH, "v"), Code(_WIDTH, "f"), Code(1, "s")
    kind = "f64" if dtype == np.float64 else "f32"
    vector, single = main.type(kind), one.type(kind)
    products = _multiply_vectors(main, dtype, kind)
    a, b, c, d = (Vector(fold, f"%t{k}", kind) for k in range(_SIDE_BY_SIDE))
    whole = fold_lanes((a * b) * (c * d), operator.mul)
    last = Vector(one, "%so", kind) * to_compute_type(Vector(one, "%sx", stored), dtype)
    end = Code(1, "e")
    result = to_stored_type(Vector(end, "%total", kind), dtype)
    ones = main.constant(1, kind).name
    return rows_loop_text(
        _CHUNK,
        start=[
            f"  %base = getelementptr {LLVM[stored]}, ptr %in, i64 %start",
        ],
        loop=[
            *[f"  %y{k} = phi {vector} [{ones}, %row], [{y.name}, %loop]" for k, y in enumerate(products)],
            f"  %at = getelementptr {LLVM[stored]}, ptr %base, i64 %i",
            *main.lines,
        ],
        tail=[
            *[f"  %t{k} = phi {vector} [{ones}, %row], [{y.name}, %loop]" for k, y in enumerate(products)],
            *fold.lines,
            f"  %first = shufflevector {vector} {whole.name}, {vector} poison, <1 x i32> zeroinitializer",
        ],
        one=[
            f"  %so = phi {single} [%first, %tail], [{last.name}, %one]",
            f"  %sat = getelementptr {LLVM[stored]}, ptr %base, i64 %j",
            f"  %sx = load {one.type(stored)}, ptr %sat, align {size}",
            *one.lines,
        ],
        end=[
            f"  %total = phi {single} [%first, %tail], [{last.name}, %one]",
            *end.lines,
            f"  %to = getelementptr {LLVM[stored]}, ptr %out, i64 %r",
            f"  store {end.type(stored)} {result.name}, ptr %to, align {size}",
        ],
    )


@functools.cache
def _function(dtype: np.dtype) -> Any:
    return compiler.build_typed(_text(dtype), None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def products(x: np.ndarray) -> np.ndarray | None:
    """The products of the rows of a C-ordered floating (rows, n) with n > 0; None for few elements, other types, and where there is no machine code."""
    function = _function(x.dtype) if takes_rows(x) else None
    if function is None:
        return None
    out = np.empty(x.shape[0], x.dtype)
    function(out.ctypes.data, x.ctypes.data, *x.shape)
    return out
