"""Softmax along a dimension in machine code: the maximum and the sum of powers of each row, and powers scaled row by row.

Arrays are (outer, classes, inner). Where inner is 1, vectors lie along the classes, else along inner; a last vector overlaps the one before it.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritensor.llvm import compiler, simd_functions
from tritensor.llvm.loop_nest import LoopNest
from tritensor.llvm.loops import STORED, takes_rows, to_compute_type, to_stored_type
from tritensor.llvm.simd import LLVM, Code, Vector, fold_lanes, select, splat_lines

MOST = 1 << 14  # classes up to which a sum lane by lane keeps its digits


def _width(n: int, size: int) -> int:
    """Lanes for n numbers in a row: as many as there are, at most two vectors of 512 bits."""
    most = 32 if size <= 4 else 16
    # no vector may be longer than the row: the last one overlaps the one before it
    return most if n >= 8 * most else min(1 << (n.bit_length() - 1), most // 2)


class _Text:
    """Pieces of a module: vectors of one stored type at an address, and the code that follows."""

    def __init__(self, dtype: np.dtype, width: int) -> None:
        self.dtype, self.width, self.stored = dtype, width, STORED[dtype]
        self.kind = "f64" if dtype == np.float64 else "f32"
        self.declared: set[str] = set()
        self.vector, self.wide = f"<{width} x {LLVM[self.stored]}>", f"<{width} x {LLVM[self.kind]}>"

    def load(self, at: str, prefix: str) -> tuple[Code, Vector]:
        """The vector from element number %<at> of %in on."""
        code = Code(self.width, prefix)
        size = self.dtype.itemsize
        code.lines += [
            f"  %{prefix}p = getelementptr {LLVM[self.stored]}, ptr %in, i64 %{at}",
            f"  %{prefix}x = load {self.vector}, ptr %{prefix}p, align {size}",
        ]
        return code, to_compute_type(Vector(code, f"%{prefix}x", self.stored), self.dtype)

    def take_lines(self, code: Code) -> list[str]:
        self.declared |= code.declared
        return code.lines

    def reduce_lanes(self, prefix: str, name: str, combine: Any) -> tuple[list[str], str]:
        """All lanes of %<name> combined by halves, the result in every lane."""
        code = Code(self.width, prefix)
        y = fold_lanes(Vector(code, f"%{name}", self.kind), combine)
        return self.take_lines(code), y.name

    def module(self, nest: LoopNest, arguments: str) -> str:
        return "\n".join([*sorted(self.declared), nest.text(*arguments.split(", "))])

    @property
    def align(self) -> int:
        return 8 if self.kind == "f64" else 4

    def load_number(self, name: str, at: str) -> list[str]:
        """%<name>: number %<at> of the array %<name>p in every lane."""
        one = LLVM[self.kind]
        return [
            f"  %{name}at = getelementptr {one}, ptr %{name}p, i64 %{at}",
            f"  %{name}single = load {one}, ptr %{name}at, align {self.align}",
            *splat_lines(name, f"%{name}single", one, self.width),
        ]


_PEAKS = "ptr %in, ptr %mp, ptr %sp, ptr %dp, i64 %rows, i64 %n"
_POWERS = "ptr %out, ptr %in, ptr %mp, ptr %kp, ptr %ep, i64 %rows, i64 %n"


def _rows_text(dtype: np.dtype, width: int) -> str:
    """Rows (rows, n), n >= width: maxima, sums of powers and of differences from the maximum. A row's last vector ends where the row does: of the
    lanes that it shares with the one before the sums count none."""
    t, nest, w = _Text(dtype, width), LoopNest(), width
    first, x0 = t.load("start", "a")
    again, x1 = t.load("at1", "b")
    m1 = simd_functions.maximum(Vector(again, "%m1", t.kind), x1)
    last, x2 = t.load("end", "c")
    m2 = simd_functions.maximum(Vector(last, m1.name, t.kind), x2)
    fold_m, m = t.reduce_lanes("f", m2.name[1:], simd_functions.maximum)
    inner, x3 = t.load("at2", "g")
    away = x3 - Vector(inner, m, t.kind)
    s1, d1 = Vector(inner, "%s1", t.kind) + simd_functions.exp(away), Vector(inner, "%d1", t.kind) + away
    rest, x4 = t.load("end", "h")
    left = x4 - Vector(rest, m, t.kind)
    counted = Vector(rest, "%counted", "b1")
    s2 = Vector(rest, s1.name, t.kind) + select(counted, simd_functions.exp(left), 0.0)
    d2 = Vector(rest, d1.name, t.kind) + select(counted, left, 0.0)
    fold_s, s = t.reduce_lanes("u", s2.name[1:], operator.add)
    fold_d, d = t.reduce_lanes("v", d2.name[1:], operator.add)
    places = ", ".join(f"i64 {k}" for k in range(w))
    nest.lines += [
        f"  %vectors = udiv i64 %n, {w}", f"  %whole = mul i64 %vectors, {w}", f"  %over = sub i64 %n, {w}",
        "  %known = sub i64 %n, %whole", f"  %skip = sub i64 {w}, %known", *splat_lines("skips", "%skip", "i64", w),
        f"  %counted = icmp sge <{w} x i64> <{places}>, %skips",
    ]  # fmt: skip
    with nest.loop("r", "%rows"):
        nest.lines += ["  %start = mul i64 %r, %n", "  %end = add i64 %start, %over", *t.take_lines(first)]
        with nest.loop("i1", "%vectors", m1=(t.wide, x0.name, m1.name)):
            nest.lines += [f"  %off1 = mul i64 %i1, {w}", "  %at1 = add i64 %start, %off1", *t.take_lines(again)]
        nest.lines += [*t.take_lines(last), *fold_m]
        with nest.loop("i2", "%vectors", s1=(t.wide, "zeroinitializer", s1.name), d1=(t.wide, "zeroinitializer", d1.name)):
            nest.lines += [f"  %off2 = mul i64 %i2, {w}", "  %at2 = add i64 %start, %off2", *t.take_lines(inner)]
        nest.lines += [*t.take_lines(rest), *fold_s, *fold_d]
        for name, lanes in (("m", m), ("s", s), ("d", d)):
            nest.lines += [
                f"  %{name}single = extractelement {t.wide} {lanes}, i64 0",
                f"  %{name}to = getelementptr {LLVM[t.kind]}, ptr %{name}p, i64 %r",
                f"  store {LLVM[t.kind]} %{name}single, ptr %{name}to, align {t.align}",
            ]
    return t.module(nest, _PEAKS)


@contextmanager
def _each_block_of_columns(nest: LoopNest, width: int) -> Iterator[None]:
    """Loops over arrays (outer, n, inner), inner >= width, and over vectors of columns, the last of which ends where inner does: %start is the first
    element of such a vector, %to its place in an (outer, inner)."""
    nest.lines += [
        "  %area = mul i64 %n, %inner", f"  %lastcol = sub i64 %inner, {width}", f"  %more = add i64 %inner, {width - 1}",
        f"  %blocks = udiv i64 %more, {width}",
    ]  # fmt: skip
    with nest.loop("o", "%rows"), nest.loop("block", "%blocks"):
        nest.lines += [
            "  %base = mul i64 %o, %area", "  %obase = mul i64 %o, %inner", f"  %j = mul i64 %block, {width}",
            "  %far = icmp sgt i64 %j, %lastcol", "  %col = select i1 %far, i64 %lastcol, i64 %j", "  %start = add i64 %base, %col",
            "  %to = add i64 %obase, %col",
        ]  # fmt: skip
        yield


def _columns_text(dtype: np.dtype, width: int) -> str:
    """Arrays (outer, n, inner), inner >= width: the same for every column, vectors along inner."""
    t, nest = _Text(dtype, width), LoopNest()
    again, x1 = t.load("at1", "b")
    m1 = simd_functions.maximum(Vector(again, "%m1", t.kind), x1)
    first, x0 = t.load("start", "a")
    inner, x3 = t.load("at2", "g")
    away = x3 - Vector(inner, m1.name, t.kind)
    s1, d1 = Vector(inner, "%s1", t.kind) + simd_functions.exp(away), Vector(inner, "%d1", t.kind) + away
    with _each_block_of_columns(nest, width):
        nest.lines += t.take_lines(first)
        with nest.loop("c1", "%n", m1=(t.wide, x0.name, m1.name)):
            nest.lines += ["  %off1 = mul i64 %c1, %inner", "  %at1 = add i64 %start, %off1", *t.take_lines(again)]
        with nest.loop("c2", "%n", s1=(t.wide, "zeroinitializer", s1.name), d1=(t.wide, "zeroinitializer", d1.name)):
            nest.lines += ["  %off2 = mul i64 %c2, %inner", "  %at2 = add i64 %start, %off2", *t.take_lines(inner)]
        for name, lanes in (("m", m1.name), ("s", s1.name), ("d", d1.name)):
            nest.lines += [
                f"  %{name}to = getelementptr {LLVM[t.kind]}, ptr %{name}p, i64 %to",
                f"  store {t.wide} {lanes}, ptr %{name}to, align {t.align}",
            ]
    return t.module(nest, f"{_PEAKS}, i64 %inner")


def _scaled_powers(t: _Text) -> list[str]:
    """out = e^(x - m) k - e for the vector from element %at on."""
    code, x = t.load("at", "b")
    y = simd_functions.exp(x - Vector(code, "%m", t.kind)) * Vector(code, "%k", t.kind) - Vector(code, "%e", t.kind)
    y = to_stored_type(y, t.dtype)
    return [
        *t.take_lines(code),
        f"  %into = getelementptr {LLVM[t.stored]}, ptr %out, i64 %at",
        f"  store {t.vector} {y.name}, ptr %into, align {t.dtype.itemsize}",
    ]


def _powers_text(dtype: np.dtype, width: int) -> str:
    """Rows (rows, n), n >= width: e^(x - m) k - e with numbers m, k, e of the row."""
    t, nest = _Text(dtype, width), LoopNest()
    nest.lines += [f"  %over = sub i64 %n, {width}", f"  %more = add i64 %n, {width - 1}", f"  %vectors = udiv i64 %more, {width}"]
    with nest.loop("r", "%rows"):
        nest.lines += ["  %start = mul i64 %r, %n", *[line for name in "mke" for line in t.load_number(name, "r")]]
        with nest.loop("v", "%vectors"):
            nest.lines += [
                f"  %i = mul i64 %v, {width}", "  %far = icmp sgt i64 %i, %over", "  %col = select i1 %far, i64 %over, i64 %i",
                "  %at = add i64 %start, %col", *_scaled_powers(t),
            ]  # fmt: skip
    return t.module(nest, _POWERS)


def _column_powers_text(dtype: np.dtype, width: int) -> str:
    """Arrays (outer, n, inner), inner >= width: e^(x - m) k - e with numbers m, k, e of the column."""
    t, nest = _Text(dtype, width), LoopNest()
    with _each_block_of_columns(nest, width):
        for name in "mke":
            nest.lines += [
                f"  %{name}at = getelementptr {LLVM[t.kind]}, ptr %{name}p, i64 %to",
                f"  %{name} = load {t.wide}, ptr %{name}at, align {t.align}",
            ]
        with nest.loop("c", "%n"):
            nest.lines += ["  %off = mul i64 %c, %inner", "  %at = add i64 %start, %off", *_scaled_powers(t)]
    return t.module(nest, f"{_POWERS}, i64 %inner")


@functools.cache
def _function(text: Any, dtype: np.dtype, width: int, sizes: int) -> Any:
    return compiler.build_typed(
        text(dtype, width), None, *[ctypes.c_void_p] * (4 if text in (_rows_text, _columns_text) else 5), *[ctypes.c_int64] * sizes
    )


def takes(x: np.ndarray) -> bool:
    """Whether x (outer, classes, inner) is served here: C-ordered, floating, many elements, two classes or more, and where there is machine code."""
    along = x.shape[2] if x.shape[2] > 1 else x.shape[1]
    return takes_rows(x) and 1 < x.shape[1] <= MOST and along > 1 and not compiler.refusal()


def peaks(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of x (outer, classes, inner) that `takes` holds of: m = max x, sum e^(x - m), sum (x - m), each (outer, inner), in float32 or x's float64."""
    outer, n, inner = x.shape
    kept = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    m, s, d = (np.empty((outer, inner), kept) for _ in range(3))
    given = (x.ctypes.data, m.ctypes.data, s.ctypes.data, d.ctypes.data, outer, n)
    if inner == 1:
        _function(_rows_text, x.dtype, _width(n, kept.itemsize), 2)(*given)
    else:
        _function(_columns_text, x.dtype, _width(inner, kept.itemsize), 3)(*given, inner)
    return m, s, d


def powers(x: np.ndarray, m: np.ndarray, k: np.ndarray, e: np.ndarray) -> np.ndarray:
    """e^(x - m) k - e, as x lies and in its type; m, k and e are C-ordered (outer, inner) of the type of `peaks`."""
    outer, n, inner = x.shape
    out = np.empty(x.shape, x.dtype)
    given = (out.ctypes.data, x.ctypes.data, m.ctypes.data, k.ctypes.data, e.ctypes.data, outer, n)
    if inner == 1:
        _function(_powers_text, x.dtype, _width(n, m.itemsize), 2)(*given)
    else:
        _function(_column_powers_text, x.dtype, _width(inner, m.itemsize), 3)(*given, inner)
    return out
