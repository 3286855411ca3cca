"""Sums of whole arrays of 16-bit floats in machine code: eight numbers one after the other in float32, those sums in float64."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loops import STORED, to_compute_type
from tritensor.llvm.simd import Code, Vector

_WIDTH, _TURNS, _SIDE_BY_SIDE = 16, 8, 4  # lanes; additions in a row; accumulators, which wait for each other less than one would
CHUNK = _WIDTH * _TURNS * _SIDE_BY_SIDE


def _text(dtype: np.dtype) -> str:
    """Writes 16 float64 to out, which add up to the sum of n elements of x, n a multiple of CHUNK."""
    code = Code(_WIDTH, "v")
    stored = code.type(STORED[dtype])
    sums: list[Vector] = []
    for k in range(_TURNS * _SIDE_BY_SIDE):
        code.lines += [
            f"  %p{k} = getelementptr i8, ptr %at, i64 {k * _WIDTH * dtype.itemsize}",
            f"  %x{k} = load {stored}, ptr %p{k}, align {dtype.itemsize}",
        ]
        x = to_compute_type(Vector(code, f"%x{k}", STORED[dtype]), dtype)
        # the first vectors are the sums, rather than zeros to which they are added
        if k < _SIDE_BY_SIDE:
            sums.append(x)
        else:
            sums[k % _SIDE_BY_SIDE] = sums[k % _SIDE_BY_SIDE] + x
    chunk = ((sums[0] + sums[1]) + (sums[2] + sums[3])).to("f64")
    doubles = code.type("f64")
    return "\n".join([
        "define void @run(ptr %out, ptr %x, i64 %n) {",
        "entry:",
        f"  %size = mul i64 %n, {dtype.itemsize}",
        "  %end = getelementptr i8, ptr %x, i64 %size",
        "  br label %loop",
        "loop:",
        "  %at = phi ptr [%x, %entry], [%next, %loop]",
        f"  %sum = phi {doubles} [zeroinitializer, %entry], [%added, %loop]",
        *code.lines,
        f"  %added = fadd {doubles} %sum, {chunk.name}",
        f"  %next = getelementptr i8, ptr %at, i64 {CHUNK * dtype.itemsize}",
        "  %more = icmp ult ptr %next, %end",
        "  br i1 %more, label %loop, label %done",
        "done:",
        f"  store {doubles} %added, ptr %out, align 8",
        "  ret void",
        "}",
        "",
    ])  # fmt: skip


@functools.cache
def _function(dtype: np.dtype) -> Any:
    return compiler.build_typed(_text(dtype), None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def total(x: np.ndarray) -> tuple[float, int]:
    """(sum of the first elements of a flat C-ordered float16 or bfloat16 array, how many those are: whole chunks, none without machine code)."""
    n = x.size // CHUNK * CHUNK
    function = _function(x.dtype) if n else None
    if function is None:
        return 0.0, 0
    sums = np.empty(_WIDTH)
    function(sums.ctypes.data, x.ctypes.data, n)
    return float(np.add.reduce(sums)), n
