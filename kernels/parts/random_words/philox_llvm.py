"""Philox's words, and normal numbers of them, by machine code: bit for bit what numpy and the kernels make, sixteen blocks at a time.

The formulas are those of philox.py and normal.py, written on SIMD vectors; nothing in them is fused, so that every step is rounded as there.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.kernels.parts.random_words import normal
from tritensor.llvm import compiler
from tritensor.llvm.simd import Code, Vector, select
from tritensor.llvm.simd_functions import maximum, sqrt

BLOCKS = 16  # blocks at a time
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def _product(a: Vector, b: int) -> tuple[Vector, Vector]:
    """The upper and the lower half of a 32-bit product."""
    p = a.zero_extend("i64") * b
    return p.unsigned_shift(32).to("i32"), p.to("i32")


def philox(block: Vector, k0: Vector, k1: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """The four words of each block."""
    c0, c1 = block.to("i32"), block.unsigned_shift(32).to("i32")
    c2 = c3 = block.code.constant(0, "i32")
    for _ in range(ROUNDS):
        high0, low0 = _product(c0, MULTIPLIERS[0])
        high1, low1 = _product(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + (WEYL[0] - (1 << 32)), k1 + (WEYL[1] - (1 << 32))
    return c0, c1, c2, c3


def _polynomial(x: Vector, coefficients: tuple[float, ...]) -> Vector:
    y = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        y = y * x + c
    return y


def polar(w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Two float32 normals of two words (see normal.py)."""
    u = w.zero_extend("i64").to("f64").to("f32") * 2.0**-32 + 2.0**-33  # a word in float64 is exact: one rounding
    bits = u.bits("i32")
    m = ((bits & 0x7FFFFF) | 0x3F000000).bits("f32")
    small = m < 0.70710678
    e = ((bits >> 23) - 126 - small.to("i32")).to("f32")
    f = select(small, m + m, m) - 1.0
    z = f * f
    y = _polynomial(f, normal.LOG32) * f * z
    y = y + e * normal.LOW32
    y = y - z * 0.5
    log = (f + y) + e * normal.HIGH32
    r = sqrt(maximum(log * -2.0, 0.0))
    t = v + 0x20000000
    x = ((t & 0x3FFFFFFF).to("f32") - 536870912.0) * normal.TURN32
    z = x * x
    s = _polynomial(z, normal.SIN32) * z * x + x
    c = (_polynomial(z, normal.COS32) * z * z - z * 0.5) + 1.0
    quarter = t.unsigned_shift(30)
    odd = (quarter & 1) == 1
    a, b = select(odd, s, c), select(odd, c, s)
    a = select((quarter == 1) | (quarter == 2), -a, a)
    return r * a, r * select(quarter >= 2, -b, b)


def _words(code: Code, words: tuple[Vector, ...]) -> list[Vector]:
    return list(words)


def _uniforms(code: Code, words: tuple[Vector, ...]) -> list[Vector]:
    return [w.unsigned_shift(8).to("f32") * 2.0**-24 for w in words]


def _normals(code: Code, words: tuple[Vector, ...]) -> list[Vector]:
    return [*polar(words[0], words[1]), *polar(words[2], words[3])]


_MAKERS: dict[str, Callable[[Code, tuple[Vector, ...]], list[Vector]]] = {"words": _words, "uniforms": _uniforms, "normals": _normals}
TYPES = {"words": np.dtype(np.uint32), "uniforms": np.dtype(np.float32), "normals": np.dtype(np.float32)}


def _in_order(code: Code, parts: list[Vector]) -> str:
    """a0 b0 c0 d0 a1 b1 ...: four vectors as one of four times their width; its name."""
    kind, n = code.type(parts[0].kind), code.width
    element = "i32" if parts[0].kind == "i32" else "float"
    pair = ", ".join(f"i32 {i}" for i in range(2 * n))
    for name, (p, q) in (("%left", parts[:2]), ("%right", parts[2:])):
        code.lines.append(f"  {name} = shufflevector {kind} {p.name}, {kind} {q.name}, <{2 * n} x i32> <{pair}>")
    order = ", ".join(f"i32 {part * n + i}" for i in range(n) for part in range(4))
    code.lines.append(f"  %y = shufflevector <{2 * n} x {element}> %left, <{2 * n} x {element}> %right, <{4 * n} x i32> <{order}>")
    return f"<{4 * n} x {element}> %y"


def _text(kind: str) -> str:
    """The module of a loop that fills out with n blocks' numbers, n a multiple of BLOCKS, from block `first` on."""
    code = Code(BLOCKS, "v")
    words = philox(Vector(code, "%block", "i64"), Vector(code, "%k0s", "i32"), Vector(code, "%k1s", "i32"))
    stored = _in_order(code, _MAKERS[kind](code, words))
    steps = ", ".join(f"i64 {i}" for i in range(BLOCKS))

    def spread(name: str, element: str) -> list[str]:
        vector = f"<{BLOCKS} x {element}>"
        return [
            f"  %{name}one = insertelement {vector} poison, {element} %{name}, i64 0",
            f"  %{name}s = shufflevector {vector} %{name}one, {vector} poison, <{BLOCKS} x i32> zeroinitializer",
        ]

    return "\n".join([
        *sorted(code.declared),
        "define void @run(ptr %out, i64 %n, i64 %first, i32 %k0, i32 %k1) {",
        "entry:",
        *spread("k0", "i32"),
        *spread("k1", "i32"),
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
        "  %b = add i64 %i, %first",
        *spread("b", "i64"),
        f"  %block = add <{BLOCKS} x i64> %bs, <{steps}>",
        *code.lines,
        "  %at = getelementptr [4 x i32], ptr %out, i64 %i",
        f"  store {stored}, ptr %at, align 4",
        f"  %next = add i64 %i, {BLOCKS}",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
        "",
    ])  # fmt: skip


@functools.cache
def _function(kind: str) -> Any:
    return compiler.build_typed(_text(kind), None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)


def fill(kind: str, out: np.ndarray, seed: int, offset: int) -> int:
    """Fill flat, C-ordered `out` with "words", "uniforms" or "normals" from block `offset` on; how many elements are done, whole blocks alone."""
    whole = out.size // (4 * BLOCKS) * BLOCKS
    function = _function(kind) if whole and out.dtype == TYPES[kind] else None
    if function is None:
        return 0
    function(out.ctypes.data, whole, offset & 0xFFFFFFFFFFFFFFFF, seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)
    return 4 * whole
