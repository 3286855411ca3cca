"""Softmax along a dimension in machine code: the maximum and the sum of powers of each row, and powers scaled row by row.

Arrays are (outer, classes, inner). Where inner is 1, vectors lie along the classes, else along inner; a last vector overlaps the one before it.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any

import numpy as np

from tritensor.llvm import compiler, simd_functions
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

    def module(self, lines: list[str], arguments: str) -> str:
        return "\n".join([*sorted(self.declared), f"define void @run({arguments}) {{", *lines, "}", ""])


def _per_row(t: _Text, step: str) -> list[str]:
    """Along the classes of a row that begins at %start: the maximum in %m, the sum of powers in %s, of differences in %d, in every lane."""
    w = t.width
    first, x0 = t.load("start", "a")
    again, x1 = t.load("at1", "b")
    m1 = simd_functions.maximum(Vector(again, "%m1", t.kind), x1)
    last, x2 = t.load("end", "c")
    m2 = simd_functions.maximum(Vector(last, "%mall", t.kind), x2)
    fold_m, m = t.reduce_lanes("f", m2.name[1:], simd_functions.maximum)
    inner, x3 = t.load("at2", "g")
    away = x3 - Vector(inner, m, t.kind)
    s1, d1 = Vector(inner, "%s1", t.kind) + simd_functions.exp(away), Vector(inner, "%d1", t.kind) + away
    rest, x4 = t.load("end", "h")
    left = x4 - Vector(rest, m, t.kind)
    counted = Vector(rest, "%counted", "b1")
    s2 = Vector(rest, "%sall", t.kind) + select(counted, simd_functions.exp(left), 0.0)
    d2 = Vector(rest, "%dall", t.kind) + select(counted, left, 0.0)
    fold_s, s = t.reduce_lanes("u", s2.name[1:], operator.add)
    fold_d, d = t.reduce_lanes("v", d2.name[1:], operator.add)
    places = ", ".join(f"i64 {k}" for k in range(w))
    return [
        *t.take_lines(first), f"  br label %max{step}",
        f"max{step}:",
        f"  %i1 = phi i64 [0, %row], [%n1, %max{step}]",
        f"  %m1 = phi {t.wide} [{x0.name}, %row], [{m1.name}, %max{step}]",
        "  %at1 = add i64 %start, %i1", *t.take_lines(again),
        f"  %n1 = add i64 %i1, {w}", "  %more1 = icmp slt i64 %n1, %whole", f"  br i1 %more1, label %max{step}, label %maxdone",
        "maxdone:",
        f"  %mall = phi {t.wide} [{m1.name}, %max{step}]",
        *t.take_lines(last), *fold_m, f"  br label %sum{step}",
        f"sum{step}:",
        f"  %i2 = phi i64 [0, %maxdone], [%n2, %sum{step}]",
        f"  %s1 = phi {t.wide} [zeroinitializer, %maxdone], [{s1.name}, %sum{step}]",
        f"  %d1 = phi {t.wide} [zeroinitializer, %maxdone], [{d1.name}, %sum{step}]",
        "  %at2 = add i64 %start, %i2", *t.take_lines(inner),
        f"  %n2 = add i64 %i2, {w}", "  %more2 = icmp slt i64 %n2, %whole", f"  br i1 %more2, label %sum{step}, label %sumdone",
        "sumdone:",
        f"  %sall = phi {t.wide} [{s1.name}, %sum{step}]",
        f"  %dall = phi {t.wide} [{d1.name}, %sum{step}]",
        "  %known = sub i64 %n, %whole", f"  %skip = sub i64 {w}, %known",
        *splat_lines("skips", "%skip", "i64", w),
        f"  %counted = icmp sge <{w} x i64> <{places}>, %skips",
        *t.take_lines(rest), *fold_s, *fold_d,
        *[line for name, lanes in (("m", m), ("s", s), ("d", d)) for line in (
            f"  %{name}single = extractelement {t.wide} {lanes}, i64 0",
            f"  %{name}to = getelementptr {LLVM[t.kind]}, ptr %{name}p, i64 %r",
            f"  store {LLVM[t.kind]} %{name}single, ptr %{name}to, align {8 if t.kind == 'f64' else 4}",
        )],
    ]  # fmt: skip


def _rows_text(dtype: np.dtype, width: int) -> str:
    """Rows (rows, n), n >= width: maxima, sums of powers and of differences from the maximum."""
    t = _Text(dtype, width)
    body = _per_row(t, "")
    return t.module([
        "entry:", f"  %whole = and i64 %n, {-width}", "  br label %row",
        "row:", "  %r = phi i64 [0, %entry], [%next, %sumdone]", "  %start = mul i64 %r, %n", "  %stop = add i64 %start, %n",
        f"  %end = sub i64 %stop, {width}",
        *body,
        "  %next = add i64 %r, 1", "  %more = icmp slt i64 %next, %rows", "  br i1 %more, label %row, label %done",
        "done:", "  ret void",
    ], "ptr %in, ptr %mp, ptr %sp, ptr %dp, i64 %rows, i64 %n")  # fmt: skip


def _columns_text(dtype: np.dtype, width: int) -> str:
    """Arrays (outer, n, inner), inner >= width: the same for every column, vectors along inner."""
    t = _Text(dtype, width)
    again, x1 = t.load("at1", "b")
    m1 = simd_functions.maximum(Vector(again, "%m1", t.kind), x1)
    first, x0 = t.load("start", "a")
    inner, x3 = t.load("at2", "g")
    away = x3 - Vector(inner, "%mall", t.kind)
    s1, d1 = Vector(inner, "%s1", t.kind) + simd_functions.exp(away), Vector(inner, "%d1", t.kind) + away
    align = 8 if t.kind == "f64" else 4
    return t.module([
        "entry:", "  %area = mul i64 %n, %inner", f"  %lastcol = sub i64 %inner, {width}", "  br label %row",
        "row:", "  %o = phi i64 [0, %entry], [%nexto, %rowdone]", "  %base = mul i64 %o, %area", "  %obase = mul i64 %o, %inner", "  br label %block",
        "block:", "  %j = phi i64 [0, %row], [%nextj, %blockdone]",
        "  %far = icmp sgt i64 %j, %lastcol", "  %col = select i1 %far, i64 %lastcol, i64 %j", "  %start = add i64 %base, %col",
        *t.take_lines(first), "  br label %max",
        "max:", "  %c1 = phi i64 [0, %block], [%nextc1, %max]", f"  %m1 = phi {t.wide} [{x0.name}, %block], [{m1.name}, %max]",
        "  %off1 = mul i64 %c1, %inner", "  %at1 = add i64 %start, %off1", *t.take_lines(again),
        "  %nextc1 = add i64 %c1, 1", "  %more1 = icmp slt i64 %nextc1, %n", "  br i1 %more1, label %max, label %maxdone",
        "maxdone:", f"  %mall = phi {t.wide} [{m1.name}, %max]", "  br label %sum",
        "sum:", "  %c2 = phi i64 [0, %maxdone], [%nextc2, %sum]",
        f"  %s1 = phi {t.wide} [zeroinitializer, %maxdone], [{s1.name}, %sum]", f"  %d1 = phi {t.wide} [zeroinitializer, %maxdone], [{d1.name}, %sum]",
        "  %off2 = mul i64 %c2, %inner", "  %at2 = add i64 %start, %off2", *t.take_lines(inner),
        "  %nextc2 = add i64 %c2, 1", "  %more2 = icmp slt i64 %nextc2, %n", "  br i1 %more2, label %sum, label %blockdone",
        "blockdone:", "  %to = add i64 %obase, %col",
        *[line for name, lanes in (("m", "%mall"), ("s", s1.name), ("d", d1.name)) for line in (
            f"  %{name}to = getelementptr {LLVM[t.kind]}, ptr %{name}p, i64 %to", f"  store {t.wide} {lanes}, ptr %{name}to, align {align}",
        )],
        f"  %nextj = add i64 %j, {width}", "  %morej = icmp slt i64 %nextj, %inner", "  br i1 %morej, label %block, label %rowdone",
        "rowdone:", "  %nexto = add i64 %o, 1", "  %moreo = icmp slt i64 %nexto, %rows", "  br i1 %moreo, label %row, label %done",
        "done:", "  ret void",
    ], "ptr %in, ptr %mp, ptr %sp, ptr %dp, i64 %rows, i64 %n, i64 %inner")  # fmt: skip


def _load_splat(name: str, t: _Text, at: str) -> list[str]:
    one = LLVM[t.kind]
    return [
        f"  %{name}at = getelementptr {one}, ptr %{name}p, i64 %{at}",
        f"  %{name}single = load {one}, ptr %{name}at, align {8 if t.kind == 'f64' else 4}",
        *splat_lines(name, f"%{name}single", one, t.width),
    ]


def _scaled_powers(t: _Text, at: str) -> tuple[list[str], Vector]:
    """e^(x - m) k - e of the vector from element %<at> on, as they are stored."""
    code, x = t.load(at, "b")
    y = simd_functions.exp(x - Vector(code, "%m", t.kind)) * Vector(code, "%k", t.kind) - Vector(code, "%e", t.kind)
    y = to_stored_type(y, t.dtype)
    return t.take_lines(code), y


def _powers_text(dtype: np.dtype, width: int) -> str:
    """Rows (rows, n), n >= width: e^(x - m) k - e with numbers m, k, e of the row."""
    t = _Text(dtype, width)
    lines, y = _scaled_powers(t, "at")
    return t.module([
        "entry:", f"  %over = sub i64 %n, {width}", "  br label %row",
        "row:", "  %r = phi i64 [0, %entry], [%next, %rowdone]", "  %start = mul i64 %r, %n",
        *_load_splat("m", t, "r"), *_load_splat("k", t, "r"), *_load_splat("e", t, "r"), "  br label %loop",
        "loop:", "  %i = phi i64 [0, %row], [%nexti, %loop]", "  %far = icmp sgt i64 %i, %over", "  %col = select i1 %far, i64 %over, i64 %i",
        "  %at = add i64 %start, %col", *lines,
        f"  %to = getelementptr {LLVM[t.stored]}, ptr %out, i64 %at", f"  store {t.vector} {y.name}, ptr %to, align {dtype.itemsize}",
        f"  %nexti = add i64 %i, {width}", "  %morei = icmp slt i64 %nexti, %n", "  br i1 %morei, label %loop, label %rowdone",
        "rowdone:", "  %next = add i64 %r, 1", "  %more = icmp slt i64 %next, %rows", "  br i1 %more, label %row, label %done",
        "done:", "  ret void",
    ], "ptr %out, ptr %in, ptr %mp, ptr %kp, ptr %ep, i64 %rows, i64 %n")  # fmt: skip


def _column_powers_text(dtype: np.dtype, width: int) -> str:
    """Arrays (outer, n, inner), inner >= width: e^(x - m) k - e with numbers m, k, e of the column."""
    t = _Text(dtype, width)
    lines, y = _scaled_powers(t, "at")
    align = 8 if t.kind == "f64" else 4
    return t.module([
        "entry:", "  %area = mul i64 %n, %inner", f"  %lastcol = sub i64 %inner, {width}", "  br label %row",
        "row:", "  %o = phi i64 [0, %entry], [%nexto, %rowdone]", "  %base = mul i64 %o, %area", "  %obase = mul i64 %o, %inner", "  br label %block",
        "block:", "  %j = phi i64 [0, %row], [%nextj, %blockdone]",
        "  %far = icmp sgt i64 %j, %lastcol", "  %col = select i1 %far, i64 %lastcol, i64 %j", "  %start = add i64 %base, %col",
        "  %from = add i64 %obase, %col",
        *[line for name in "mke" for line in (
            f"  %{name}at = getelementptr {LLVM[t.kind]}, ptr %{name}p, i64 %from", f"  %{name} = load {t.wide}, ptr %{name}at, align {align}",
        )],
        "  br label %loop",
        "loop:", "  %c = phi i64 [0, %block], [%nextc, %loop]", "  %off = mul i64 %c, %inner", "  %at = add i64 %start, %off", *lines,
        f"  %to = getelementptr {LLVM[t.stored]}, ptr %out, i64 %at", f"  store {t.vector} {y.name}, ptr %to, align {dtype.itemsize}",
        "  %nextc = add i64 %c, 1", "  %morec = icmp slt i64 %nextc, %n", "  br i1 %morec, label %loop, label %blockdone",
        "blockdone:", f"  %nextj = add i64 %j, {width}", "  %morej = icmp slt i64 %nextj, %inner", "  br i1 %morej, label %block, label %rowdone",
        "rowdone:", "  %nexto = add i64 %o, 1", "  %moreo = icmp slt i64 %nexto, %rows", "  br i1 %moreo, label %row, label %done",
        "done:", "  ret void",
    ], "ptr %out, ptr %in, ptr %mp, ptr %kp, ptr %ep, i64 %rows, i64 %n, i64 %inner")  # fmt: skip


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
