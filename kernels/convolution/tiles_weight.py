"""The gradient to a convolution's weight over padded copies: machine code that keeps a tile of it in registers while it goes over the images."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tritensor.kernels.convolution import tiles
from tritensor.kernels.convolution.columns import compiled, pointer
from tritensor.kernels.convolution.padded import copied, layout_of
from tritensor.kernels.convolution.plans import Plan
from tritensor.native import compiler, threads
from tritensor.native.nests import Nest

_CHUNK = 1 << 20  # bytes of copies at a time, of each thread
_RUN = 128  # vectors that are added up one after the other
_FEW = 32  # vectors below which the sums of their lanes, at the end, are most of the work
_ALONE = 1 << 22  # products below which a second thread does not pay
_POINTERS = {"x", "g", "dw", "cell", "x_at", "g_at"}
_PARAMETERS = (
    "x", "g", "dw", "groups", "x_g", "g_g", "dw_g", "blocks", "cells", "vectors", "last", "g_c", "dw_o", "cell", "x_at", "g_at", "runs",
)  # fmt: skip


# (output channels, cells of the kernel) of a tile, as tiles.py has them: sums and all that a turn multiplies, which LLVM loads first, have registers;
# with AVX2, which has half as many, it reads one of the two from memory.
_TILES = {"x86-64-v4": ((4, 5), (5, 4), (6, 3), (3, 7), (2, 9), (1, 9)), "x86-64-v3": ((4, 3), (6, 2), (3, 3), (2, 5), (1, 9))}


@functools.cache
def tile(out: int, taps: int) -> tuple[int, int]:
    """(output channels, cells of the kernel) for so many of a group."""
    return tiles.fitting(_TILES, lambda rows, cells: -(-out // rows) * rows * -(-taps // cells) * cells)


@functools.cache
def _function(dtype: np.dtype, rows: int, cells: int) -> Any:
    """dw[o, k] += the sum over v of g[o, v] x[cell[k] + v], run by run of vectors and group by group; output channels behind the last are the last
    again."""
    k, nest = tiles.kind_of(dtype), Nest()
    sums = [(r, c) for r in range(rows) for c in range(cells)]
    with nest.loop("u", "%runs"), nest.loop("j", "%groups"):
        nest.lines += [
            f"  %v.start = mul i64 %u, {_RUN}",
            "  %v.left = sub i64 %vectors, %v.start",
            f"  %v.many = icmp ugt i64 %v.left, {_RUN}",
            f"  %run = select i1 %v.many, i64 {_RUN}, i64 %v.left",
            "  %x_from = getelementptr i64, ptr %x_at, i64 %v.start",
            "  %g_from = getelementptr i64, ptr %g_at, i64 %v.start",
        ]
        nest.moved("xs", "%x", ("%j", "%x_g"))
        nest.moved("gs", "%g", ("%j", "%g_g"))
        nest.moved("into", "%dw", ("%j", "%dw_g"))
        with nest.loop("b", "%blocks"):
            nest.lines.append(f"  %row = mul i64 %b, {rows}")
            for r in range(rows):
                nest.lines += [f"  %row{r} = add i64 %row, {r}", f"  %over{r} = icmp ugt i64 %row{r}, %last"]
                nest.lines.append(f"  %given{r} = select i1 %over{r}, i64 %last, i64 %row{r}")
                nest.moved(f"plane{r}", "%gs", (f"%given{r}", "%g_c"))
                nest.moved(f"onto{r}", "%into", (f"%row{r}", "%dw_o"))
            with nest.loop("q", "%cells"):
                nest.lines.append(f"  %k = mul i64 %q, {cells}")
                for c in range(cells):
                    nest.lines.append(f"  %k{c} = add i64 %k, {c}")
                    nest.item(f"step{c}", "i64", "%cell", f"%k{c}", 8)
                    nest.lines.append(f"  %image{c} = getelementptr i8, ptr %xs, i64 %step{c}")
                with nest.loop("v", "%run", **{f"s{r}_{c}": (k.vector, "zeroinitializer") for r, c in sums}):
                    nest.item("from", "i64", "%x_from", "%v", 8)
                    nest.item("given", "i64", "%g_from", "%v", 8)
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
                    nest.item(f"o{r}_{c}", k.number, f"%onto{r}", f"%k{c}", k.item)
                    nest.lines += [
                        f"  %n{r}_{c} = fadd {k.number} %o{r}_{c}, %t{r}_{c}",
                        f"  store {k.number} %n{r}_{c}, ptr %o{r}_{c}.at, align {k.item}",
                    ]
    declared = [
        f"declare {k.vector} @llvm.fma.{k.name}({k.vector}, {k.vector}, {k.vector})",
        f"declare {k.number} @llvm.vector.reduce.fadd.{k.name}({k.number}, {k.vector})",
    ]
    return compiled(nest, _PARAMETERS, _POINTERS, declared)


def gradient(x: np.ndarray, g: np.ndarray, groups: int, plan: Plan, scratch: tiles.Scratch) -> np.ndarray | None:
    """The gradient (O, C / groups * taps) to a weight that g (N, O, *outs) gives, x (N, C, *size), both in C order; None where other ways have to,
    as where numbers are not finite: zeros around images, which nothing reads, would meet them."""
    if not tiles.fits(x.dtype, plan):
        return None
    n, channels = x.shape[:2]
    out, per_group = g.shape[1] // groups, channels // groups
    taps = per_group * len(plan.shifts)
    rows, several = tile(out, taps)
    k = tiles.kind_of(x.dtype)
    layout = layout_of(plan, k.width, k.item)
    if n * len(layout.reads) < _FEW and out > 1:
        return None
    function = _function(x.dtype, rows, several)
    blocks, cells = -(-out // rows), -(-taps // several)
    x_c, g_c = layout.plane * k.item, layout.results * k.item
    image, result = math.prod(plan.size) * k.item, math.prod(plan.outs) * k.item
    alone, by_blocks = g.size * taps < _ALONE, blocks >= cells
    some = max(1, min(n, (_CHUNK if alone else _CHUNK * threads.count()) // (channels * x_c + g.shape[1] * g_c)))
    copies, given = scratch("copies", (some, channels, layout.plane), x.dtype), scratch("sums", (some, g.shape[1], layout.results), x.dtype)
    tiles.clear(copies, layout.gaps, k.width)
    given.fill(0)
    dw = np.zeros((groups, blocks * rows, cells * several), x.dtype)
    at_x, at_g, at_copies, at_given, at_dw = map(pointer, (x, g, copies, given, dw))
    for first in range(0, n, some):
        count = min(some, n - first)
        copied(at_x + first * channels * image, at_copies, k.item, (1, count * channels), (0, image), (0, x_c), layout.into, alone)
        copied(at_g + first * g.shape[1] * result, at_given, k.item, (1, count * g.shape[1]), (0, result), (0, g_c), layout.forth, alone)
        v = tiles.vectors_of(plan, k.width, k.item, count, per_group, channels * x_c, g.shape[1] * g_c, 1, -taps % several)

        def part(low: int, high: int, v: tiles.Vectors = v) -> tuple[int, ...]:
            """Some blocks of output channels, or some cells of all; each of their sums goes over the same vectors in the same order."""
            b, c = (low * rows, 0) if by_blocks else (0, low * several)
            return (
                at_copies, at_given + b * g_c, at_dw + b * dw.strides[1] + c * k.item, groups, per_group * x_c, out * g_c, dw.strides[0],
                high - low if by_blocks else blocks, cells if by_blocks else high - low, len(v.x_at), out - 1 - b, g_c, dw.strides[1],
                v.at_cell + 8 * c, v.at_x, v.at_y, -(-len(v.x_at) // _RUN),
            )  # fmt: skip

        threads.over(function, blocks if by_blocks else cells, part, alone)
    found = np.ascontiguousarray(dw[:, :out, :taps]).reshape(groups * out, taps)
    return found if np.isfinite(found).all() else None
