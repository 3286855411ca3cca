"""The cells that a convolution sums over as the columns of a matrix: gathered in machine code, or by numpy slice by slice."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.kernels.convolution.plans import Plan, Table, table_of
from tritensor.llvm.loop_nest import Nest
from tritensor.llvm.simd import LLVM

WIDTH = {np.dtype(np.float32): 16, np.dtype(np.float64): 8}
_KINDS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_POINTERS = {"src", "dst", "shift", "start", "to", "valid", "stored", "cells"}
_PARAMETERS = (
    "src",
    "dst",
    "channels",
    "src_c",
    "taps",
    "shift",
    "images",
    "src_n",
    "dst_k",
    "dst_n",
    "vectors",
    "start",
    "to",
    "valid",
    "stored",
    "cells",
)


def read(nest: Nest, dtype: np.dtype, told: bool, from_: str, place: str) -> tuple[str, list[str]]:
    """%value: the vector %v of an image's cells from the pointer `from_` on, zero where `valid[place]` has no bit; its type, and what it declares."""
    width, number = WIDTH[dtype], LLVM[_KINDS[dtype]]
    vector, pointers = f"<{width} x {number}>", f"<{width} x ptr>"
    name = f"v{width}{_KINDS[dtype]}"
    nest.item("bits", f"i{width}", "%valid", place, width // 8)
    nest.lines.append(f"  %mask = bitcast i{width} %bits to <{width} x i1>")
    if told:
        nest.lines += [
            f"  %cell.at = getelementptr <{width} x i32>, ptr %cells, i64 %v",
            f"  %cell = load <{width} x i32>, ptr %cell.at, align 4",
            f"  %many = getelementptr {number}, ptr {from_}, <{width} x i32> %cell",
            f"  %value = call {vector} @llvm.masked.gather.{name}.v{width}p0({pointers} %many, i32 {dtype.itemsize}, <{width} x i1> %mask, "
            f"{vector} zeroinitializer)",
        ]
        return vector, [f"declare {vector} @llvm.masked.gather.{name}.v{width}p0({pointers}, i32, <{width} x i1>, {vector})"]
    nest.item("begin", "i64", "%start", "%v", 8)
    nest.lines += [
        f"  %one = getelementptr i8, ptr {from_}, i64 %begin",
        f"  %value = call {vector} @llvm.masked.load.{name}.p0(ptr %one, i32 {dtype.itemsize}, <{width} x i1> %mask, {vector} zeroinitializer)",
    ]
    return vector, [f"declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, <{width} x i1>, {vector})"]


def write(nest: Nest, dtype: np.dtype, onto: str, value: str) -> list[str]:
    """The vector `value` to the outputs %v of an image whose first is at the pointer `onto`; what that declares."""
    width = WIDTH[dtype]
    vector = f"<{width} x {LLVM[_KINDS[dtype]]}>"
    name = f"llvm.masked.store.v{width}{_KINDS[dtype]}.p0"
    nest.item("end", "i64", "%to", "%v", 8)
    nest.item("held", f"i{width}", "%stored", "%v", width // 8)
    nest.lines += [
        f"  %lanes = bitcast i{width} %held to <{width} x i1>",
        f"  %there = getelementptr i8, ptr {onto}, i64 %end",
        f"  call void @{name}({vector} {value}, ptr %there, i32 {dtype.itemsize}, <{width} x i1> %lanes)",
    ]
    return [f"declare void @{name}({vector}, ptr, i32, <{width} x i1>)"]


@functools.cache
def _function(dtype: np.dtype, told: bool) -> Any:
    nest = Nest()
    with nest.loop("c", "%channels"), nest.loop("t", "%taps"):
        nest.item("by", "i64", "%shift", "%t", 8)
        nest.lines += ["  %row0 = mul i64 %c, %taps", "  %row = add i64 %row0, %t", "  %first = mul i64 %t, %vectors"]
        with nest.loop("n", "%images"):
            nest.moved("from", "%src", ("%c", "%src_c"), ("%n", "%src_n"), ("%by", "1"))
            nest.moved("onto", "%dst", ("%row", "%dst_k"), ("%n", "%dst_n"))
            with nest.loop("v", "%vectors"):
                nest.lines.append("  %which = add i64 %first, %v")
                _, one = read(nest, dtype, told, "%from", "%which")
                two = write(nest, dtype, "%onto", "%value")
    return nest.compiled(_PARAMETERS, _POINTERS, one + two)


def machine(dtype: np.dtype, plan: Plan, function: Any) -> tuple[Any, Table] | None:
    """The machine function `function(dtype, told)` for a plan, with its table; None where numpy has to do."""
    width = WIDTH.get(dtype)
    if width is None:
        return None
    table = table_of(plan, width, dtype.itemsize)
    found = function(dtype, table.cells is not None)
    return None if found is None else (found, table)


def pointer(x: np.ndarray | None) -> int:
    return 0 if x is None else x.__array_interface__["data"][0]  # type: ignore[no-any-return]


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
