"""Tapes by hand and what tests ask of any: gelu, layer norm and cross-entropy operation by operation, folds, the formulas of random ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  # registers the ops, whose formulas these are
from tritensor.kernels.elementwise import arithmetic, comparison
from tritensor.kernels.parts import maths, reduction
from tritensor.kernels.parts.formulas import activations
from tritensor.kernels.parts.tapes import on_cpu
from tritensor.kernels.parts.tapes.cpu.arrangement import arrange, memory
from tritensor.kernels.parts.tapes.tape import Fold, Step, Tape
from tritensor.kernels.reductions import extrema, prod, sums
from tritensor.llvm import compiler

F16, BF16, F32, F64 = map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
BOOL, I32, I64 = map(np.dtype, (np.bool_, np.int32, np.int64))
FLOATS = [F16, BF16, F32, F64]
ROUNDING = {F16: 2.0**-10, BF16: 2.0**-7, F32: 2.0**-22, F64: 2.0**-50}
machine = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")


def kept(dtype: np.dtype) -> np.dtype:
    """The type that a number is given in beside arrays of a type."""
    return F32 if dtype.itemsize == 2 else dtype


def step(formula: Any, dtype: np.dtype, *picks: int) -> Step:
    return Step(formula, picks, dtype, dtype == F64)


def fold(dtype: np.dtype, combine: Any, pick: int, map: Any = reduction.value, finish: Any = None, scalars: tuple[int, ...] = (), identity: Any = reduction.zero) -> Fold:  # fmt: skip
    return Fold(reduction.ReductionFunctions(map, combine, finish, identity), (pick,), scalars, (), (kept(dtype),), (dtype,))


def mean(dtype: np.dtype, pick: int, count: int) -> Fold:
    return fold(dtype, reduction.add, pick, finish=maths.div, scalars=(count,))


def gelu(d: np.dtype) -> Tape:
    """0.5 x (1 + tanh(c (x + k x x x))), operation by operation."""
    a, m = arithmetic._add, arithmetic._mul
    picks = ((m, 1, 0), (m, 4, 0), (m, 6, 0), (m, 7, 0), (a, 0, 8), (m, 3, 9), (maths.tanh, 10), (a, 2, 11), (m, 5, 12))
    return Tape((d,), (kept(d),) * 4, tuple([step(f, d, *p) for f, *p in picks]), (13,))


GELU_NUMBERS = (0.5, 1.0, math.sqrt(2 / math.pi), 0.044715)


def layer_norm(d: np.dtype) -> Tape:
    """x, w, b, eps, n: (x - mean) rsqrt(mean((x - mean)^2) + eps) w + b, and the mean."""
    a, s, m = arithmetic._add, arithmetic._sub, arithmetic._mul
    steps = (
        mean(d, 0, 4), step(s, d, 0, 5), step(m, d, 6, 6), mean(d, 7, 4), step(a, d, 8, 3), step(maths.rsqrt, d, 9), step(m, d, 6, 10),
        step(m, d, 11, 1), step(a, d, 12, 2),
    )  # fmt: skip
    return Tape((d, d, d), (kept(d), F64), steps, (13, 5))


def cross_entropy(d: np.dtype) -> Tape:
    """z, onehot: the sum of (t - log sum exp t) onehot with t = z - max z."""
    largest = fold(d, extrema._larger, 0, identity=extrema._lowest)
    steps = (
        largest, step(arithmetic._sub, d, 0, 2), step(maths.exp, d, 3), fold(d, reduction.add, 4), step(maths.log, d, 5),
        step(arithmetic._sub, d, 3, 6), step(arithmetic._mul, d, 7, 1), fold(d, reduction.add, 8),
    )  # fmt: skip
    return Tape((d, d), (), steps, (9,))


def fused(tape: Tape, inputs: Sequence[np.ndarray], numbers: Sequence[Any], outs: Sequence[np.ndarray], reduced: int = 0) -> bool:
    """Whether the tape's own machine function has computed it."""
    arrays = (*outs, *inputs)
    arranged = arrange(np.broadcast_shapes(*[x.shape for x in arrays]), tuple([memory(x) for x in arrays]), len(outs), reduced)
    program = None if arranged is None else on_cpu.machine_code(tape, arranged.kinds)
    bound = None if program is None else program.bind(arranged, arrays, numbers)
    return bound is not None and bound()


def forget() -> None:
    """Drop the calls and programs that are known, where a test changes what the processor can do."""
    on_cpu._calls.clear()
    on_cpu.machine_code.cache_clear()


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """NaN is NaN, whatever its payload; 0 is not -0."""
    if a.dtype.kind not in "fV":
        return bool((a == b).all())
    a, b = a.astype(np.float64), b.astype(np.float64)
    return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | ((a != a) & (b != b))).all())


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    return rng.integers(-9, 9, shape).astype(dtype) if dtype.kind == "i" else rng.standard_normal(shape).astype(dtype)


UNARY = [
    maths.tanh,
    maths.exp,
    maths.sin,
    maths.asin,
    maths.neg,
    maths.abs,
    maths.floor,
    activations.sigmoid,
    activations.relu,
    activations.silu,
    arithmetic.square,
]
BINARY = [arithmetic._add, arithmetic._sub, arithmetic._mul, maths.maximum, maths.minimum]
COMPARED = [comparison._lt, comparison._eq, comparison._ge]
WHOLE = [arithmetic._add, arithmetic._mul, comparison._bitwise_xor]

FOLDS = {
    "sum": (reduction.add, reduction.value, None, reduction.zero, np.sum),
    "sum of squares": (reduction.add, sums._square, None, reduction.zero, lambda x, **k: np.sum(x * x, **k)),
    "amax": (extrema._larger, reduction.value, None, extrema._lowest, np.max),
    "amin": (extrema._smaller, reduction.value, None, extrema._highest, np.min),
    "prod": (prod._multiply, reduction.value, None, lambda s: (1,), np.prod),
}  # fmt: skip
