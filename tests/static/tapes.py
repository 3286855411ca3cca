"""Tapes compiled for GPUs that are not here, in a process of its own: `python -m tests.static.tapes` prints what stands in their machine code as JSON."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import tritensor as tt
from tests.kernels.tapes import sample_tapes
from tests.kernels.tapes.sample_tapes import fold, step
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.kernel_report import disassemble, report
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.kernels.elementwise import arithmetic
from tritensor.kernels.parts import elementwise, maths, reduction
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.gemm import gemm, run_product
from tritensor.kernels.parts.random_words import draws
from tritensor.kernels.parts.rows.row_tapes import run_rows
from tritensor.kernels.parts.tapes.pointwise import run_tape
from tritensor.kernels.parts.tapes.tape import INDEX, Places, Step, Tape
from tritensor.kernels.random.dropout import _kept
from tritensor.kernels.reductions import extrema

ARCHS = (80, 90, 100)
ADD, SUB, MUL = arithmetic._add, arithmetic._sub, arithmetic._mul
RECORDER = RecordingRuntime()
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def array(shape: Sequence[int], dtype: str) -> Any:
    """One without memory."""
    return tt.empty(*shape, dtype=getattr(tt, dtype), device="cuda")._array


def tape(dtype: str, inputs: int, numbers: int, steps: Sequence[tuple[Any, tuple[int, ...]]], *stores: int) -> Tape:
    """A tape of formulas over arrays and numbers of one type."""
    kind = getattr(tt, dtype).numpy
    wide = dtype == "float64"
    return Tape((kind,) * inputs, (F64 if wide else F32,) * numbers, tuple([Step(f, picks, kind, wide) for f, picks in steps]), stores)


GELU = (
    (MUL, (4, 0)), (MUL, (5, 0)), (MUL, (6, 0)), (ADD, (0, 7)), (MUL, (3, 8)), (activations.hyperbolic_tangent, (9,)), (ADD, (2, 10)), (MUL, (1, 0)),
    (MUL, (12, 11)),
)  # fmt: skip


def long(steps: int) -> list[tuple[Any, tuple[int, ...]]]:
    """A chain over four arrays."""
    found: list[tuple[Any, tuple[int, ...]]] = []
    for k in range(steps):
        f = (MUL, ADD, SUB, activations.sigmoid, MUL, ADD, activations.relu, MUL, SUB, ADD)[k % 10]
        before = 3 + k if k else 0
        found.append((f, (before,) if f in (activations.sigmoid, activations.relu) else (before, k % 4)))
    return found


# by name: inputs, numbers, steps, stores
POINTWISE: dict[str, tuple[int, int, Sequence[tuple[Any, tuple[int, ...]]], tuple[int, ...]]] = {
    "product and sum": (3, 0, ((MUL, (0, 1)), (ADD, (3, 2))), (4,)),
    "product and difference": (3, 0, ((MUL, (0, 1)), (SUB, (2, 3))), (4,)),
    "composed twice": (1, 0, ((activations.silu, (0,)), (activations.gelu, (1,))), (2,)),
    "silu": (1, 0, ((activations.silu, (0,)),), (1,)),
    "gelu": (1, 0, ((activations.gelu, (0,)),), (1,)),
    "gelu of nine": (1, 4, GELU, (13,)),
    "tanh": (1, 0, ((activations.hyperbolic_tangent, (0,)),), (1,)),
    "swiglu": (2, 0, ((activations.sigmoid, (0,)), (MUL, (0, 2)), (MUL, (3, 1))), (4,)),
    "thirty steps": (4, 0, long(30), (33,)),
    "sixty steps, three results": (4, 0, long(60), (23, 43, 63)),
}


def layer_norm(dtype: str) -> Tape:
    """x, weight, bias, epsilon, count: the result, the mean, the reciprocal root."""
    return sample_tapes.layer_norm(getattr(tt, dtype).numpy)._replace(stores=(13, 5, 10))


def cross_entropy(dtype: str) -> Tape:
    """Logits and the labels' places: log-likelihoods, one per row."""
    return sample_tapes.cross_entropy(getattr(tt, dtype).numpy)


def dropped_softmax(dtype: str) -> Tape:
    """x, places, and the numbers of a dropout: softmax of x with elements dropped."""
    kind = getattr(tt, dtype).numpy

    steps = (
        fold(kind, extrema._larger, 0, identity=extrema._lowest), step(SUB, kind, 0, 6), step(maths.exp, kind, 7), fold(kind, reduction.add, 8),
        step(maths.div, kind, 8, 9),
        Step(draws.words, (1, 2, 3), np.dtype(np.int32), False), step(_kept, kind, 10, 11, 4, 5),
    )  # fmt: skip
    words = np.dtype(np.int64)
    return Tape((kind, INDEX), (words, words, np.dtype(np.int32), F32), steps, (12,))


def pointwise(name: str, dtype: str) -> None:
    """Launch one of POINTWISE."""
    inputs, numbers, steps, stores = POINTWISE[name]
    made = tape(dtype, inputs, numbers, steps, *stores)
    given = [elementwise.scalar(0.5, getattr(tt, dtype).numpy)] * numbers
    run_tape(made, [array((1024, 4096), dtype) for _ in range(inputs)], given, [array((1024, 4096), dtype) for _ in stores])


DRAWS = ("dropout", "dropout of odd rows", "rand", "randn")


def drawing(name: str, dtype: str) -> None:
    """Launch x times a number of [0, 1), or x with dropout, and then plus w; "odd rows" begin within a block of random words."""
    kind, n = getattr(tt, dtype).numpy, 4095 if name.endswith("odd rows") else 4096
    wide, words = dtype == "float64", np.dtype(np.int64)
    numbers: list[Any] = [draws.signed(7), draws.signed(9)]
    types: tuple[np.dtype, ...] = (words, words)
    if name.startswith("dropout"):
        numbers += [np.int32(5), elementwise.scalar(1.25, kind)]
        types += (np.dtype(np.int32), F64 if wide else F32)
        steps = [
            Step(draws.words, (2, 3, 4), np.dtype(np.int32), False),
            Step(_kept, (0, 7, 5, 6), kind, wide),
            Step(ADD, (8, 1), kind, wide),
        ]
    else:
        formula = {"rand": draws.UNIFORMS, "randn": draws.NORMALS}[name][dtype]
        steps = [Step(formula, (2, 3, 4), kind, False), Step(MUL, (5, 0), kind, wide), Step(ADD, (6, 1), kind, wide)]
    made = Tape((kind, kind, INDEX), types, tuple(steps), (2 + len(types) + 3,))
    # the odd rows are kept apart by w, which has one
    x, w, y = [array(shape, dtype) for shape in ((1024, n), (1024, n) if n % 4 == 0 else (n,), (1024, n))]
    run_tape(made, [x, w, Places((1024, n), (n, 1))], numbers, [y])


def rows(name: str, dtype: str) -> None:
    """Launch a tape of rows: "layer norm 16384 x 768"."""
    of, _, size = name.rpartition(": ")
    m, n = map(int, size.split(" x "))
    if of == "layer norm":
        ins, outs = ((m, n), (1, n), (1, n)), ((m, n), (m, 1), (m, 1))
        run_rows(layer_norm(dtype), [array(s, dtype) for s in ins], (1e-5, np.float64(n)), [array(s, dtype) for s in outs], m, n)
    elif of == "dropped softmax":
        numbers = (draws.signed(7), draws.signed(9), np.int32(5), 1.25)
        run_rows(dropped_softmax(dtype), [array((m, n), dtype), Places((m, n), (n, 1))], numbers, [array((m, n), dtype)], m, n)
    else:
        run_rows(cross_entropy(dtype), [array((m, n), dtype) for _ in range(2)], (), [array((m, 1), dtype)], m, n)


ROWS = (
    "layer norm: 16384 x 768", "layer norm: 4096 x 16384", "layer norm: 4096 x 4095", "layer norm: 512 x 50304",
    "dropped softmax: 16384 x 1024", "dropped softmax: 256 x 50304", "cross entropy: 256 x 10000", "cross entropy: 2048 x 50304", "cross entropy: 2048 x 50257",
)  # fmt: skip


# by name: shapes of operands beside the product of (8192, 768) and (768, 3072), numbers, steps, stores
LIKE, ROW, COLUMN = (8192, 3072), (8192, 1), (3072,)
PRODUCTS: dict[str, tuple[tuple[tuple[int, ...], ...], int, Sequence[tuple[Any, tuple[int, ...]]], tuple[int, ...]]] = {
    "product": ((), 0, (), ()),
    "product, residual": ((LIKE,), 0, ((ADD, (0, 1)),), (2,)),
    "product, gate": ((LIKE,), 0, ((activations.silu, (0,)), (MUL, (2, 1))), (3,)),
    "product, gelu of nine": ((), 4, tuple([(f, picks) for f, picks in GELU]), (13,)),
    "product, per row and column": ((ROW, COLUMN), 1, ((MUL, (0, 1)), (ADD, (4, 2)), (MUL, (5, 3)), (activations.relu, (6,))), (7,)),
    "product, three results": ((LIKE, COLUMN), 0, ((ADD, (0, 2)), (activations.gelu, (3,)), (ADD, (4, 1))), (5, 4, 0)),
}


def products(name: str, dtype: str) -> None:
    """Launch a product with one of PRODUCTS as its epilogue, or by itself."""
    shapes, numbers, steps, stores = PRODUCTS[name]
    a, b, bias, y = (array(s, dtype) for s in ((8192, 768), (768, 3072), (3072,), LIKE))
    if not steps:
        gemm(a, b, y, bias)
        return
    given = [elementwise.scalar(0.5, getattr(tt, dtype).numpy)] * numbers
    made = tape(dtype, 1 + len(shapes), numbers, steps, *stores)
    run_product(a, b, bias, made, [array(s, dtype) for s in shapes], given, [array(LIKE, dtype) for _ in stores])


def facts(arch: int, recorder: RecordingRuntime) -> dict[str, Any]:
    """Of the one kernel that was recorded."""
    (spec,) = recorder.launches
    made, found = compile(spec, arch), report(spec, arch)
    text = disassemble(made.asm["cubin"])
    codes = Counter(re.findall(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\d+\s+)?([A-Z]+[0-9]*)", text, re.M))
    ptx = Counter(re.findall(r"\b((?:fma|mul|add|sub)\.\S*f\S*)\s", made.asm["ptx"]))
    return {
        "registers": found.registers, "spilled": found.spilled, "longest": found.longest, "loads": found.loads, "stores": found.stores, "codes": codes,
        "ptx": ptx, "tensor": found.tensor, "loop": found.loop,
    }  # fmt: skip


def main() -> None:
    for arch in ARCHS:
        recorder = RecordingRuntime((arch // 10, 0))
        active.use(recorder)  # type: ignore[arg-type]
        for dtype, name in itertools.product(("float32", "bfloat16", "float16"), PRODUCTS):
            recorder.launches.clear()
            products(name, dtype)
            print(json.dumps({"name": name, "dtype": dtype, "arch": arch, **facts(arch, recorder)}), flush=True)
    active.use(RECORDER)  # type: ignore[arg-type]
    for dtype in ("float32", "bfloat16", "float16", "float64"):
        for name in [*POINTWISE, *DRAWS, *(ROWS if dtype in ("float32", "bfloat16") else ())]:
            RECORDER.launches.clear()
            (pointwise if name in POINTWISE else drawing if name in DRAWS else rows)(name, dtype)
            for arch in ARCHS:
                print(json.dumps({"name": name, "dtype": dtype, "arch": arch, **facts(arch, RECORDER)}), flush=True)


if __name__ == "__main__":
    main()
