"""The gradient to a convolution's weight without columns: machine code that keeps a tile of it in registers while it goes over the images."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.kernels.convolution import direct
from tritensor.kernels.convolution.columns import WIDTH, compiled, pointer
from tritensor.kernels.convolution.plans import Plan, table_of
from tritensor.native import threads
from tritensor.native.nests import Nest

ROWS, CELLS = 4, 6  # of a tile: 24 registers of sums
_MOST = 1 << 14  # numbers of a gradient above which columns and BLAS, which go over them in blocks, are faster
_SHARED = 1 << 20  # the same where threads share it: those of BLAS wait for each other in every product
_ALONE = 1 << 22  # products below which a second thread does not pay
_RUN = 256  # vectors that are added up one after the other
_POINTERS = {"x", "g", "dw", "cell", "mask_row", "x_at", "g_at", "column", "valid", "stored"}
_PARAMETERS = (
    "x",
    "g",
    "dw",
    "blocks",
    "cells",
    "vectors",
    "last",
    "g_c",
    "dw_o",
    "cell",
    "mask_row",
    "x_at",
    "g_at",
    "column",
    "valid",
    "stored",
)


@functools.cache
def _function(dtype: np.dtype) -> Any:
    """dw[o, k] += the sum over v of g[o, v] x[cell[k] + v] for tiles of ROWS output channels o, at most `last`, and CELLS cells k."""
    kind, width, item = ("float", 16, 4) if dtype == np.float32 else ("double", 8, 8)
    name, vector, lanes = f"v{width}f{item * 8}", f"<{width} x {kind}>", f"<{width} x i1>"
    nest = Nest()
    sums = [(r, c) for r in range(ROWS) for c in range(CELLS)]
    with nest.loop("b", "%blocks"):
        nest.lines.append(f"  %row = mul i64 %b, {ROWS}")
        for r in range(ROWS):
            nest.lines += [f"  %row{r} = add i64 %row, {r}", f"  %over{r} = icmp ugt i64 %row{r}, %last"]
            nest.lines += [f"  %given{r} = select i1 %over{r}, i64 %last, i64 %row{r}"]
            nest.moved(f"plane{r}", "%g", (f"%given{r}", "%g_c"))
        with nest.loop("q", "%cells"):
            nest.lines.append(f"  %k = mul i64 %q, {CELLS}")
            for c in range(CELLS):
                nest.lines.append(f"  %k{c} = add i64 %k, {c}")
                nest.item(f"step{c}", "i64", "%cell", f"%k{c}", 8)
                nest.item(f"which{c}", "i64", "%mask_row", f"%k{c}", 8)
                nest.lines += [
                    f"  %image{c} = getelementptr i8, ptr %x, i64 %step{c}",
                    f"  %masks{c} = getelementptr i{width}, ptr %valid, i64 %which{c}",
                ]
            with nest.loop("v", "%vectors", **{f"s{r}_{c}": (vector, "zeroinitializer") for r, c in sums}):
                for what in ("x_at", "g_at", "column"):
                    nest.item(f"the_{what}", "i64", f"%{what}", "%v", 8)
                nest.item("held", f"i{width}", "%stored", "%the_column", width // 8)
                nest.lines.append(f"  %lanes = bitcast i{width} %held to {lanes}")
                for r in range(ROWS):
                    nest.lines.append(f"  %g{r}.at = getelementptr i8, ptr %plane{r}, i64 %the_g_at")
                    nest.lines.append(
                        f"  %g{r} = call {vector} @llvm.masked.load.{name}.p0(ptr %g{r}.at, i32 {item}, {lanes} %lanes, {vector} zeroinitializer)"
                    )
                for c in range(CELLS):
                    nest.item(f"bits{c}", f"i{width}", f"%masks{c}", "%the_column", width // 8)
                    nest.lines += [
                        f"  %mask{c} = bitcast i{width} %bits{c} to {lanes}",
                        f"  %at{c} = getelementptr i8, ptr %image{c}, i64 %the_x_at",
                        f"  %x{c} = call {vector} @llvm.masked.load.{name}.p0(ptr %at{c}, i32 {item}, {lanes} %mask{c}, {vector} zeroinitializer)",
                    ]
                    for r in range(ROWS):
                        nest.lines.append(
                            f"  %s{r}_{c}.new = call {vector} @llvm.fma.{name}({vector} %g{r}, {vector} %x{c}, {vector} %s{r}_{c})"
                        )
            for r, c in sums:
                if c == 0:
                    nest.moved(f"onto{r}", "%dw", (f"%row{r}", "%dw_o"))
                nest.lines.append(f"  %t{r}_{c} = call reassoc {kind} @llvm.vector.reduce.fadd.{name}({kind} 0.0, {vector} %s{r}_{c}.new)")
                nest.item(f"o{r}_{c}", kind, f"%onto{r}", f"%k{c}", item)
                nest.lines += [
                    f"  %n{r}_{c} = fadd {kind} %o{r}_{c}, %t{r}_{c}",
                    f"  store {kind} %n{r}_{c}, ptr %o{r}_{c}.at, align {item}",
                ]
    declared = [
        f"declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, {lanes}, {vector})", f"declare {vector} @llvm.fma.{name}({vector}, {vector}, {vector})",
        f"declare {kind} @llvm.vector.reduce.fadd.{name}({kind}, {vector})",
    ]  # fmt: skip
    return compiled(nest, _PARAMETERS, _POINTERS, declared)


def gradient(x: np.ndarray, g: np.ndarray, groups: int, plan: Plan) -> np.ndarray | None:
    """The gradient (O, C / groups * taps) to a weight that g (N, O, *outs) gives, x (N, C, *size), both in C order; None where BLAS has to."""
    per_group, out = x.shape[1] // groups, g.shape[1] // groups
    taps = per_group * len(plan.shifts)
    if out * taps > (_MOST if threads.count() < 2 else _SHARED) or not direct.fits(x, taps, plan):
        return None
    function, t = _function(x.dtype), table_of(plan, WIDTH[x.dtype], x.itemsize)
    blocks, cells = -(-out // ROWS), -(-taps // CELLS)
    v = direct.vectors(plan, x.dtype, x.shape[0], per_group, x.strides[0], x.strides[1], g.strides[0])
    more = cells * CELLS - taps  # the last cell again, into columns that are left out
    cell, mask_row = (np.concatenate([a, np.repeat(a[-1:], more)]) for a in (v.cell, v.mask_row))
    dw = np.zeros((groups, blocks * ROWS, cells * CELLS), x.dtype)
    count = x.shape[0] * len(t.start)

    def channels(low: int, high: int) -> None:
        """Blocks [low, high) of output channels, which go over the same vectors in the same order whoever takes them."""
        top = low * ROWS
        for group in range(groups):
            for first in range(0, count, _RUN):
                function(
                    pointer(x) + group * per_group * x.strides[1], pointer(g) + (group * out + top) * g.strides[1], pointer(dw[group, top:]),
                    high - low, cells, min(_RUN, count - first), out - 1 - top, g.strides[1], dw.strides[1], pointer(cell), pointer(mask_row),
                    pointer(v.x_at) + 8 * first, pointer(v.y_at) + 8 * first, pointer(v.column) + 8 * first, pointer(t.valid), pointer(t.stored),
                )  # fmt: skip

    if g.size * taps < _ALONE:
        channels(0, blocks)
    else:
        threads.share(channels, blocks)
    return np.ascontiguousarray(dw[:, :out, :taps]).reshape(groups * out, taps)
