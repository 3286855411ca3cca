"""Sums of a formula over whole arrays in machine code: one pass, what the formula gives is added in float64 and never stored."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.loops import MANY, STORED, is_contiguous, to_compute_type
from tritensor.llvm.simd import LLVM, Code, NotVectorizableError, Vector, splat_lines


class FormulaSum:
    """The sum of a formula of arrays and numbers, compiled when it is first needed, once for each combination of types.

    Floats of 16 bits arrive as float32; `formula` is called once for each combination to leave its code behind.
    """

    def __init__(self, formula: Callable[..., Any]) -> None:
        self.formula = formula
        self.compiled: dict[tuple[Any, ...], Any] = {}

    def __call__(self, inputs: Sequence[Any]) -> float | None:
        """The sum over inputs, arrays of one shape that lie alike, and numbers. None where numpy has to compute it: of few elements, of other types or
        strides, of hard numbers."""
        first = next(x for x in inputs if isinstance(x, np.ndarray))
        if first.size < MANY:
            return None
        order = "C" if first.flags.c_contiguous else "F"
        held: list[np.ndarray] = []
        types: list[np.dtype | None] = []
        wide = any(isinstance(x, np.ndarray) and x.dtype.char == "d" for x in inputs)
        for x in inputs:
            array = isinstance(x, np.ndarray) and x.ndim > 0
            if array and (x.dtype not in STORED or x.shape != first.shape or not is_contiguous(x, order)):
                return None
            types.append(x.dtype if array else None)
            held.append(x if array else np.full(1, x, np.float64 if wide else np.float32))
        key = tuple(types)
        if key not in self.compiled:
            self.compiled[key] = self._compile(key, "f64" if wide else "f32")
        function, width = self.compiled[key]
        sums = np.empty(width)
        if function is None or function(first.size, sums.ctypes.data, *[x.ctypes.data for x in held]):
            return None
        return float(np.add.reduce(sums))

    def _compile(self, types: tuple[np.dtype | None, ...], kind: str) -> tuple[Any, int]:
        if compiler.refusal():
            return None, 1
        width = compiler.lanes() // (2 if kind == "f64" else 1)
        try:
            module = _text(self.formula, types, kind, width)
        except (NotVectorizableError, AttributeError, TypeError, ValueError):  # as for loops
            return None, 1
        return compiler.build_typed(module, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * (len(types) + 1)), width


def _body(formula: Callable[..., Any], types: Sequence[np.dtype | None], kind: str, width: int, prefix: str) -> tuple[Code, str, str]:
    """The formula's code on %<prefix>_in<i>, the names of its result in float64 and of the lanes that it cannot do."""
    code = Code(width, prefix)
    given = [
        to_compute_type(Vector(code, f"%{prefix}_in{i}", STORED[t]), t) if t is not None else Vector(code, f"%number{i}", kind)
        for i, t in enumerate(types)
    ]
    # in float64 whatever the type: a sum of a million float32 loses its last digits lane by lane
    made = formula(*given).to("f64")
    return code, made.name, (code.constant(0, "b1") if code.hard is None else code.hard).name


def _text(formula: Callable[..., Any], types: Sequence[np.dtype | None], kind: str, width: int) -> str:
    """Writes `width` float64 to out, which add up to the sum over n elements: whole vectors, then the rest through room for one on the stack."""
    (main, made, hard), (rest, last, last_hard) = (_body(formula, types, kind, width, p) for p in "vr")
    arrays = [(i, t.itemsize, f"<{width} x {LLVM[STORED[t]]}>") for i, t in enumerate(types) if t is not None]
    doubles, truths, places = f"<{width} x double>", f"<{width} x i1>", f"<{width} x i64>"
    numbers: list[str] = []
    for i, t in enumerate(types):
        if t is None:
            numbers += [f"  %n{i} = load {LLVM[kind]}, ptr %p{i}", *splat_lines(f"number{i}", f"%n{i}", LLVM[kind], width)]
    return "\n".join([
        *sorted(main.declared | rest.declared),
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"define i64 @run(i64 %n, ptr %out, {', '.join(f'ptr %p{i}' for i in range(len(types)))}) {{",
        "entry:",
        *[f"  %room{i} = alloca {vector}, align 64" for i, _, vector in arrays],
        *numbers,
        f"  %whole = and i64 %n, {-width}",
        "  %some = icmp sgt i64 %whole, 0",
        "  br i1 %some, label %loop, label %tail",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
        f"  %sum = phi {doubles} [zeroinitializer, %entry], [%added, %loop]",
        f"  %before = phi {truths} [zeroinitializer, %entry], [%met, %loop]",
        *[f"  %o{i} = mul i64 %i, {size}\n  %a{i} = getelementptr i8, ptr %p{i}, i64 %o{i}" for i, size, _ in arrays],
        *[f"  %v_in{i} = load {vector}, ptr %a{i}, align {size}" for i, size, vector in arrays],
        *main.lines,
        f"  %added = fadd {doubles} %sum, {made}",
        f"  %met = or {truths} %before, {hard}",
        f"  %next = add i64 %i, {width}",
        "  %more = icmp slt i64 %next, %whole",
        "  br i1 %more, label %loop, label %tail",
        "tail:",
        f"  %total = phi {doubles} [zeroinitializer, %entry], [%added, %loop]",
        f"  %all = phi {truths} [zeroinitializer, %entry], [%met, %loop]",
        "  %left = sub i64 %n, %whole",
        *[f"  %d{i} = mul i64 %whole, {size}\n  %b{i} = getelementptr i8, ptr %p{i}, i64 %d{i}\n  %s{i} = mul i64 %left, {size}" for i, size, _ in arrays],
        *[f"  store {vector} zeroinitializer, ptr %room{i}, align 64" for i, _, vector in arrays],
        *[f"  call void @llvm.memcpy.p0.p0.i64(ptr %room{i}, ptr %b{i}, i64 %s{i}, i1 false)" for i, *_ in arrays],
        *[f"  %r_in{i} = load {vector}, ptr %room{i}, align 64" for i, _, vector in arrays],
        *rest.lines,
        *splat_lines("lefts", "%left", "i64", width),
        f"  %inside = icmp slt {places} <{', '.join(f'i64 {k}' for k in range(width))}>, %lefts",
        f"  %counted = select {truths} %inside, {doubles} {last}, {doubles} zeroinitializer",
        f"  %grand = fadd {doubles} %total, %counted",
        f"  store {doubles} %grand, ptr %out, align 8",
        f"  %lasthard = and {truths} %inside, {last_hard}",
        f"  %found = or {truths} %all, %lasthard",
        f"  %bits = bitcast {truths} %found to i{width}",
        f"  %any = icmp ne i{width} %bits, 0",
        "  %answer = zext i1 %any to i64",
        "  ret i64 %answer",
        "}",
        "",
    ])  # fmt: skip
