"""Rows named by numbers, in machine code: added to rows of another matrix, or compared with them, one pair of rows after the other."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loops import STORED, to_compute_type
from tritensor.llvm.simd import LLVM, Code, Vector, select, splat_lines

_WIDTHS = (64, 16, 1)  # lanes of a turn: of most of a row, of what is left of it, of the last elements
_FLOATS = "fV"
_TEXT = """define void @run(ptr %out, ptr %which, ptr %in, ptr %scale, i64 %each, ptr %to, ptr %from, i64 %count, i64 %n, i64 %noto, i64 %nofrom) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %run, label %done
run:
  %r = phi i64 [0, %entry], [%end, %rundone]
  %qt = getelementptr i64, ptr %to, i64 %r
  %t = load i64, ptr %qt
  %tstart = mul i64 %t, %n
  br label %longer
longer:
  %last = phi i64 [%r, %run], [%end, %look]
  %end = add i64 %last, 1
  %morer = icmp slt i64 %end, %count
  br i1 %morer, label %look, label %found
look:
  %qend = getelementptr i64, ptr %to, i64 %end
  %tend = load i64, ptr %qend
  %same = icmp eq i64 %tend, %t
  br i1 %same, label %longer, label %found
found:
  %skip = icmp eq i64 %t, %noto
  br i1 %skip, label %rundone, label %loop{first}
{loops}
rundone:
  br i1 %morer, label %run, label %done
done:
  ret void
}}
"""
# The elements of a run of equal numbers `to`, w side by side: their totals stay in registers.
_LOOP = """loop{w}:
  %to{w} = and i64 %n, -{w}
  %some{w} = icmp slt i64 {start}, %to{w}
  br i1 %some{w}, label %turn{w}, label %{after}
turn{w}:
  %i{w} = phi i64 [{start}, %loop{w}], [%next{w}, %store{w}]
{load}
  br label %row{w}
row{w}:
  %k{w} = phi i64 [%r, %turn{w}], [%nextk{w}, %rowdone{w}]
{totals}
  %qf{w} = getelementptr i64, ptr %from, i64 %k{w}
  %f{w} = load i64, ptr %qf{w}
  %skip{w} = icmp eq i64 %f{w}, %nofrom
  br i1 %skip{w}, label %rowdone{w}, label %add{w}
add{w}:
  %qs{w} = mul i64 %k{w}, %each
  %ps{w} = getelementptr {sum}, ptr %scale, i64 %qs{w}
  %s{w} = load {sum}, ptr %ps{w}
  %start{w} = mul i64 %f{w}, %n
{ahead}
{add}
  br label %rowdone{w}
rowdone{w}:
{kept}
  %nextk{w} = add i64 %k{w}, 1
  %morek{w} = icmp slt i64 %nextk{w}, %end
  br i1 %morek{w}, label %row{w}, label %store{w}
store{w}:
{store}
  %next{w} = add i64 %i{w}, {w}
  %more{w} = icmp slt i64 %next{w}, %to{w}
  br i1 %more{w}, label %turn{w}, label %{after}"""
# A row that is a few turns away is asked for already.
_AHEAD = """  %ka{w} = add i64 %k{w}, 12
  %ina{w} = icmp slt i64 %ka{w}, %count
  %kb{w} = select i1 %ina{w}, i64 %ka{w}, i64 %k{w}
  %qa{w} = getelementptr i64, ptr %from, i64 %kb{w}
  %fa{w} = load i64, ptr %qa{w}
  %ra{w} = mul i64 %fa{w}, %n
  %ea{w} = add i64 %ra{w}, %i{w}
  %pa{w} = getelementptr {element}, ptr %in, i64 %ea{w}"""
_LINE = """  %line{w}_{j} = getelementptr i8, ptr %pa{w}, i64 {at}
  call void @llvm.prefetch.p0(ptr %line{w}_{j}, i32 0, i32 3, i32 1)"""
_ALIGNED = {"f16": 2, "i16": 2, "f32": 4, "f64": 8, "i64": 8}


class _Part:
    """The code of w elements side by side: what is loaded before a run, added for each of its rows, and stored behind it."""

    def __init__(self, dtype: np.dtype, w: int, largest: bool) -> None:
        self.w, self.code = w, Code(w, f"v{w}_")
        self.ahead: list[str] = []
        if w == _WIDTHS[0]:
            self.code.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            self.ahead = [_AHEAD.format(w=w, element=LLVM[STORED[dtype]])]
            self.ahead += [_LINE.format(w=w, j=j, at=at) for j, at in enumerate(range(0, w * dtype.itemsize, 64))]
        kind = "f64" if dtype.itemsize == 8 else "f32"
        kept = [("%out", kind), ("%which", "i64")][: 1 + largest]
        places = [self.address(base, "%tstart", element) for base, element in kept]
        first = [self.load(place, element) for place, (_, element) in zip(places, kept, strict=True)]
        self.loading = self.take_lines()
        totals = [Vector(self.code, f"%total{w}_{j}", element) for j, (_, element) in enumerate(kept)]
        x = to_compute_type(self.load(self.address("%in", f"%start{w}", STORED[dtype]), STORED[dtype]), dtype)
        if largest:
            better = (totals[1] < 0) | (x > totals[0])
            made = [select(better, x, totals[0]), select(better, self.broadcast(f"%f{w}", "i64"), totals[1])]
        else:
            made = [totals[0] + x * self.broadcast(f"%s{w}", kind)]
        self.adding = self.take_lines()
        types = [self.code.type(element) for _, element in kept]
        self.totals, self.kept, self.storing = [], [], []
        for j, (old, total, new, place, type_) in enumerate(zip(first, totals, made, places, types, strict=True)):
            self.totals.append(f"  {total.name} = phi {type_} [{old.name}, %turn{w}], [%kept{w}_{j}, %rowdone{w}]")
            self.kept.append(f"  %kept{w}_{j} = phi {type_} [{total.name}, %row{w}], [{new.name}, %add{w}]")
            self.storing.append(f"  store {type_} %kept{w}_{j}, ptr {place}, align {_ALIGNED[total.kind]}")

    def take_lines(self) -> list[str]:
        lines, self.code.lines = self.code.lines, []
        return lines

    def address(self, base: str, start: str, element: str) -> str:
        at, place = f"%at{self.w}{base[1:]}", f"%p{self.w}{base[1:]}"
        self.code.lines += [f"  {at} = add i64 {start}, %i{self.w}", f"  {place} = getelementptr {LLVM[element]}, ptr {base}, i64 {at}"]
        return place

    def load(self, place: str, element: str) -> Vector:
        return self.code.emit(element, f"load {self.code.type(element)}, ptr {place}, align {_ALIGNED[element]}")

    def broadcast(self, value: str, element: str) -> Vector:
        name = f"all{self.w}{value[1:]}"
        self.code.lines += splat_lines(name, value, LLVM[element], self.w)
        return Vector(self.code, f"%{name}", element)

    def text(self, start: str, after: str, number: str) -> str:
        blocks = {
            "load": self.loading,
            "totals": self.totals,
            "ahead": self.ahead,
            "add": self.adding,
            "kept": self.kept,
            "store": self.storing,
        }
        return _LOOP.format(w=self.w, start=start, after=after, sum=number, **{k: "\n".join(v) for k, v in blocks.items()})


@functools.cache
def _compile(dtype: np.dtype, largest: bool) -> Any:
    if compiler.refusal() or dtype not in STORED:
        return None
    parts = [_Part(dtype, w, largest) for w in _WIDTHS]
    starts, after = ("0", *[f"%to{w}" for w in _WIDTHS[:-1]]), (*[f"loop{w}" for w in _WIDTHS[1:]], "rundone")
    number = "double" if dtype.itemsize == 8 else "float"
    loops = [part.text(start, then, number) for part, start, then in zip(parts, starts, after, strict=True)]
    declared = set().union(*[part.code.declared for part in parts])
    text = "\n".join([*sorted(declared), _TEXT.format(first=_WIDTHS[0], loops="\n".join(loops))])
    word, place = ctypes.c_int64, ctypes.c_void_p
    return compiler.build_typed(text, None, place, place, place, place, word, place, place, word, word, word, word)


def _run(
    out: np.ndarray,
    which: np.ndarray | None,
    x: np.ndarray,
    scale: np.ndarray | None,
    to: np.ndarray,
    places: np.ndarray,
    skip: tuple[int, int],
) -> bool:
    function = _compile(x.dtype, which is not None) if x.dtype.kind in _FLOATS else None
    if function is None or not x.flags.c_contiguous:
        return False
    # the loop always multiplies: a stride of 0 repeats the one
    factors = np.ones(1, out.dtype) if scale is None else np.ascontiguousarray(scale, out.dtype)
    # indices may come as int32, or as a window
    to, places = np.ascontiguousarray(to, np.int64), np.ascontiguousarray(places, np.int64)
    function(
        out.ctypes.data, None if which is None else which.ctypes.data, x.ctypes.data, factors.ctypes.data, int(scale is not None),
        to.ctypes.data, places.ctypes.data, to.size, out.shape[1], *skip,
    )  # fmt: skip
    return True


def add_rows(out: np.ndarray, x: np.ndarray, scale: np.ndarray | None, to: np.ndarray, places: np.ndarray, skip: tuple[int, int]) -> bool:
    """out[to[i]] += scale[i] x[places[i]] for one i after the other, but where to[i] is skip[0] or places[i] is skip[1]. False where numpy has to.

    out (rows, n) in C order of x's accumulator, float32 or float64; all numbers must be rows, which nobody looks at here.
    """
    return _run(out, None, x, scale, to, places, skip)


def max_rows(out: np.ndarray, which: np.ndarray, x: np.ndarray, to: np.ndarray, places: np.ndarray, skip: tuple[int, int]) -> bool:
    """out[to[i]] = x[places[i]], and which[to[i]] = places[i], where that is larger or `which` is below 0; otherwise as `add_rows`."""
    return _run(out, which, x, None, to, places, skip)
