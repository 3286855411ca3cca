"""Convolution by columns and BLAS: the cells that results sum over as columns of a matrix, gathered for some images or rows at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tritensor.kernels.convolution.llvm_types import WIDTH, Kind, kind_in, pointer, scratch
from tritensor.kernels.convolution.plans import Plan, Table, table_of
from tritensor.llvm import products as blas
from tritensor.llvm.loop_nest import LoopNest

_BLOCK = 4 << 20  # bytes of columns at a time
_STACK = 1 << 20  # bytes of columns of several images: more would leave the cache
_WIDE = 256  # columns from which a product of matrices runs at full speed
_POINTERS = {"src", "dst", "shift", "start", "to", "valid", "stored", "cells"}
_PARAMETERS = (
    "src", "dst", "channels", "src_c", "taps", "shift", "images", "src_n", "dst_k", "dst_n", "vectors", "start", "to", "valid", "stored", "cells",
)  # fmt: skip


def read(nest: LoopNest, k: Kind, told: bool, from_: str, place: str) -> list[str]:
    """%value: the vector %v of an image's cells from the pointer `from_` on, zero where `valid[place]` has no bit; what that declares."""
    width, vector, name = k.width, k.vector, k.name
    nest.load_element("bits", f"i{width}", "%valid", place, width // 8)
    nest.lines.append(f"  %mask = bitcast i{width} %bits to <{width} x i1>")
    if told:
        pointers = f"<{width} x ptr>"
        nest.lines += [
            f"  %cell.at = getelementptr <{width} x i32>, ptr %cells, i64 %v",
            f"  %cell = load <{width} x i32>, ptr %cell.at, align 4",
            f"  %many = getelementptr {k.number}, ptr {from_}, <{width} x i32> %cell",
            f"  %value = call {vector} @llvm.masked.gather.{name}.v{width}p0({pointers} %many, i32 {k.item}, <{width} x i1> %mask, "
            f"{vector} zeroinitializer)",
        ]
        return [f"declare {vector} @llvm.masked.gather.{name}.v{width}p0({pointers}, i32, <{width} x i1>, {vector})"]
    nest.load_element("begin", "i64", "%start", "%v", 8)
    nest.lines += [
        f"  %one = getelementptr i8, ptr {from_}, i64 %begin",
        f"  %value = call {vector} @llvm.masked.load.{name}.p0(ptr %one, i32 {k.item}, <{width} x i1> %mask, {vector} zeroinitializer)",
    ]
    return [f"declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, <{width} x i1>, {vector})"]


def write(nest: LoopNest, k: Kind, onto: str, value: str) -> list[str]:
    """The vector `value` to the outputs %v of an image whose first is at the pointer `onto`; what that declares."""
    width, vector, name = k.width, k.vector, f"llvm.masked.store.{k.name}.p0"
    nest.load_element("end", "i64", "%to", "%v", 8)
    nest.load_element("held", f"i{width}", "%stored", "%v", width // 8)
    nest.lines += [
        f"  %lanes = bitcast i{width} %held to <{width} x i1>",
        f"  %there = getelementptr i8, ptr {onto}, i64 %end",
        f"  call void @{name}({vector} {value}, ptr %there, i32 {k.item}, <{width} x i1> %lanes)",
    ]
    return [f"declare void @{name}({vector}, ptr, i32, <{width} x i1>)"]


@functools.cache
def _function(dtype: np.dtype, told: bool) -> Any:
    nest, k = LoopNest(), kind_in(dtype, 64)
    with nest.loop("c", "%channels"), nest.loop("t", "%taps"):
        nest.load_element("by", "i64", "%shift", "%t", 8)
        nest.lines += ["  %row0 = mul i64 %c, %taps", "  %row = add i64 %row0, %t", "  %first = mul i64 %t, %vectors"]
        with nest.loop("n", "%images"):
            nest.offset_pointer("from", "%src", ("%c", "%src_c"), ("%n", "%src_n"), ("%by", "1"))
            nest.offset_pointer("onto", "%dst", ("%row", "%dst_k"), ("%n", "%dst_n"))
            with nest.loop("v", "%vectors"):
                nest.lines.append("  %which = add i64 %first, %v")
                one = read(nest, k, told, "%from", "%which")
                two = write(nest, k, "%onto", "%value")
    return nest.compile(_PARAMETERS, _POINTERS, one + two)


def machine(dtype: np.dtype, plan: Plan, function: Any) -> tuple[Any, Table] | None:
    """The machine function `function(dtype, told)` for a plan, with its table; None where numpy has to do."""
    width = WIDTH.get(dtype)
    if width is None:
        return None
    table = table_of(plan, width, dtype.itemsize)
    found = function(dtype, table.cells is not None)
    return None if found is None else (found, table)


def slices(plan: Plan, tap: int) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """Which outputs have a tap inside the image, and which cells those are; None where none has."""
    outs, cells = [], []
    for n, m, stride, shift in zip(plan.size, plan.outs, plan.stride, plan.shifts[tap], strict=True):
        low, high = max(0, -(shift // stride)), min(m, (n - 1 - shift) // stride + 1)
        if low >= high:
            return None
        outs.append(slice(low, high))
        cells.append(slice(low * stride + shift, (high - 1) * stride + shift + 1, stride))
    return tuple(outs), tuple(cells)


def gather(x: np.ndarray, cols: np.ndarray, plan: Plan) -> None:
    """Write to cols (C, taps, N, *outs), whose outputs follow one another, as do its rows (C * taps), what the outputs of x (N, C, *size) read;
    each image's x must be in C order."""
    found = machine(x.dtype, plan, _function)
    if found is not None:
        function, t = found
        row = cols.strides[1] if cols.shape[1] > 1 else cols.strides[0]  # numpy says anything of an axis of size 1
        function(
            pointer(x), pointer(cols), x.shape[1], x.strides[1], cols.shape[1], pointer(t.shift), x.shape[0], x.strides[0], row,
            cols.strides[2], len(t.start), pointer(t.start), pointer(t.to), pointer(t.valid), pointer(t.stored), pointer(t.cells),
        )  # fmt: skip
        return
    channels_first = x.transpose(1, 0, *range(2, x.ndim))
    for tap in range(cols.shape[1]):
        here = slices(plan, tap)
        onto = cols[:, tap]
        if here is None or any(s.stop - s.start < n for s, n in zip(here[0], plan.outs, strict=True)):
            onto[...] = 0
        if here is not None:
            onto[(slice(None), slice(None), *here[0])] = channels_first[(slice(None), slice(None), *here[1])]


def are_image(plan: Plan) -> bool:
    """Whether the columns are the image as it lies, and wide enough for one product each."""
    return plan.bare and plan.places >= _WIDE


def _blocks(x: np.ndarray, plan: Plan, groups: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Images and places in them (both slices), with the columns of what they read: a matrix for each image, (images, G, C / G * taps, places), or,
    where one alone would be narrow, one for several, (G, C / G * taps, images * places). A large image comes in parts, some rows at a time."""
    n, channels = x.shape[:2]
    taps, places = len(plan.shifts), plan.places
    image = channels * taps * places * x.itemsize
    if are_image(plan):
        yield slice(0, n), slice(0, places), x.reshape(n, groups, channels // groups, places)
        return
    # columns are taps times as large as the image: of large ones they would not stay in the cache
    if image > _BLOCK:
        yield from _row_blocks(x, plan, groups)
        return
    # a wide matrix is multiplied as it is; narrow ones side by side, since BLAS is slow on few columns
    stacked = places >= _WIDE
    images = min(n, max(1, _STACK // image, 0 if stacked else min(-(-_WIDE // places), _BLOCK // image)))
    for first in range(0, n, images):
        some = slice(first, min(first + images, n))
        count = some.stop - some.start
        cols = scratch("cols", (count, channels, taps, places) if stacked else (channels, taps, count, places), x.dtype)
        onto = cols.transpose(1, 2, 0, 3) if stacked else cols
        gather(x[some], onto.reshape(*onto.shape[:3], *plan.outs), plan)
        rows = channels // groups * taps
        yield some, slice(0, places), cols.reshape((count, groups, rows, places) if stacked else (groups, rows, count * places))


def _row_blocks(x: np.ndarray, plan: Plan, groups: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """The same of images that are large: some rows of one at a time, (1, G, C / G * taps, places)."""
    n, channels = x.shape[:2]
    taps, outer = len(plan.shifts), plan.outs[0]
    inner = plan.places // outer
    rows = max(1, _BLOCK // (channels * taps * inner * x.itemsize))
    for i in range(n):
        for low in range(0, outer, rows):
            high = min(low + rows, outer)
            part, cells = plan.part(low, high)
            cols = scratch("cols", (channels, taps, 1, (high - low) * inner), x.dtype)
            gather(x[i : i + 1, :, cells], cols.reshape(*cols.shape[:3], *part.outs), part)
            yield slice(i, i + 1), slice(low * inner, high * inner), cols.reshape(1, groups, channels // groups * taps, -1)


def products(x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray) -> None:
    """Write to y (N, M, *outs), in C order, what the cells of x (N, C, *size) that a plan reads give with weights (G, M / G, C / G * taps)."""
    groups, per_group = weights.shape[:2]
    flat = y.reshape(y.shape[0], groups, per_group, plan.places)
    for some, places, cols in _blocks(x, plan, groups):
        onto = flat[some, :, :, places]
        if cols.ndim == 4:
            blas.matmul(weights, cols, out=onto)
        else:
            product = scratch("product", (groups, per_group, cols.shape[2]), y.dtype)
            blas.matmul(weights, cols, out=product)
            onto[...] = product.reshape(groups, per_group, len(onto), -1).transpose(2, 0, 1, 3)
        if bias is not None:
            onto += bias.reshape(groups, per_group, 1)


def weight_gradient(x: np.ndarray, g: np.ndarray, groups: int, plan: Plan) -> np.ndarray:
    """The gradient (G, O / G, C / G * taps) to a weight that g (N, O, *outs) gives, x (N, C, *size), both in C order."""
    per_group = g.shape[1] // groups
    flat = g.reshape(g.shape[0], groups, per_group, plan.places)
    total: np.ndarray | None = None
    for some, places, cols in _blocks(x, plan, groups):
        given = flat[some, :, :, places]
        if cols.ndim == 4:
            product = blas.matmul(given, cols.transpose(0, 1, 3, 2)).sum(0)
        else:
            rows = scratch("rows", (groups, per_group, cols.shape[2]), g.dtype)
            rows.reshape(groups, per_group, len(given), -1)[...] = given.transpose(1, 2, 0, 3)
            product = blas.matmul(rows, cols.transpose(0, 2, 1))
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None
    return total
