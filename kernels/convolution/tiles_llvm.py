"""Convolution on the CPU over padded copies, and its gradient to the weight: machine code that keeps a tile of results in registers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.convolution.geometry import Geometry, Sizes
from tritensor.kernels.convolution.llvm_types import WIDTH, Kind, kind_in, pointer, scratch
from tritensor.kernels.convolution.padded import Copying, Pieces, copy_pieces, layout_of, spread_pieces, zero_fill
from tritensor.kernels.convolution.plans import Plan
from tritensor.llvm import compiler, threads
from tritensor.llvm.loop_nest import LoopNest

_CHUNK = 1 << 20  # bytes of copies and results at a time, of each thread: they stay in its cache
_ALONE = 1 << 22  # products below which a second thread does not pay
_HEAVY = 1 << 16  # elements of a weight
_RUN = 128  # vectors that a weight's gradient adds up one after the other
_FEW = 32  # vectors below which the sums of their lanes, at the end, are most of the work
_SMALL = 8  # times the gradient's elements that images and given gradients have where each thread has sums of its own
_POINTERS = {"x", "w", "bias", "y", "cell", "x_at", "y_at"}
_WEIGHT_POINTERS = {"x", "g", "dw", "cell", "x_at", "g_at"}
_PARAMETERS = ("x", "w", "bias", "y", "groups", "x_g", "blocks", "tiles", "taps", "last", "of_group", "y_c", "cell", "x_at", "y_at")
_WEIGHT_PARAMETERS = (
    "x", "g", "dw", "groups", "x_g", "g_g", "dw_g", "blocks", "cells", "vectors", "last", "g_c", "dw_o", "cell", "x_at", "g_at", "runs", "length",
)  # fmt: skip


@functools.cache
def kind_of(dtype: np.dtype) -> Kind:
    return kind_in(dtype, 64 if compiler.processor() == "x86-64-v4" else 32)


# (channels, vectors) of a tile, the best where they fit first: sums in all registers but one for weights and, of several channels, one for each vector.
_TILES = {"x86-64-v4": ((8, 3), (6, 4), (4, 5), (3, 7), (2, 8), (1, 8)), "x86-64-v3": ((4, 3), (6, 2), (3, 3), (2, 5), (1, 6))}


@functools.cache
def tile(out: int) -> tuple[int, int]:
    """(channels, vectors) for so many output channels of a group: few rows of the last tile are of no channel."""
    return best_tile(_TILES, lambda rows, _: -(-out // rows) * rows)


def best_tile(tiles_: dict[str, tuple[tuple[int, int], ...]], sums: Callable[[int, int], int]) -> tuple[int, int]:
    """The tile of this processor's with the fewest sums, those of no use among them; one that stands behind others has to save more."""
    # an aarch64 has as many registers as AVX-512, of half the bytes of those of AVX2: two of them stand for one
    return min(enumerate(tiles_.get(compiler.processor() or "", tiles_["x86-64-v3"])), key=lambda t: sums(*t[1]) * (1 + 0.05 * t[0]))[1]


@functools.cache
def _function(k: Kind, rows: int, vectors: int) -> Any:
    """y[o, v] = bias[o] + sum over k of w[o, k] x[cell[k] + v], group by group; output channels behind the last are the last again."""
    nest = LoopNest()
    sums = [(r, v) for r in range(rows) for v in range(vectors)]
    with nest.loop("g", "%groups"), nest.loop("b", "%blocks"):
        nest.lines += [
            "  %rows = add i64 %last, 1",
            "  %g.w0 = mul i64 %g, %rows",
            "  %g.b0 = mul i64 %g, %of_group",
            "  %g.b1 = add i64 %g.b0, %b",
        ]
        nest.lines += [f"  %y.row = mul i64 %g.b1, {rows}", f"  %b.row = mul i64 %b, {rows}"]
        nest.offset_pointer("image", "%x", ("%g", "%x_g"))
        for r in range(rows):
            nest.lines += [
                f"  %row{r} = add i64 %b.row, {r}",
                f"  %over{r} = icmp ugt i64 %row{r}, %last",
                f"  %own{r} = select i1 %over{r}, i64 %last, i64 %row{r}",
                f"  %out{r} = add i64 %g.w0, %own{r}",
                f"  %part{r} = mul i64 %out{r}, %taps",
                f"  %weights{r} = getelementptr {k.number}, ptr %w, i64 %part{r}",
                f"  %to{r} = add i64 %y.row, {r}",
            ]
            nest.offset_pointer(f"onto{r}", "%y", (f"%to{r}", "%y_c"))
            nest.load_element(f"bias{r}", k.number, "%bias", f"%out{r}", k.item)
            nest.lines += k.spread(f"bias{r}", f"start{r}")
        with nest.loop("q", "%tiles"):
            nest.lines.append(f"  %v0 = mul i64 %q, {vectors}")
            for v in range(vectors):
                if v:
                    nest.lines.append(f"  %v{v} = add i64 %v0, {v}")
                nest.load_element(f"from{v}", "i64", "%x_at", f"%v{v}", 8)
                nest.lines.append(f"  %image{v} = getelementptr i8, ptr %image, i64 %from{v}")
            with nest.loop("k", "%taps", **{f"s{r}_{v}": (k.vector, f"%start{r}") for r, v in sums}):
                nest.load_element("step", "i64", "%cell", "%k", 8)
                for v in range(vectors):
                    nest.lines.append(f"  %at{v} = getelementptr i8, ptr %image{v}, i64 %step")
                    nest.lines.append(f"  %x{v} = load {k.vector}, ptr %at{v}, align {k.item}")
                for r in range(rows):
                    nest.load_element(f"w{r}", k.number, f"%weights{r}", "%k", k.item)
                    nest.lines += k.spread(f"w{r}", f"a{r}")
                    for v in range(vectors):
                        nest.lines.append(
                            f"  %s{r}_{v}.new = call {k.vector} @llvm.fma.{k.name}({k.vector} %a{r}, {k.vector} %x{v}, {k.vector} %s{r}_{v})"
                        )
            for v in range(vectors):
                nest.load_element(f"end{v}", "i64", "%y_at", f"%v{v}", 8)
            for r, v in sums:
                nest.offset_pointer(f"onto{r}_{v}", f"%onto{r}", (f"%end{v}", "1"))
                nest.lines.append(f"  store {k.vector} %s{r}_{v}.new, ptr %onto{r}_{v}, align {k.item}")
    return nest.compile(_PARAMETERS, _POINTERS, [k.fma])


class Vectors(NamedTuple):
    """The vectors of some images, as many as tiles have: where they lie in copies and results; then the cells of taps. All in bytes."""

    x_at: np.ndarray
    y_at: np.ndarray
    cell: np.ndarray
    at_x: int  # the addresses of the three
    at_y: int
    at_cell: int


@functools.lru_cache(maxsize=256)
def vectors_of(
    plan: Plan, width: int, item: int, images: int, channels: int, x_n: int, y_n: int, several: int, more_cells: int = 0
) -> Vectors:
    """Of `images` images and `channels` of a group's channels; `more_cells` times the last cell again."""
    layout = layout_of(plan, width, item)
    number = np.arange(images)[:, None]
    x_at, y_at = (number * x_n + layout.reads).reshape(-1), (number * y_n + layout.writes).reshape(-1)
    more = -len(x_at) % several  # the last vector again: it is written twice, and alike
    x_at, y_at = (np.concatenate([v, np.repeat(v[-1:], more)]).astype(np.int64) for v in (x_at, y_at))
    cell = (np.arange(channels)[:, None] * (layout.plane * item) + layout.shift).reshape(-1)
    cell = np.concatenate([cell, np.repeat(cell[-1:], more_cells)])
    return Vectors(x_at, y_at, cell, pointer(x_at), pointer(y_at), pointer(cell))


class Results(NamedTuple):
    """Where some of the rows of a product go: the first and how many, pieces of each, bytes from the first image's first one."""

    first: int
    rows: int
    pieces: Pieces


def fits(dtype: np.dtype, plan: Plan, weight: int) -> bool:
    """Whether there is machine code, and few results are computed that nobody asks for: less than half with few elements of a group's weight, a third
    with so many that BLAS is at its best."""
    if dtype not in WIDTH or compiler.refusal() or not plan.shifts:
        return False
    k = kind_of(dtype)
    results = layout_of(plan, k.width, k.item).results
    return 2 * plan.places >= results if weight < _HEAVY else 3 * plan.places >= 2 * results


def back(dtype: np.dtype, plan: Plan) -> Pieces:
    """Where the results of a plan belong in images of the size that it gives."""
    k = kind_of(dtype)
    return layout_of(plan, k.width, k.item).back


def spread_over(dtype: np.dtype, plan: Plan, size: Sizes, start: Sizes, stride: Sizes) -> Pieces:
    """The same in every stride-th cell of an image `size` from `start` on."""
    k = kind_of(dtype)
    return spread_pieces(plan, k.width, k.item, size, start, stride)


def products(x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray, results: Sequence[Results]) -> None:
    """Write to y, images of G groups of planes, what the cells of x (N, C, *size) that a plan reads give with weights (G, M, C / G * taps) and bias
    (G, M); all in C order. `results` say which of the M go where in a group's planes."""
    groups, out, taps = weights.shape
    n, channels = x.shape[:2]
    rows, several = tile(out)
    k = kind_of(x.dtype)
    function, layout, blocks = _function(k, rows, several), layout_of(plan, k.width, k.item), -(-out // rows)
    bias = np.zeros((groups, out), x.dtype) if bias is None else np.ascontiguousarray(bias)
    x_n, planes = channels * layout.plane * k.item, groups * blocks * rows
    y_c, cells = layout.results * k.item, math.prod(plan.size) * k.item
    y_group = y.strides[0] // groups
    at_x, at_y, at_w, at_bias = map(pointer, (x, y, weights, bias))

    alone = n * planes * layout.results * taps < _ALONE
    some = max(1, min(n, (_CHUNK if alone else _CHUNK * threads.count()) // (x_n + planes * y_c)))
    copies, sums = scratch("copies", (some, channels, layout.plane), x.dtype), scratch("sums", (some, planes, layout.results), x.dtype)
    (copies if layout.gaps else copies[..., -k.width :]).fill(0)  # without gaps but where an image's last vector ends
    at_copies, at_sums = pointer(copies), pointer(sums)
    x_c = layout.plane * k.item
    for first in range(0, n, some):
        count = min(some, n - first)
        copy_pieces(at_x + first * channels * cells, at_copies, k.item, (1, count * channels), (0, cells), (0, x_c), layout.into, alone)
        v = vectors_of(plan, k.width, k.item, count, channels // groups, x_n, planes * y_c, several)

        def part(low: int, high: int, v: Vectors = v) -> tuple[int, ...]:
            """Some tiles of vectors."""
            return (
                at_copies, at_w, at_bias, at_sums, groups, x_n // groups, blocks, high - low, taps, out - 1, blocks, y_c, v.at_cell,
                v.at_x + 8 * several * low, v.at_y + 8 * several * low,
            )  # fmt: skip

        threads.run_shared(function, len(v.x_at) // several, part, alone)
        for r in results:
            copy_pieces(
                at_sums + r.first * y_c, at_y + first * y.strides[0], k.item, (count * groups, r.rows), (blocks * rows * y_c, y_c),
                (y_group, y.strides[1]), r.pieces, alone,
            )  # fmt: skip


# ---------------------------------------------------------------- the gradient to the weight


# (output channels, cells of the kernel) of a tile, as above: sums and all that a turn multiplies, which LLVM loads first, have registers;
# with AVX2, which has half as many, it reads one of the two from memory.
_WEIGHT_TILES = {"x86-64-v4": ((4, 5), (5, 4), (6, 3), (3, 7), (2, 9), (1, 9)), "x86-64-v3": ((4, 3), (6, 2), (3, 3), (2, 5), (1, 9))}


@functools.cache
def weight_tile(out: int, taps: int) -> tuple[int, int]:
    """(output channels, cells of the kernel) for so many of a group."""
    return best_tile(_WEIGHT_TILES, lambda rows, cells: -(-out // rows) * rows * -(-taps // cells) * cells)


@functools.cache
def _weight_function(k: Kind, rows: int, cells: int) -> Any:
    """dw[o, k] += the sum over v of g[o, v] x[cell[k] + v], run by run of vectors and group by group; output channels behind the last are the last
    again."""
    nest = LoopNest()
    sums = [(r, c) for r in range(rows) for c in range(cells)]
    with nest.loop("u", "%runs"), nest.loop("j", "%groups"):
        nest.lines += [
            "  %v.start = mul i64 %u, %length",
            "  %v.left = sub i64 %vectors, %v.start",
            "  %v.many = icmp ugt i64 %v.left, %length",
            "  %run = select i1 %v.many, i64 %length, i64 %v.left",
            "  %x_from = getelementptr i64, ptr %x_at, i64 %v.start",
            "  %g_from = getelementptr i64, ptr %g_at, i64 %v.start",
        ]
        nest.offset_pointer("xs", "%x", ("%j", "%x_g"))
        nest.offset_pointer("gs", "%g", ("%j", "%g_g"))
        nest.offset_pointer("into", "%dw", ("%j", "%dw_g"))
        with nest.loop("b", "%blocks"):
            nest.lines.append(f"  %row = mul i64 %b, {rows}")
            for r in range(rows):
                nest.lines += [f"  %row{r} = add i64 %row, {r}", f"  %over{r} = icmp ugt i64 %row{r}, %last"]
                nest.lines.append(f"  %given{r} = select i1 %over{r}, i64 %last, i64 %row{r}")
                nest.offset_pointer(f"plane{r}", "%gs", (f"%given{r}", "%g_c"))
                nest.offset_pointer(f"onto{r}", "%into", (f"%row{r}", "%dw_o"))
            with nest.loop("q", "%cells"):
                nest.lines.append(f"  %k = mul i64 %q, {cells}")
                for c in range(cells):
                    nest.lines.append(f"  %k{c} = add i64 %k, {c}")
                    nest.load_element(f"step{c}", "i64", "%cell", f"%k{c}", 8)
                    nest.lines.append(f"  %image{c} = getelementptr i8, ptr %xs, i64 %step{c}")
                with nest.loop("v", "%run", **{f"s{r}_{c}": (k.vector, "zeroinitializer") for r, c in sums}):
                    nest.load_element("from", "i64", "%x_from", "%v", 8)
                    nest.load_element("given", "i64", "%g_from", "%v", 8)
                    for c in range(cells):
                        nest.lines.append(f"  %at{c} = getelementptr i8, ptr %image{c}, i64 %from")
                        nest.lines.append(f"  %x{c} = load {k.vector}, ptr %at{c}, align {k.item}")
                    for r in range(rows):
                        nest.lines.append(f"  %g{r}.at = getelementptr i8, ptr %plane{r}, i64 %given")
                        nest.lines.append(f"  %g{r} = load {k.vector}, ptr %g{r}.at, align {k.item}")
                        for c in range(cells):
                            nest.lines.append(
                                f"  %s{r}_{c}.new = call {k.vector} @llvm.fma.{k.name}({k.vector} %g{r}, {k.vector} %x{c}, {k.vector} %s{r}_{c})"
                            )
                for r, c in sums:
                    nest.lines.append(
                        f"  %t{r}_{c} = call reassoc {k.number} @llvm.vector.reduce.fadd.{k.name}({k.number} 0.0, {k.vector} %s{r}_{c}.new)"
                    )
                    nest.load_element(f"o{r}_{c}", k.number, f"%onto{r}", f"%k{c}", k.item)
                    nest.lines += [
                        f"  %n{r}_{c} = fadd {k.number} %o{r}_{c}, %t{r}_{c}",
                        f"  store {k.number} %n{r}_{c}, ptr %o{r}_{c}.at, align {k.item}",
                    ]
    declared = [k.fma, f"declare {k.number} @llvm.vector.reduce.fadd.{k.name}({k.number}, {k.vector})"]
    return nest.compile(_WEIGHT_PARAMETERS, _WEIGHT_POINTERS, declared)


class _Gradient:
    """One gradient under way: how its images and sums are laid out, and the machine functions' arguments for some of them. Each of `slots` has copies
    of images and sums of its own."""

    def __init__(self, x: np.ndarray, g: np.ndarray, groups: int, plan: Plan) -> None:
        self.x, self.g, self.groups, self.plan = x, g, groups, plan
        self.out, self.per_group = g.shape[1] // groups, x.shape[1] // groups
        self.taps = self.per_group * len(plan.shifts)
        self.rows, self.several = weight_tile(self.out, self.taps)
        self.blocks, self.cells = -(-self.out // self.rows), -(-self.taps // self.several)
        self.kind = kind_of(x.dtype)
        self.layout = layout_of(plan, self.kind.width, self.kind.item)
        self.x_c, self.g_c = self.layout.plane * self.kind.item, self.layout.results * self.kind.item
        self.x_n, self.g_n = x.shape[1] * self.x_c, g.shape[1] * self.g_c
        self.function = _weight_function(self.kind, self.rows, self.several)

    def make_room(self, slots: int, images: int) -> None:
        """Room for copies of so many images, and sums, for each slot; `clearing` is what is left to do of it."""
        layout, dtype = self.layout, self.x.dtype
        copies = scratch("copies", (slots, images, self.x.shape[1], layout.plane), dtype)
        given = scratch("sums", (slots, images, self.g.shape[1], layout.results), dtype)
        self.clearing = [[zero_fill(given[slot])] for slot in range(slots)]
        if layout.gaps:
            for slot, calls in enumerate(self.clearing):
                calls.append(zero_fill(copies[slot]))
        else:  # between the last row and the end of its last vector alone
            copies[..., -self.kind.width :].fill(0)
        self.dw = np.zeros((slots, self.groups, self.blocks * self.rows, self.cells * self.several), dtype)
        self.images, self.copies, self.given, self.sums = images, pointer(copies), pointer(given), pointer(self.dw)
        self.held: list[Any] = [copies, given]  # memory that must outlive its addresses

    def copying(self, first: int, count: int, slot: int) -> list[Copying]:
        """What copies x and g of some images."""
        into, (n, channels), out, item = slot * self.images, self.x.shape[:2], self.g.shape[1], self.kind.item
        x_size, g_size = self.x.nbytes // (n * channels), self.g.nbytes // (n * out)
        return [
            Copying(
                pointer(self.x) + first * channels * x_size, self.copies + into * self.x_n, item, count * channels, x_size, self.x_c, self.layout.into
            ),
            Copying(pointer(self.g) + first * out * g_size, self.given + into * self.g_n, item, count * out, g_size, self.g_c, self.layout.forth),
        ]  # fmt: skip

    def adding(self, count: int, slot: int) -> Callable[[int, int], tuple[int, ...]]:
        """The arguments that add up the products of `count` images of a slot for some blocks of output channels, or some cells, whichever are more."""
        v = vectors_of(self.plan, self.kind.width, self.kind.item, count, self.per_group, self.x_n, self.g_n, 1, -self.taps % self.several)
        self.held.append(v)
        _, dw_g, dw_o, _ = self.dw.strides
        into = slot * self.images

        def part(low: int, high: int) -> tuple[int, ...]:
            b, c = (low * self.rows, 0) if self.by_blocks else (0, low * self.several)
            blocks, cells = (high - low, self.cells) if self.by_blocks else (self.blocks, high - low)
            return (
                self.copies + into * self.x_n, self.given + into * self.g_n + b * self.g_c,
                self.sums + slot * self.dw.strides[0] + b * dw_o + c * self.kind.item, self.groups, self.per_group * self.x_c, self.out * self.g_c,
                dw_g, blocks, cells, len(v.x_at), self.out - 1 - b, self.g_c, dw_o, v.at_cell + 8 * c, v.at_x, v.at_y, -(-len(v.x_at) // _RUN), _RUN,
            )  # fmt: skip

        return part

    @property
    def by_blocks(self) -> bool:
        return self.blocks >= self.cells

    @property
    def shares(self) -> int:
        return max(self.blocks, self.cells)


def fits_gradient(s: Geometry, dtype: np.dtype, plan: Plan) -> bool:
    """Whether tiles fit the gradient to the weight, and there are vectors enough that the sums of their lanes, at the end, are not most of the work."""
    if not fits(dtype, plan, s.out * s.channels // s.groups**2 * s.taps):
        return False
    k = kind_of(dtype)
    return s.out == s.groups or s.batch * len(layout_of(plan, k.width, k.item).reads) >= _FEW


def gradient(x: np.ndarray, g: np.ndarray, groups: int, plan: Plan) -> np.ndarray:
    """The gradient (G, O / G, C / G * taps) to a weight that g (N, O, *outs) gives, x (N, C, *size), both in C order. Zeros around images, which nothing
    reads, are multiplied, too: not of numbers that are infinite or NaN."""
    made, n, count = _Gradient(x, g, groups, plan), len(x), threads.count()
    alone = count < 2 or g.size * made.taps < _ALONE
    # sums of each thread's own cost a pass over all of them, sums over images that other threads have copied wait for those
    own = not alone and n >= count and made.out * made.taps * groups * _SMALL <= x.size + g.size
    slots = count if own else 1
    images = min(-(-n // slots), max(1, _CHUNK * (1 if alone or own else count) // (made.x_n + made.g_n)))
    made.make_room(slots, images)
    if alone or own:
        threads.run_programs([_calls(made, n * slot // slots, n * (slot + 1) // slots, slot) for slot in range(slots)])
    else:
        threads.run_programs(made.clearing)
        for first in range(0, n, images):
            some = min(images, n - first)
            for copy in made.copying(first, some, 0):
                copy.shared()
            threads.run_shared(made.function, made.shares, made.adding(some, 0))
    dw = made.dw[0] if slots == 1 else made.dw.sum(0)
    return dw[:, : made.out, : made.taps]


def _calls(made: _Gradient, low: int, high: int, slot: int) -> list[threads.Call]:
    """All that one thread does for some images."""
    calls = list(made.clearing[slot])
    for first in range(low, high, made.images):
        some = min(made.images, high - first)
        calls += [call for copy in made.copying(first, some, slot) for call in copy.call()]
        calls.append((made.function, made.adding(some, slot)(0, made.shares)))
    return calls
