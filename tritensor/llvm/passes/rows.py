"""Products and running sums of the rows of a matrix in machine code; sums sixteen at a time by doubling (Hillis and Steele 1986), kept in float64."""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loops import STORED, rows_loop_text, takes_rows, to_compute_type, to_stored_type
from tritensor.llvm.simd import LLVM, Code, Vector, fold_lanes

_WIDTH, _SIDE_BY_SIDE = 16, 4  # lanes; vectors of a product that do not wait for each other


def _multiply_vectors(code: Code, dtype: np.dtype, kind: str) -> list[Vector]:
    """The running products %y0, %y1, ... times the vectors from %at on."""
    stored, size = STORED[dtype], dtype.itemsize
    products = []
    for k in range(_SIDE_BY_SIDE):
        code.lines.append(f"  %p{k} = getelementptr i8, ptr %at, i64 {k * _WIDTH * size}")
        code.lines.append(f"  %x{k} = load {code.type(stored)}, ptr %p{k}, align {size}")
        products.append(Vector(code, f"%y{k}", kind) * to_compute_type(Vector(code, f"%x{k}", stored), dtype))
    return products


def _products_text(dtype: np.dtype) -> str:
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
        _WIDTH * _SIDE_BY_SIDE,
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


def _running_sums_text(dtype: np.dtype) -> str:
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
def _function(text: Callable[[np.dtype], str], dtype: np.dtype) -> Any:
    return compiler.build_typed(text(dtype), None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def _run(text: Callable[[np.dtype], str], x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """What a text's function makes of a C-ordered floating array; None for few elements, other types, and where there is no machine code."""
    function = _function(text, x.dtype) if takes_rows(x) else None
    if function is None:
        return None
    out = np.empty(shape, x.dtype)
    function(out.ctypes.data, x.ctypes.data, x.size // x.shape[-1], x.shape[-1])
    return out


def products(x: np.ndarray) -> np.ndarray | None:
    """The products of the rows of a C-ordered floating (rows, n) with n > 0; None for few elements, other types, and where there is no machine code."""
    return _run(_products_text, x, x.shape[:1])


def running_sums(x: np.ndarray) -> np.ndarray | None:
    """Running sums along the last axis of a C-ordered floating array; None for few elements, other types, and where there is no machine code."""
    return _run(_running_sums_text, x, x.shape)
