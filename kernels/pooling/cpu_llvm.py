"""Max pooling of images on the CPU in machine code: the largest of each window and where it stands, and the gradients back to those places."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts.indices.sliding_windows import Windows
from tritensor.llvm import threads
from tritensor.llvm.loop_nest import LoopNest
from tritensor.llvm.simd import LLVM, Code, Vector, select

_KINDS = {np.dtype(np.float32): ("f32", 8), np.dtype(np.float64): ("f64", 4)}  # of numbers, and lanes
_SHARED = 1 << 17  # results from which threads share the planes
_CELLS = 1 << 31  # of a plane, whose numbers 32 bits hold
_LARGEST = ("x", "y", "index", "planes", "cells", "columns", "tall", "rows", "long", "outs", "vectors", "low", "singles")
_SCATTER = ("g", "index", "dx", "planes", "cells", "outs", "bytes", "bad")


class _Turns(NamedTuple):
    """Of both axes (outs, 2) the first cell of each window and how many it has. Of a row, `vectors` of `lanes` outputs from the one at `low` on are
    computed at once, `singles` one by one."""

    tall: np.ndarray
    long: np.ndarray
    lanes: int
    vectors: int
    low: int
    singles: int


@functools.lru_cache(maxsize=256)
def _turns(s: Windows, lanes: int) -> _Turns:
    axes = []
    for n, m, k, step, p in zip(s.size, s.outs, s.kernel, s.stride, s.padding, strict=True):
        at = np.arange(m) * step - p
        first = np.maximum(at, 0)
        axes.append(np.ascontiguousarray(np.stack([first, np.minimum(at + k, n) - first], 1), np.int64))
    whole = np.flatnonzero(axes[1][:, 1] == s.kernel[1])  # only windows at the two ends reach over a border
    # a shuffle of two loads makes vectors of stride 2; wider steps would waste most of what is loaded
    count = len(whole) if s.stride[1] <= 2 else 0
    # short rows: half as wide vectors may leave fewer outputs to be done one by one
    lanes = min(lanes, lanes // 2, key=lambda n: count // n + count % n)
    vectors = count // lanes
    return _Turns(axes[0], axes[1], lanes, vectors, int(whole[0]) if vectors else 0, s.outs[1] - vectors * lanes)


def _read(nest: LoopNest, kind: str, v: str, lanes: int, step: int) -> None:
    """%<v>value: `lanes` elements from %<v>from on, `step` (1 or 2) from one to the next; nothing behind the last is touched."""
    vector, align = f"<{lanes} x {LLVM[kind]}>", int(kind[1:]) // 8
    if lanes == 1 or step == 1:
        nest.lines.append(f"  %{v}value = load {vector}, ptr %{v}from, align {align}")
        return
    every = ", ".join(f"i32 {2 * k + (2 * k >= lanes)}" for k in range(lanes))
    nest.lines += [
        f"  %{v}one = load {vector}, ptr %{v}from, align {align}",
        f"  %{v}on = getelementptr {LLVM[kind]}, ptr %{v}from, i64 {lanes - 1}",
        f"  %{v}two = load {vector}, ptr %{v}on, align {align}",
        f"  %{v}value = shufflevector {vector} %{v}one, {vector} %{v}two, <{lanes} x i32> <{every}>",
    ]


def _numbers(nest: LoopNest, name: str, first: str, lanes: int, step: int) -> None:
    """%<name>: a number, of 32 bits, and those that follow it by `step` each."""
    vector = f"<{lanes} x i32>"
    nest.lines += [
        f"  %{name}.short = trunc i64 {first} to i32",
        f"  %{name}.first = insertelement {vector} poison, i32 %{name}.short, i64 0",
        f"  %{name}.all = shufflevector {vector} %{name}.first, {vector} poison, {vector} zeroinitializer",
        f"  %{name} = add {vector} %{name}.all, <{', '.join(f'i32 {k * step}' for k in range(lanes))}>",
    ]


def _windows(nest: LoopNest, kind: str, v: str, lanes: int, step: int) -> None:
    """The largest elements, and their cells, of the windows of `lanes` outputs of a row, the first of which is %<v>out: `step` from one to the next."""
    vector, cells, align = f"<{lanes} x {LLVM[kind]}>", f"<{lanes} x i32>", int(kind[1:]) // 8
    nest.load_element(f"{v}left", "[2 x i64]", "%long", f"%{v}out", 8)
    nest.lines += [
        f"  %{v}column = extractvalue [2 x i64] %{v}left, 0",
        f"  %{v}width = extractvalue [2 x i64] %{v}left, 1",
        f"  %{v}first = add i64 %start, %{v}column",
    ]
    _numbers(nest, f"{v}begin", f"%{v}first", lanes, step)
    state = {f"{v}best": (vector, f"splat ({LLVM[kind]} 0xFFF0000000000000)"), f"{v}found": (cells, f"%{v}begin")}
    with nest.loops({f"{v}i": "%height", f"{v}j": f"%{v}width"}, **state):
        nest.lines += [
            f"  %{v}down = mul i64 %{v}i, %columns",
            f"  %{v}row = add i64 %{v}down, %{v}first",
            f"  %{v}cell = add i64 %{v}row, %{v}j",
            f"  %{v}from = getelementptr {LLVM[kind]}, ptr %image, i64 %{v}cell",
        ]
        _read(nest, kind, v, lanes, step)
        _numbers(nest, f"{v}number", f"%{v}cell", lanes, step)
        code = Code(lanes, f"{v}t")
        value, best, number, found = (
            Vector(code, f"%{v}{name}", of) for name, of in (("value", kind), ("best", kind), ("number", "i32"), ("found", "i32"))
        )
        take = (value > best) | (value != value)
        kept = select(take, value, best), select(take, number, found)
        nest.lines += code.lines
        nest.lines += [
            f"  %{name}.new = bitcast {of} {lane.name} to {of}" for (name, (of, _)), lane in zip(state.items(), kept, strict=True)
        ]
    nest.lines += [
        f"  %{v}to = add i64 %outs.before, %{v}out",
        f"  %{v}onto = getelementptr {LLVM[kind]}, ptr %y, i64 %{v}to",
        f"  store {vector} %{v}best.new, ptr %{v}onto, align {align}",
        f"  %{v}wide = sext {cells} %{v}found.new to <{lanes} x i64>",
        f"  %{v}place = getelementptr i64, ptr %index, i64 %{v}to",
        f"  store <{lanes} x i64> %{v}wide, ptr %{v}place, align 8",
    ]


@functools.cache
def _largest(dtype: np.dtype, lanes: int, step: int) -> Any:
    """y, index of x (planes, cells): vectors of outputs whose windows are `step` apart."""
    kind = _KINDS[dtype][0]
    nest = LoopNest()
    with nest.loop("p", "%planes"):
        nest.lines += [
            "  %cells.before = mul i64 %p, %cells",
            f"  %image = getelementptr {LLVM[kind]}, ptr %x, i64 %cells.before",
            "  %rows.before = mul i64 %p, %rows",
        ]
        with nest.loop("r", "%rows"):
            nest.load_element("top", "[2 x i64]", "%tall", "%r", 8)
            nest.lines += [
                "  %line = extractvalue [2 x i64] %top, 0",
                "  %height = extractvalue [2 x i64] %top, 1",
                "  %start = mul i64 %line, %columns",
                "  %row = add i64 %rows.before, %r",
                "  %outs.before = mul i64 %row, %outs",
            ]
            with nest.maybe_empty_loop("v", "%vectors"):
                nest.lines += [f"  %v.far = mul i64 %v, {lanes}", "  %v.out = add i64 %low, %v.far"]
                _windows(nest, kind, "v.", lanes, step)
            with nest.maybe_empty_loop("s", "%singles"):
                nest.lines += [
                    "  %s.before = icmp ult i64 %s, %low",
                    f"  %done = mul i64 %vectors, {lanes}",
                    "  %s.behind = add i64 %s, %done",
                    "  %s.out = select i1 %s.before, i64 %s, i64 %s.behind",
                ]
                _windows(nest, kind, "s.", 1, step)
    return nest.compile(_LARGEST, {"x", "y", "index", "tall", "long"})


@functools.cache
def _scatter(dtype: np.dtype) -> Any:
    """dx (planes, cells) of g and index (planes, outs): %bad where an index is none of a cell."""
    number, align = LLVM[_KINDS[dtype][0]], dtype.itemsize
    nest = LoopNest()
    with nest.loop("p", "%planes"):
        nest.lines += [
            "  %cells.before = mul i64 %p, %cells",
            f"  %image = getelementptr {number}, ptr %dx, i64 %cells.before",
            "  call void @llvm.memset.p0.i64(ptr %image, i8 0, i64 %bytes, i1 false)",
            "  %outs.before = mul i64 %p, %outs",
        ]
        with nest.loop("o", "%outs"):
            nest.lines.append("  %at = add i64 %outs.before, %o")
            nest.load_element("cell", "i64", "%index", "%at", 8)
            nest.load_element("given", number, "%g", "%at", align)
            nest.lines += [
                "  %inside = icmp ult i64 %cell, %cells",
                "  br i1 %inside, label %put, label %miss",
                "miss:",
                "  store i64 1, ptr %bad, align 8",
                "  br label %o.latch0",
                "put:",
            ]
            nest.load_element("before", number, "%image", "%cell", align)
            nest.lines += [
                f"  %sum = fadd {number} %before, %given",
                f"  store {number} %sum, ptr %before.at, align {align}",
                "  br label %o.latch0",
                "o.latch0:",
            ]
    return nest.compile(_SCATTER, {"g", "index", "dx", "bad"}, ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"])


def _at(x: np.ndarray, first: int = 0) -> int:
    """The address of x's part that begins at a place along its first axis; x is in C order."""
    return int(x.__array_interface__["data"][0]) + first * x.itemsize * (x.size // len(x))


def largest(x: np.ndarray, s: Windows) -> tuple[np.ndarray, np.ndarray] | None:
    """The largest of each window of x (P, H, W), in C order, and its number in the plane, both (P, OH, OW): the first of equals, NaN above all. None where
    numpy has to find them: of other types, of volumes, of windows with gaps."""
    if x.dtype not in _KINDS or x.ndim != 3 or max(s.dilation) > 1 or x.shape[1] * x.shape[2] >= _CELLS or not x.size:
        return None
    turns = _turns(s, _KINDS[x.dtype][1])
    function = _largest(x.dtype, turns.lanes, s.stride[1])
    if function is None:
        return None
    y, index = np.empty((len(x), *s.outs), x.dtype), np.empty((len(x), *s.outs), np.int64)

    def planes(low: int, high: int) -> tuple[int, ...]:
        return (
            _at(x, low), _at(y, low), _at(index, low), high - low, s.size[0] * s.size[1], s.size[1], _at(turns.tall), s.outs[0], _at(turns.long),
            s.outs[1], turns.vectors, turns.low, turns.singles,
        )  # fmt: skip

    threads.run_shared(function, len(x), planes, y.size < _SHARED)
    return y, index


def scatter(g: np.ndarray, index: np.ndarray, size: tuple[int, ...]) -> np.ndarray | None:
    """dx (P, *size): each cell gets the sum of the g (P, *outs) whose index names it, both in C order. None where numpy has to add them up: of other types,
    or where an index names no cell."""
    if g.dtype not in _KINDS or not g.size:
        return None
    function = _scatter(g.dtype)
    if function is None:
        return None
    dx, bad = np.empty((len(g), *size), g.dtype), np.zeros(1, np.int64)
    cells, outs = dx.size // len(g), g.size // len(g)

    def planes(low: int, high: int) -> tuple[int, ...]:
        return _at(g, low), _at(index, low), _at(dx, low), high - low, cells, outs, cells * g.itemsize, _at(bad)

    threads.run_shared(function, len(g), planes, dx.size < _SHARED)
    # an index may come from a user: one that names no cell writes nothing, and numpy says so
    return None if bad[0] else dx
