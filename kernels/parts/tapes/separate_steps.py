"""Steps of a tape as kernels compute them, none with another: sums and products that no compiler contracts across, values rounded between steps.

Eager stores what each op makes, so a product of one op and the sum of the next round apart. In one kernel a compiler makes a multiply-add of them,
which rounds once. It leaves alone what PTX says the rounding of (`mul.rn`): a step that is one operation is taken so, and a value that comes out of a
longer formula and goes into a longer one passes a sum with -0, which changes no number.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.half_precision.variants import half_variants
from tritensor.kernels.parts.reduction import triton_type
from tritensor.kernels.parts.tapes.tape import Step, Tape


# --- in kernels
# PTX by hand: libdevice's own functions of these names take numbers below 1.2e-38 for 0
@triton.jit
def _product(a, b):
    if a.dtype == tl.float32 and b.dtype == tl.float32:
        y = tl.inline_asm_elementwise("mul.rn.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1)
    elif a.dtype == tl.float64 and b.dtype == tl.float64:
        y = tl.inline_asm_elementwise("mul.rn.f64 $0, $1, $2;", "=d,d,d", [a, b], dtype=tl.float64, is_pure=True, pack=1)
    else:
        y = a * b
    return y


@triton.jit
def _sum(a, b):
    if a.dtype == tl.float32 and b.dtype == tl.float32:
        y = tl.inline_asm_elementwise("add.rn.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1)
    elif a.dtype == tl.float64 and b.dtype == tl.float64:
        y = tl.inline_asm_elementwise("add.rn.f64 $0, $1, $2;", "=d,d,d", [a, b], dtype=tl.float64, is_pure=True, pack=1)
    else:
        y = a + b
    return y


@triton.jit
def _difference(a, b):
    if a.dtype == tl.float32 and b.dtype == tl.float32:
        y = tl.inline_asm_elementwise("sub.rn.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1)
    elif a.dtype == tl.float64 and b.dtype == tl.float64:
        y = tl.inline_asm_elementwise("sub.rn.f64 $0, $1, $2;", "=d,d,d", [a, b], dtype=tl.float64, is_pure=True, pack=1)
    else:
        y = a - b
    return y


@triton.jit
def _apart(x):
    """x as it is, which no compiler looks through."""
    if x.dtype == tl.float32:
        x = tl.inline_asm_elementwise("add.rn.f32 $0, $1, 0f80000000;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    elif x.dtype == tl.float64:
        x = tl.inline_asm_elementwise("add.rn.f64 $0, $1, 0d8000000000000000;", "=d,d", [x], dtype=tl.float64, is_pure=True, pack=1)
    return x


@triton.jit
def read(x):
    """A value as it lies in memory as one of a tape: 16-bit floats in float32, booleans as int8."""
    if x.dtype.is_floating() and x.dtype.primitive_bitwidth < 32:
        x = x.to(tl.float32)
    elif x.dtype == tl.int1:
        x = x.to(tl.int8)
    return x


@triton.jit
def arguments(values, PICKS: tl.constexpr, WIDE: tl.constexpr):
    """Some of the values as one formula takes them: floats in the type that it computes in."""
    found = ()
    for k in tl.static_range(len(PICKS)):
        x = values[PICKS[k]]
        if x.dtype.is_floating():
            x = x.to(tl.float64 if WIDE else tl.float32)
        found = found + (x,)  # type: ignore[assignment]
    return found


@triton.jit
def between(y, KIND: tl.constexpr, APART: tl.constexpr):
    """What a step made as later ones find it: rounded to KIND, as if stored and read again; None leaves it, where none takes it."""
    if KIND is not None:
        y = read(maths.stored(y, KIND))
    return _apart(y) if APART else y


# --- what a kernel is told of a tape
class Steps(NamedTuple):
    """The steps of a tape as kernels take them.

    formulas, picks: of each step what is called, and the places of its arguments. wide: bit k says that step k computes in float64. stores: the places of
    the values that are results. kinds: the type that
    each step's value is rounded to before later steps take it, None where none does, or in all where that is so of each. apart: bit k says that the
    value of step k is hidden from the compiler.
    """

    formulas: tuple[Any, ...]
    picks: tuple[tuple[int, ...], ...]
    wide: int
    stores: tuple[int, ...]
    kinds: tuple[Any, ...] | None = None
    apart: int = 0


class _Argument:
    """Stands for an argument of a formula that is read: one operation on two of them gives that operation and their order."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __add__(self, other: _Argument) -> tuple[Any, tuple[int, int]]:
        return _sum, (self.place, other.place)

    def __sub__(self, other: _Argument) -> tuple[Any, tuple[int, int]]:
        return _difference, (self.place, other.place)

    def __mul__(self, other: _Argument) -> tuple[Any, tuple[int, int]]:
        return _product, (self.place, other.place)


@cache
def _one_operation(formula: Any) -> tuple[Any, tuple[int, int]] | None:
    """The function that stands for a formula of one sum, difference or product of its arguments, and their order in it; None of any other."""
    fn = backends.body(formula)
    code = fn.__code__
    if code.co_names or any(c is not None and not isinstance(c, str) for c in code.co_consts):
        return None  # it calls something, or holds a number
    try:
        found = fn(*map(_Argument, range(code.co_argcount)))
    except TypeError:  # another operation, or more than one
        return None
    return found if isinstance(found, tuple) else None


def _computes(step: Step) -> np.dtype:
    return np.dtype(np.float64 if step.wide else np.float32)


@lru_cache(maxsize=4096)
def steps_of(tape: Tape) -> Steps:
    """The steps of a tape without folds, each rounded as its own kernel would round, none contracted with another."""
    first = len(tape.inputs) + len(tape.numbers)
    singles = [_single(s) for s in tape.steps]
    apart, taken = 0, set()
    for step, single in zip(tape.steps, singles, strict=True):
        for k in [k - first for k in step.picks if k >= first]:
            maker = tape.steps[k]
            taken.add(k)
            # an operation whose rounding is told is fused with nothing, and no type but the one that is computed in lets anything through
            if single is None and singles[k] is None and maker.dtype == _computes(maker) == _computes(step):
                apart |= 1 << k
    formulas = tuple(
        [half_variants((s.formula,), (s,), s.wide)[0] if f is None else f[0] for s, f in zip(tape.steps, singles, strict=True)]
    )
    picks = tuple([s.picks if f is None else tuple([s.picks[k] for k in f[1]]) for s, f in zip(tape.steps, singles, strict=True)])
    kinds = tuple([triton_type(s.dtype) if k in taken else None for k, s in enumerate(tape.steps)]) if taken else None
    return Steps(formulas, picks, sum(s.wide << k for k, s in enumerate(tape.steps)), tape.stores, kinds, apart)


def _single(step: Step) -> tuple[Any, tuple[int, int]] | None:
    """What stands for a step of one operation whose result is of the type that it is computed in."""
    return _one_operation(step.formula) if step.dtype == _computes(step) else None
