"""Depthwise convolution on the CPU, each channel with a kernel of its own: machine code, and nothing where there is none."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.kernels.convolution.columns import machine, read, write
from tritensor.kernels.convolution.llvm_types import WIDTH, kind_in, pointer
from tritensor.kernels.convolution.plans import Plan, Table, table_of
from tritensor.llvm import compiler, threads
from tritensor.llvm.loop_nest import LoopNest

_ALONE = 1 << 16  # results below which a second thread does not pay
_POINTERS = {"x", "y", "w", "bias", "shift", "start", "to", "valid", "stored", "cells", "g", "dw"}
_CORRELATE = (
    "x", "w", "bias", "y", "images", "x_n", "x_c", "channels", "several", "taps", "y_n", "y_c",
    "shift", "vectors", "start", "to", "valid", "stored", "cells",
)  # fmt: skip
_WEIGHT = (
    "x", "g", "dw", "images", "x_n", "x_c", "channels", "taps", "g_n", "g_c", "shift", "vectors", "start", "to", "valid", "stored", "cells",
)  # fmt: skip


@functools.cache
def _correlation(dtype: np.dtype, told: bool) -> Any:
    """y[n, o, v] = bias[o] + sum over t of w[o, t] x[n, o / several, v + shift[t]], vectors of outputs v."""
    nest, k = LoopNest(), kind_in(dtype, 64)
    with nest.loop("n", "%images"), nest.loop("o", "%channels"):
        nest.load_element("b", k.number, "%bias", "%o", k.item)
        nest.lines += [*k.spread("b", "b1"), "  %c = udiv i64 %o, %several", "  %first = mul i64 %o, %taps"]
        nest.offset_pointer("image", "%x", ("%n", "%x_n"), ("%c", "%x_c"))
        nest.offset_pointer("onto", "%y", ("%n", "%y_n"), ("%o", "%y_c"))
        with nest.loop("v", "%vectors"):
            with nest.loop("t", "%taps", acc=(k.vector, "%b1")):
                nest.load_element("by", "i64", "%shift", "%t", 8)
                nest.lines += ["  %from = getelementptr i8, ptr %image, i64 %by", "  %row = mul i64 %t, %vectors"]
                nest.lines += ["  %which = add i64 %row, %v", "  %weight = add i64 %first, %t"]
                one = read(nest, k, told, "%from", "%which")
                nest.load_element("a", k.number, "%w", "%weight", k.item)
                nest.lines += [
                    *k.spread("a", "a1"),
                    f"  %acc.new = call {k.vector} @llvm.fma.{k.name}({k.vector} %a1, {k.vector} %value, {k.vector} %acc)",
                ]
            two = write(nest, k, "%onto", "%acc.new")
    return nest.compile(_CORRELATE, _POINTERS, [*one, *two, k.fma])


@functools.cache
def _gradient(dtype: np.dtype, told: bool) -> Any:
    """dw[c, t] = sum over n and v of g[n, c, v] x[n, c, v + shift[t]]: the vectors of an image first, then the images, then the lanes."""
    nest, k = LoopNest(), kind_in(dtype, 64)
    kind, vector, width, name = k.number, k.vector, k.width, k.name
    with nest.loop("c", "%channels"), nest.loop("t", "%taps"):
        nest.load_element("by", "i64", "%shift", "%t", 8)
        nest.lines += ["  %rows = mul i64 %t, %vectors", "  %cell0 = mul i64 %c, %taps", "  %into = add i64 %cell0, %t"]
        with nest.loop("n", "%images", total=(vector, "zeroinitializer")):
            nest.offset_pointer("from", "%x", ("%n", "%x_n"), ("%c", "%x_c"), ("%by", "1"))
            nest.offset_pointer("given", "%g", ("%n", "%g_n"), ("%c", "%g_c"))
            with nest.loop("v", "%vectors", acc=(vector, "zeroinitializer")):
                nest.lines.append("  %which = add i64 %rows, %v")
                one = read(nest, k, told, "%from", "%which")
                nest.load_element("end", "i64", "%to", "%v", 8)
                nest.load_element("held", f"i{width}", "%stored", "%v", width // 8)
                nest.lines += [
                    f"  %lanes = bitcast i{width} %held to <{width} x i1>",
                    "  %there = getelementptr i8, ptr %given, i64 %end",
                    f"  %weight = call {vector} @llvm.masked.load.{name}.p0(ptr %there, i32 {dtype.itemsize}, <{width} x i1> %lanes, "
                    f"{vector} zeroinitializer)",
                    f"  %acc.new = call {vector} @llvm.fma.{name}({vector} %weight, {vector} %value, {vector} %acc)",
                ]
            nest.lines.append(f"  %total.new = fadd {vector} %total, %acc.new")
        nest.lines += [
            f"  %sum = call reassoc {kind} @llvm.vector.reduce.fadd.{name}({kind} 0.0, {vector} %total.new)",
            f"  %dw.at = getelementptr {kind}, ptr %dw, i64 %into",
            f"  store {kind} %sum, ptr %dw.at, align {dtype.itemsize}",
        ]
    declared = {
        *one, f"declare {vector} @llvm.masked.load.{name}.p0(ptr, i32, <{width} x i1>, {vector})",
        k.fma, f"declare {kind} @llvm.vector.reduce.fadd.{name}({kind}, {vector})",
    }  # fmt: skip
    return nest.compile(_WEIGHT, _POINTERS, sorted(declared))


def _code(dtype: np.dtype, plan: Plan, function: Any) -> tuple[Any, Table]:
    found = machine(dtype, plan, function)
    assert found is not None  # has_code was asked
    return found


def has_code(dtype: np.dtype, plan: Plan) -> bool:
    """Whether there is machine code for a plan."""
    return machine(dtype, plan, _correlation) is not None


def fits(dtype: np.dtype, plan: Plan) -> bool:
    """Whether cells are read side by side by a processor that has masks of its own: tiles over padded copies are faster elsewhere."""
    return table_of(plan, WIDTH[dtype], dtype.itemsize).cells is None and compiler.processor() == "x86-64-v4"


def correlate(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, plan: Plan, y: np.ndarray) -> None:
    """Write the convolution of x (N, C, *size) with w (O, taps), O a multiple of C, to y (N, O, *outs), all in C order."""
    function, t = _code(x.dtype, plan, _correlation)
    bias = np.zeros(len(w), x.dtype) if bias is None else np.ascontiguousarray(bias)

    def images(low: int, high: int) -> tuple[int, ...]:
        return (
            pointer(x) + low * x.strides[0], pointer(w), pointer(bias), pointer(y) + low * y.strides[0], high - low, x.strides[0], x.strides[1], len(w),
            len(w) // x.shape[1], len(plan.shifts), y.strides[0], y.strides[1], pointer(t.shift), len(t.start), pointer(t.start), pointer(t.to),
            pointer(t.valid), pointer(t.stored), pointer(t.cells),
        )  # fmt: skip

    threads.run_shared(function, x.shape[0], images, y.size < _ALONE)


def weight_gradient(x: np.ndarray, g: np.ndarray, plan: Plan) -> np.ndarray:
    """The gradient (C, taps) to the kernels of x (N, C, *size) that g (N, C, *outs) gives, both in C order."""
    function, t = _code(x.dtype, plan, _gradient)
    dw = np.empty((x.shape[1], len(plan.shifts)), x.dtype)

    def channels(low: int, high: int) -> tuple[int, ...]:
        return (
            pointer(x) + low * x.strides[1], pointer(g) + low * g.strides[1], pointer(dw) + low * dw.strides[0], x.shape[0], x.strides[0], x.strides[1],
            high - low, len(plan.shifts), g.strides[0], g.strides[1], pointer(t.shift), len(t.start), pointer(t.start), pointer(t.to), pointer(t.valid),
            pointer(t.stored), pointer(t.cells),
        )  # fmt: skip

    threads.run_shared(function, x.shape[1], channels, g.size < _ALONE)
    return dw
