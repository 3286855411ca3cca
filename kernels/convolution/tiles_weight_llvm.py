"""The gradient to a convolution's weight over padded copies: machine code that keeps a tile of it in registers while it goes over the images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.kernels.convolution import padded, tiles_llvm
from tritensor.kernels.convolution.columns import pointer
from tritensor.kernels.convolution.llvm_types import Kind
from tritensor.kernels.convolution.padded import Copying, layout_of
from tritensor.kernels.convolution.plans import Plan
from tritensor.llvm import threads
from tritensor.llvm.loop_nest import Nest

_CHUNK = 1 << 20  # bytes of copies at a time, of each thread
_RUN = 128  # vectors that are added up one after the other
_FEW = 32  # vectors below which the sums of their lanes, at the end, are most of the work
_SMALL = 8  # times the gradient's elements that images and given gradients have where each thread has sums of its own
_ALONE = 1 << 22  # products below which a second thread does not pay
_POINTERS = {"x", "g", "dw", "cell", "x_at", "g_at"}
_PARAMETERS = (
    "x", "g", "dw", "groups", "x_g", "g_g", "dw_g", "blocks", "cells", "vectors", "last", "g_c", "dw_o", "cell", "x_at", "g_at", "runs", "length",
)  # fmt: skip


# (output channels, cells of the kernel) of a tile, as tiles_llvm.py has them: sums and all that a turn multiplies, which LLVM loads first, have registers;
# with AVX2, which has half as many, it reads one of the two from memory.
_TILES = {"x86-64-v4": ((4, 5), (5, 4), (6, 3), (3, 7), (2, 9), (1, 9)), "x86-64-v3": ((4, 3), (6, 2), (3, 3), (2, 5), (1, 9))}


@functools.cache
def tile(out: int, taps: int) -> tuple[int, int]:
    """(output channels, cells of the kernel) for so many of a group."""
    return tiles_llvm.fitting(_TILES, lambda rows, cells: -(-out // rows) * rows * -(-taps // cells) * cells)


@functools.cache
def _function(k: Kind, rows: int, cells: int) -> Any:
    """dw[o, k] += the sum over v of g[o, v] x[cell[k] + v], run by run of vectors and group by group; output channels behind the last are the last
    again."""
    nest = Nest()
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
    return nest.compiled(_PARAMETERS, _POINTERS, declared)


class _Gradient:
    """One gradient under way: how its images and sums are laid out, and the machine functions' arguments for some of them. Each of `slots` has copies
    of images and sums of its own."""

    def __init__(self, x: np.ndarray, g: np.ndarray, groups: int, plan: Plan) -> None:
        self.x, self.g, self.groups, self.plan = x, g, groups, plan
        self.out, self.per_group = g.shape[1] // groups, x.shape[1] // groups
        self.taps = self.per_group * len(plan.shifts)
        self.rows, self.several = tile(self.out, self.taps)
        self.blocks, self.cells = -(-self.out // self.rows), -(-self.taps // self.several)
        self.kind = tiles_llvm.kind_of(x.dtype)
        self.layout = layout_of(plan, self.kind.width, self.kind.item)
        self.x_c, self.g_c = self.layout.plane * self.kind.item, self.layout.results * self.kind.item
        self.x_n, self.g_n = x.shape[1] * self.x_c, g.shape[1] * self.g_c
        self.function = _function(self.kind, self.rows, self.several)

    def make_room(self, slots: int, images: int, scratch: tiles_llvm.Scratch) -> None:
        """Room for copies of so many images, and sums, for each slot; `clearing` is what is left to do of it."""
        layout, dtype = self.layout, self.x.dtype
        copies = scratch("copies", (slots, images, self.x.shape[1], layout.plane), dtype)
        given = scratch("sums", (slots, images, self.g.shape[1], layout.results), dtype)
        self.clearing = [[padded.clearing(given[slot])] for slot in range(slots)]
        if layout.gaps:
            for slot, calls in enumerate(self.clearing):
                calls.append(padded.clearing(copies[slot]))
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
        v = tiles_llvm.vectors_of(
            self.plan, self.kind.width, self.kind.item, count, self.per_group, self.x_n, self.g_n, 1, -self.taps % self.several
        )
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


def gradient(x: np.ndarray, g: np.ndarray, groups: int, plan: Plan, scratch: tiles_llvm.Scratch) -> np.ndarray | None:
    """The gradient (O, C / groups * taps) to a weight that g (N, O, *outs) gives, x (N, C, *size), both in C order; None where other ways have to,
    as where numbers are not finite: zeros around images, which nothing reads, would meet them."""
    if not tiles_llvm.fits(x.dtype, plan, g.shape[1] * x.shape[1] // groups**2 * len(plan.shifts)):
        return None
    made, n, count = _Gradient(x, g, groups, plan), len(x), threads.count()
    if n * len(made.layout.reads) < _FEW and made.out > 1:
        return None
    alone = count < 2 or g.size * made.taps < _ALONE
    # sums of each thread's own cost a pass over all of them, sums over images that other threads have copied wait for those
    own = not alone and n >= count and made.out * made.taps * groups * _SMALL <= x.size + g.size
    slots = count if own else 1
    images = min(-(-n // slots), max(1, _CHUNK * (1 if alone or own else count) // (made.x_n + made.g_n)))
    made.make_room(slots, images, scratch)
    if alone or own:
        threads.each([_calls(made, n * slot // slots, n * (slot + 1) // slots, slot) for slot in range(slots)])
    else:
        threads.each(made.clearing)
        for first in range(0, n, images):
            some = min(images, n - first)
            for copy in made.copying(first, some, 0):
                copy.shared()
            threads.over(made.function, made.shares, made.adding(some, 0))
    dw = made.dw[0] if slots == 1 else made.dw.sum(0)
    found = np.ascontiguousarray(dw[:, : made.out, : made.taps]).reshape(groups * made.out, made.taps)
    return found if np.isfinite(found).all() else None


def _calls(made: _Gradient, low: int, high: int, slot: int) -> list[threads.Call]:
    """All that one thread does for some images."""
    calls = list(made.clearing[slot])
    for first in range(low, high, made.images):
        some = min(made.images, high - first)
        calls += [call for copy in made.copying(first, some, slot) for call in copy.call()]
        calls.append((made.function, made.adding(some, slot)(0, made.shares)))
    return calls
