"""Copies of images with zeros around them for machine code: what a tap of a convolution reads lies side by side, whatever its stride."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.convolution.geometry import Sizes
from tritensor.kernels.convolution.llvm_types import pointer
from tritensor.kernels.convolution.plans import Plan
from tritensor.llvm import threads
from tritensor.llvm.loop_nest import LoopNest

_LANES = 8  # elements that are copied at a time
_SHORT = 256  # bytes of a row up to which it is copied by instructions that know its length
_SMALL = 4  # steps from element to element up to which they are
_COPY = ("src", "dst", "outer", "inner", "src_o", "src_i", "dst_o", "dst_i", "pieces", "table")


class Pieces(NamedTuple):
    """Rows to copy: a table (rows, 3) of the bytes where each begins here and there and of its elements, the table's address, and the bytes from
    element to element here and there; the elements of each row where all have as many, and few, else 0."""

    table: np.ndarray
    address: int
    here: int
    there: int
    each: int


class Layout(NamedTuple):
    """How a plan's images and results lie. An image's rows follow one another so closely that zeros behind one are those before the next; cells of
    each phase of the stride are an image of their own. Output r, q of a slab lies at r * pitch + q, of results and of what a tap reads of an image."""

    plane: int  # elements of an image
    into: Pieces  # from the image as it is
    gaps: bool  # whether there are others than images' ends
    shift: np.ndarray  # of each tap, bytes
    results: int  # elements of the results of an image
    back: Pieces  # results to where they belong
    forth: Pieces  # the way back
    reads: np.ndarray  # of each vector of results: where the first tap reads, bytes
    writes: np.ndarray  # where it lies, bytes


class _Axis(NamedTuple):
    """One axis: cells of a phase, phase and cell where each tap begins, and which cells of each phase are the image's: first, first there, how many."""

    extent: int
    phase: list[int]
    first: list[int]
    held: list[tuple[int, int, int]]


def _axis(size: int, outs: int, stride: int, shifts: list[int]) -> _Axis:
    low = -min(shifts)
    phase, first = [(s + low) % stride for s in shifts], [(s + low) // stride for s in shifts]
    extent = outs + max(first)
    held = []
    for f in range(stride):
        begin = max(0, -(-(low - f) // stride))
        held.append((begin, begin * stride + f - low, max(0, min(extent, -(-(size + low - f) // stride)) - begin)))
    return _Axis(extent, phase, first, held)


@functools.lru_cache(maxsize=256)
def layout_of(plan: Plan, width: int, item: int) -> Layout:
    axes = [_axis(n, m, s, [t[a] for t in plan.shifts]) for a, (n, m, s) in enumerate(zip(plan.size, plan.outs, plan.stride, strict=True))]
    *outer, last = axes
    used = sorted(set(last.phase))
    row = plan.outs[-1]
    zeros = min(min(last.held[f][0], last.extent - last.held[f][0] - last.held[f][2]) for f in used)
    pitch = last.extent - min(zeros, last.extent - row)
    rows = [a.extent for a in outer]
    phases = [len(a.held) for a in axes]
    image = math.prod(rows) * pitch + last.extent - pitch + width  # of a phase; a vector may end behind the last row
    number = {f: i for i, f in enumerate(sorted(set(zip(*[a.phase for a in axes], strict=True))))}  # phases that a tap reads

    def at(where: tuple[int, ...]) -> int:
        place = 0
        for i, extent in zip(where, rows, strict=True):
            place = place * extent + i
        return place * pitch

    shift = [
        (number[tuple(a.phase[t] for a in axes)] * image + at(tuple(a.first[t] for a in outer)) + last.first[t]) * item
        for t in range(len(plan.shifts))
    ]
    source = [math.prod(plan.size[a + 1 :]) for a in range(len(axes))]
    into: list[tuple[int, int, int]] = []
    for f in np.ndindex(*phases):
        held = [a.held[i] for a, i in zip(axes, f, strict=True)]
        # phases of the stride that no tap reads are not copied
        if f not in number or min(h[2] for h in held) == 0:
            continue
        for where in np.ndindex(*[h[2] for h in held[:-1]]):
            cells = [h[1] + i * s for h, i, s in zip(held[:-1], where, plan.stride[:-1], strict=True)]
            start = sum(c * p for c, p in zip(cells, source[:-1], strict=True)) + held[-1][1]
            end = number[f] * image + at(tuple(h[0] + i for h, i in zip(held[:-1], where, strict=True))) + held[-1][0]
            into.append((start, end, held[-1][2]))
    slabs, lines = plan.outs[:-2], plan.outs[-2] if outer else 1
    vectors = -(-((lines - 1) * pitch + row) // width)
    reads, back = [], []
    for which, slab in enumerate(np.ndindex(*slabs)):
        first = at((*slab, 0)) if outer else 0
        reads += [first + v * width for v in range(vectors)]
        back += [(which * vectors * width + line * pitch, (which * lines + line) * row, row) for line in range(lines)]
    return Layout(
        len(number) * image,
        make_pieces(into, plan.stride[-1], 1, item),
        sum(n for _, _, n in into) < len(number) * (image - width),
        np.array(shift, np.int64),
        math.prod(slabs) * vectors * width,
        make_pieces(back, 1, 1, item),
        make_pieces([(end, start, n) for start, end, n in back], 1, 1, item),
        np.array(reads, np.int64) * item,
        np.arange(math.prod(slabs) * vectors) * width * item,
    )


@functools.lru_cache(maxsize=256)
def spread_pieces(plan: Plan, width: int, item: int, size: Sizes, start: Sizes, stride: Sizes) -> Pieces:
    """The results of a plan to every stride-th cell of an image `size`, from `start` on."""
    pitch = contiguous_strides(size)
    rows = []
    for first, where in zip(layout_of(plan, width, item).back.table[:, 0] // item, np.ndindex(*plan.outs[:-1]), strict=True):
        cells = [a + i * s for a, i, s in zip(start, (*where, 0), stride, strict=True)]
        rows.append((int(first), sum(c * p for c, p in zip(cells, pitch, strict=True)), plan.outs[-1]))
    return make_pieces(rows, 1, stride[-1], item)


def make_pieces(rows: list[tuple[int, int, int]], here: int, there: int, item: int) -> Pieces:
    """Of rows (start, end, elements) and steps in elements."""
    table = np.array(rows, np.int64).reshape(-1, 3) * np.array([item, item, 1])
    lengths = {n for _, _, n in rows}
    each = lengths.pop() if len(lengths) == 1 and here == there == 1 else 0
    return Pieces(table, pointer(table), here * item, there * item, each if each * item <= _SHORT else 0)


@functools.cache
def _copier(item: int, here: int, there: int, each: int) -> Any:
    """Copy pieces of `inner` planes of each of `outer` ones: bytes from element to element `here` and `there`; elements of each piece, or 0."""
    nest = LoopNest()
    with nest.loop("o", "%outer"), nest.loop("i", "%inner"):
        nest.offset_pointer("from", "%src", ("%o", "%src_o"), ("%i", "%src_i"))
        nest.offset_pointer("onto", "%dst", ("%o", "%dst_o"), ("%i", "%dst_i"))
        with nest.loop("p", "%pieces"):
            nest.lines.append("  %piece = mul i64 %p, 3\n  %piece1 = add i64 %piece, 1\n  %piece2 = add i64 %piece, 2")
            for name, place in (("start", "%piece"), ("end", "%piece1"), ("count", "%piece2")):
                nest.load_element(name, "i64", "%table", place, 8)
            nest.lines += ["  %here = getelementptr i8, ptr %from, i64 %start", "  %there = getelementptr i8, ptr %onto, i64 %end"]
            if here == there == item:
                bytes_ = f"{each * item}" if each else "%bytes"
                nest.lines += [
                    f"  %bytes = mul i64 %count, {item}",
                    f"  call void @llvm.memcpy.p0.p0.i64(ptr %there, ptr %here, i64 {bytes_}, i1 false)",
                ]
            else:
                _strided(nest, item, here, there)
    return nest.compile(_COPY, {"src", "dst", "table"}, ["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"])


def _strided(nest: LoopNest, item: int, here: int, there: int) -> None:
    """`count` elements from %here to %there: of a small step eight at a time, all but the last, behind which nothing may be read."""
    step, number = here // item, f"i{item * 8}"
    # a load of all cells and a shuffle: beyond four steps most of what is loaded is thrown away
    if there == item and step <= _SMALL:
        nest.lines += [f"  %fore = sub i64 %count, 1\n  %turns = udiv i64 %fore, {_LANES}\n  %done = mul i64 %turns, {_LANES}"]
        with nest.maybe_empty_loop("t", "%turns"):
            nest.offset_pointer("many", "%here", ("%t", f"{_LANES * here}"))
            nest.offset_pointer("others", "%there", ("%t", f"{_LANES * there}"))
            wide, lanes = f"<{_LANES * step} x {number}>", ", ".join(f"i32 {step * i}" for i in range(_LANES))
            nest.lines += [
                f"  %cells = load {wide}, ptr %many, align {item}",
                f"  %taken = shufflevector {wide} %cells, {wide} poison, <{_LANES} x i32> <{lanes}>",
                f"  store <{_LANES} x {number}> %taken, ptr %others, align {item}",
            ]
    else:
        nest.lines.append("  %done = add i64 0, 0")
    nest.lines.append("  %rest = sub i64 %count, %done")
    with nest.loop("e", "%rest"):
        nest.lines.append("  %which = add i64 %done, %e")
        nest.offset_pointer("one", "%here", ("%which", f"{here}"))
        nest.offset_pointer("other", "%there", ("%which", f"{there}"))
        nest.lines += [f"  %value = load {number}, ptr %one, align {item}", f"  store {number} %value, ptr %other, align {item}"]


@functools.cache
def _memset() -> Any:
    found = ctypes.CDLL(None).memset
    found.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    return found


def zero_fill(x: np.ndarray) -> threads.Call:
    """What fills an array, in C order, with zeros."""
    return _memset(), (pointer(x), 0, x.nbytes)


class Copying(NamedTuple):
    """Pieces of so many planes to copy between two addresses: bytes from plane to plane here and there."""

    src: int
    dst: int
    item: int
    planes: int
    here: int
    there: int
    which: Pieces

    def call(self) -> list[threads.Call]:
        """What copies them; nothing where there are no pieces."""
        where, count = self.which, len(self.which.table)
        given = self.src, self.dst, 1, self.planes, 0, self.here, 0, self.there, count, where.address
        return [(_copier(self.item, where.here, where.there, where.each), given)] if count else []

    def shared(self) -> None:
        """Have threads copy them."""
        copy_pieces(self.src, self.dst, self.item, (1, self.planes), (0, self.here), (0, self.there), self.which, alone=False)


def copy_pieces(
    src: int, dst: int, item: int, planes: tuple[int, int], here: tuple[int, int], there: tuple[int, int], which: Pieces, alone: bool = True
) -> None:
    """Copy pieces of planes (outer, inner), bytes from plane to plane `here` and `there`, between two addresses; not `alone`: threads share the planes."""
    if not len(which.table):
        return
    outer, inner = planes

    def part(low: int, high: int) -> tuple[int, ...]:
        """Some of the outer planes, or of the inner ones of the only one."""
        if outer > 1:
            return src + low * here[0], dst + low * there[0], high - low, inner, *here, *there, len(which.table), which.address
        return src + low * here[1], dst + low * there[1], 1, high - low, *here, *there, len(which.table), which.address

    threads.run_shared(_copier(item, which.here, which.there, which.each), outer if outer > 1 else inner, part, alone)
