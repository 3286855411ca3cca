"""Convolution on the CPU over padded copies: machine code that keeps a tile of results in registers, channels times vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.convolution.columns import WIDTH, pointer
from tritensor.kernels.convolution.geometry import Sizes
from tritensor.kernels.convolution.llvm_types import Kind, kind_in
from tritensor.kernels.convolution.padded import Pieces, copied, layout_of, spread
from tritensor.kernels.convolution.plans import Plan
from tritensor.llvm import compiler, threads
from tritensor.llvm.loop_nest import Nest

Scratch = Callable[[str, tuple[int, ...], np.dtype], np.ndarray]

_CHUNK = 1 << 20  # bytes of copies and results at a time, of each thread: they stay in its cache
_ALONE = 1 << 22  # products below which a second thread does not pay
_HEAVY = 1 << 16  # elements of a weight
_POINTERS = {"x", "w", "bias", "y", "cell", "x_at", "y_at"}
_PARAMETERS = ("x", "w", "bias", "y", "groups", "x_g", "blocks", "tiles", "taps", "last", "of_group", "y_c", "cell", "x_at", "y_at")


@functools.cache
def kind_of(dtype: np.dtype) -> Kind:
    return kind_in(dtype, 64 if compiler.processor() == "x86-64-v4" else 32)


# (channels, vectors) of a tile, the best where they fit first: sums in all registers but one for weights and, of several channels, one for each vector.
_TILES = {"x86-64-v4": ((8, 3), (6, 4), (4, 5), (3, 7), (2, 8), (1, 8)), "x86-64-v3": ((4, 3), (6, 2), (3, 3), (2, 5), (1, 6))}


@functools.cache
def tile(out: int) -> tuple[int, int]:
    """(channels, vectors) for so many output channels of a group: few rows of the last tile are of no channel."""
    return fitting(_TILES, lambda rows, _: -(-out // rows) * rows)


def fitting(tiles_: dict[str, tuple[tuple[int, int], ...]], sums: Callable[[int, int], int]) -> tuple[int, int]:
    """The tile of this processor's with the fewest sums, those of no use among them; one that stands behind others has to save more."""
    return min(enumerate(tiles_[compiler.processor() or "x86-64-v3"]), key=lambda t: sums(*t[1]) * (1 + 0.05 * t[0]))[1]


@functools.cache
def _function(k: Kind, rows: int, vectors: int) -> Any:
    """y[o, v] = bias[o] + sum over k of w[o, k] x[cell[k] + v], group by group; output channels behind the last are the last again."""
    nest = Nest()
    sums = [(r, v) for r in range(rows) for v in range(vectors)]
    with nest.loop("g", "%groups"), nest.loop("b", "%blocks"):
        nest.lines += [
            "  %rows = add i64 %last, 1",
            "  %g.w0 = mul i64 %g, %rows",
            "  %g.b0 = mul i64 %g, %of_group",
            "  %g.b1 = add i64 %g.b0, %b",
        ]
        nest.lines += [f"  %y.row = mul i64 %g.b1, {rows}", f"  %b.row = mul i64 %b, {rows}"]
        nest.moved("image", "%x", ("%g", "%x_g"))
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
            nest.moved(f"onto{r}", "%y", (f"%to{r}", "%y_c"))
            nest.item(f"bias{r}", k.number, "%bias", f"%out{r}", k.item)
            nest.lines += k.spread(f"bias{r}", f"start{r}")
        with nest.loop("q", "%tiles"):
            nest.lines.append(f"  %v0 = mul i64 %q, {vectors}")
            for v in range(vectors):
                if v:
                    nest.lines.append(f"  %v{v} = add i64 %v0, {v}")
                nest.item(f"from{v}", "i64", "%x_at", f"%v{v}", 8)
                nest.lines.append(f"  %image{v} = getelementptr i8, ptr %image, i64 %from{v}")
            with nest.loop("k", "%taps", **{f"s{r}_{v}": (k.vector, f"%start{r}") for r, v in sums}):
                nest.item("step", "i64", "%cell", "%k", 8)
                for v in range(vectors):
                    nest.lines.append(f"  %at{v} = getelementptr i8, ptr %image{v}, i64 %step")
                    nest.lines.append(f"  %x{v} = load {k.vector}, ptr %at{v}, align {k.item}")
                for r in range(rows):
                    nest.item(f"w{r}", k.number, f"%weights{r}", "%k", k.item)
                    nest.lines += k.spread(f"w{r}", f"a{r}")
                    for v in range(vectors):
                        nest.lines.append(
                            f"  %s{r}_{v}.new = call {k.vector} @llvm.fma.{k.name}({k.vector} %a{r}, {k.vector} %x{v}, {k.vector} %s{r}_{v})"
                        )
            for v in range(vectors):
                nest.item(f"end{v}", "i64", "%y_at", f"%v{v}", 8)
            for r, v in sums:
                nest.moved(f"onto{r}_{v}", f"%onto{r}", (f"%end{v}", "1"))
                nest.lines.append(f"  store {k.vector} %s{r}_{v}.new, ptr %onto{r}_{v}, align {k.item}")
    return nest.compiled(_PARAMETERS, _POINTERS, [f"declare {k.vector} @llvm.fma.{k.name}({k.vector}, {k.vector}, {k.vector})"])


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
    return spread(plan, k.width, k.item, size, start, stride)


def clear(copies: np.ndarray, gaps: bool, width: int) -> None:
    """Zeros wherever no image will lie in its copy: between its rows, or but behind it, where its last vector ends."""
    (copies if gaps else copies[..., -width:]).fill(0)


def products(
    x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray, results: Sequence[Results], scratch: Scratch
) -> None:
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
    clear(copies, layout.gaps, k.width)
    at_copies, at_sums = pointer(copies), pointer(sums)
    x_c = layout.plane * k.item
    for first in range(0, n, some):
        count = min(some, n - first)
        copied(at_x + first * channels * cells, at_copies, k.item, (1, count * channels), (0, cells), (0, x_c), layout.into, alone)
        v = vectors_of(plan, k.width, k.item, count, channels // groups, x_n, planes * y_c, several)

        def part(low: int, high: int, v: Vectors = v) -> tuple[int, ...]:
            """Some tiles of vectors."""
            return (
                at_copies, at_w, at_bias, at_sums, groups, x_n // groups, blocks, high - low, taps, out - 1, blocks, y_c, v.at_cell,
                v.at_x + 8 * several * low, v.at_y + 8 * several * low,
            )  # fmt: skip

        threads.over(function, len(v.x_at) // several, part, alone)
        for r in results:
            copied(
                at_sums + r.first * y_c, at_y + first * y.strides[0], k.item, (count * groups, r.rows), (blocks * rows * y_c, y_c),
                (y_group, y.strides[1]), r.pieces, alone,
            )  # fmt: skip
