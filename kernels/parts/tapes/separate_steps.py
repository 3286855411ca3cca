"""Steps of a tape as kernels compute them, none with another: sums and products that no compiler contracts across, values rounded between steps.

Eager stores what each op makes, so a product of one op and the sum of the next round apart. In one kernel a compiler makes a multiply-add of them,
which rounds once; in 16 bits, too, where LLVM computes both in 16 bits first (an fma.bf16x2, whatever was rounded between). It leaves alone what PTX
says the rounding of (`mul.rn`): a step that is one operation is taken so, and a value that comes out of a longer formula and goes into a longer one
passes a sum with -0, which changes no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.half_precision.variants import half_variants
from tritensor.kernels.parts.reduction import fold_of, triton_type
from tritensor.kernels.parts.tapes.tape import Fold, Step, Tape


# --- in kernels
# PTX by hand: libdevice's own functions of these names take numbers below 1.2e-38 for 0
@triton.jit
def _in_full(a, b, IN_32: tl.constexpr, IN_64: tl.constexpr):
    """One operation of two values of 32 or 64 bits, floats rounded right away."""
    if a.dtype == tl.float64:
        y = tl.inline_asm_elementwise(IN_64, "=d,d,d", [a, b], dtype=tl.float64, is_pure=True, pack=1)
    else:
        y = tl.inline_asm_elementwise(IN_32, "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1)
    return y


@triton.jit
def _product(a, b):
    if a.dtype.is_floating() and a.dtype == b.dtype:
        y = _in_full(a, b, "mul.rn.f32 $0, $1, $2;", "mul.rn.f64 $0, $1, $2;")
    else:
        y = a * b
    return y


@triton.jit
def _sum(a, b):
    if a.dtype.is_floating() and a.dtype == b.dtype:
        y = _in_full(a, b, "add.rn.f32 $0, $1, $2;", "add.rn.f64 $0, $1, $2;")
    else:
        y = a + b
    return y


@triton.jit
def _difference(a, b):
    if a.dtype.is_floating() and a.dtype == b.dtype:
        y = _in_full(a, b, "sub.rn.f32 $0, $1, $2;", "sub.rn.f64 $0, $1, $2;")
    else:
        y = a - b
    return y


# Of 16-bit values, each pair in one instruction. It gives what the operation in float32 and a rounding give: 24 digits are twice 11 and 2 more, so that the
# second rounding changes nothing (Figueroa, 1995)
@triton.jit
def _in_pairs(a, b, TEXT: tl.constexpr, KIND: tl.constexpr, IN_32: tl.constexpr):
    a, b = a.to(KIND), b.to(KIND)
    if a.numel == 1 and b.numel == 1:  # a number, or one row's: there is no pair
        y = IN_32(a.to(tl.float32), b.to(tl.float32)).to(KIND)
    else:
        y = tl.inline_asm_elementwise(TEXT, "=r,r,r", [a, b], dtype=KIND, is_pure=True, pack=2)
    return y


@triton.jit
def _product_f16(a, b):
    return _in_pairs(a, b, "mul.rn.f16x2 $0, $1, $2;", tl.float16, _product)


@triton.jit
def _sum_f16(a, b):
    return _in_pairs(a, b, "add.rn.f16x2 $0, $1, $2;", tl.float16, _sum)


@triton.jit
def _difference_f16(a, b):
    return _in_pairs(a, b, "sub.rn.f16x2 $0, $1, $2;", tl.float16, _difference)


# of bfloat16 every GPU from sm_80 on has the multiply-add alone: a b - 0, a 1 + b, a - 1 b
@triton.jit
def _product_bf16(a, b):
    return _in_pairs(a, b, "{ .reg .b32 n; mov.b32 n, 0x80008000; fma.rn.bf16x2 $0, $1, $2, n; }", tl.bfloat16, _product)


@triton.jit
def _sum_bf16(a, b):
    return _in_pairs(a, b, "{ .reg .b32 n; mov.b32 n, 0x3f803f80; fma.rn.bf16x2 $0, $1, n, $2; }", tl.bfloat16, _sum)


@triton.jit
def _difference_bf16(a, b):
    return _in_pairs(a, b, "{ .reg .b32 n; mov.b32 n, 0xbf80bf80; fma.rn.bf16x2 $0, $2, n, $1; }", tl.bfloat16, _difference)


_SUM, _DIFFERENCE, _PRODUCT = (
    (_sum, _sum_f16, _sum_bf16),
    (_difference, _difference_f16, _difference_bf16),
    (_product, _product_f16, _product_bf16),
)


@triton.jit
def hidden(x):
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


# STEPS are the fields of Steps, S the number of one. Triton 3.6 takes no part of a tuple as a constexpr: functions get all of it and find their part
@triton.jit
def arguments(values, STEPS: tl.constexpr, S: tl.constexpr):
    """Some of the values as the formula of a step takes them: floats in the type that it computes in."""
    found = ()
    for k in tl.static_range(len(STEPS[1][S])):
        x = values[STEPS[1][S][k]]
        if x.dtype.is_floating():
            x = x.to(tl.float64 if STEPS[2] >> S & 1 else tl.float32)
        found = found + (x,)  # type: ignore[assignment]
    return found


@triton.jit
def between(y, STEPS: tl.constexpr, S: tl.constexpr):
    """What a step made as later ones find it: rounded to its type, as if stored and read again, where one takes it."""
    if STEPS[4] is not None:
        if STEPS[8] >> S & 1:
            y = read(maths.stored(y, STEPS[4][S]))
        if STEPS[5] >> S & 1:
            y = hidden(y)
    return y


# --- what a kernel is told of a tape
class Steps(NamedTuple):
    """The steps of a tape as kernels take them.

    formulas: what is called; of a fold (map, combine, its fold of a tile, finish, identity, states, scalars, numbers, whether there is a finish, types of its
    values), see Fold and ReductionFunctions.
    picks: the places of its arguments. wide: bit k says that step k computes in float64. stores: the places of the values that are results.
    kinds: the type of each step's value; None where no step takes what another makes: what stands behind it is not looked at then.
    apart: bit k says that the value of step k, all those of a fold, is hidden from the compiler. folds: bit k says that step k is a fold.
    count: how many steps there are, for kernels of rows: Triton 3.6 counts no tuple of tuples.
    rounds: bit k says that the value of step k is rounded to its type, since a later step takes it.
    """

    formulas: tuple[Any, ...]
    picks: tuple[tuple[int, ...], ...]
    wide: int
    stores: tuple[int, ...]
    kinds: tuple[Any, ...] | None = None
    apart: int = 0
    folds: int = 0
    count: int = 0
    rounds: int = 0


def told(steps: Steps) -> tuple[Any, ...]:
    """STEPS: what a kernel without folds is told of steps, of those that take nothing from each other no more than it looks at."""
    return steps[:5] if steps.kinds is None else tuple(steps)


class _Operation:
    """One operation on two arguments of a formula: what it is taken as, and the arguments' order. With more done to it, it is none."""

    def __init__(self, taken_as: tuple[Any, Any, Any], a: _Argument, b: Any) -> None:
        if type(b) is not _Argument:
            raise TypeError("more than one operation")
        self.taken_as, self.order = taken_as, (a.place, b.place)


class _Argument:
    """Stands for an argument of a formula that is read."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __add__(self, other: Any) -> _Operation:
        return _Operation(_SUM, self, other)

    def __sub__(self, other: Any) -> _Operation:
        return _Operation(_DIFFERENCE, self, other)

    def __mul__(self, other: Any) -> _Operation:
        return _Operation(_PRODUCT, self, other)


@cache
def _one_operation(formula: Any) -> tuple[tuple[Any, Any, Any], tuple[int, int]] | None:
    """What stands for a formula of one sum, difference or product of its arguments, in full and in pairs of float16 and bfloat16, and their order in
    it; None of any other formula."""
    fn = backends.body(formula)
    code = fn.__code__
    if code.co_names or any(c is not None and not isinstance(c, str) for c in code.co_consts):
        return None  # it calls something, or holds a number
    try:
        found = fn(*map(_Argument, range(code.co_argcount)))
    except TypeError:  # another operation, or more than one
        return None
    return (found.taken_as, found.order) if type(found) is _Operation else None


def _taken_as(step: Step | Fold, types: Sequence[np.dtype]) -> tuple[Any, tuple[int, ...]]:
    """What is called for a step, and with which values; `types` are those of all values."""
    if isinstance(step, Fold):
        f, states = step.functions, tuple(map(triton_type, step.states))
        nothing = tuple([v.item() if isinstance(v, np.generic) else v for v in f.identity(step.states)])
        # Triton 3.6 has no tuple with None in it
        finish = (f.combine, 0) if f.finish is None else (f.finish, 1)
        return (
            f.map,
            f.combine,
            fold_of(f.combine),
            finish[0],
            nothing,
            states,
            step.scalars,
            step.numbers,
            finish[1],
            tuple(map(triton_type, step.dtypes)),
        ), step.picks
    found = _one_operation(step.formula)
    if found is None:
        return half_variants((step.formula,), (step.dtype,), step.wide)[0], step.picks
    picks = tuple([step.picks[k] for k in found[1]])
    if step.dtype.itemsize != 2 or not dtypes.is_float(step.dtype) or step.wide:
        return found[0][0], picks
    # what is rounded to 16 bits after it met a wider value is fused with nothing
    narrow = all(types[k] == step.dtype for k in picks)
    return (found[0][1 if step.dtype == np.float16 else 2], picks) if narrow else (step.formula, step.picks)


@lru_cache(maxsize=4096)
def steps_of(tape: Tape) -> Steps:
    """The steps of a tape, each rounded as its own kernel would round, none contracted with another."""
    types, steps = tape.dtypes(), tape.steps
    makers = [-1] * (len(tape.inputs) + len(tape.numbers))  # the step that makes each value
    single = [isinstance(s, Step) and _one_operation(s.formula) is not None for s in steps]
    apart, taken = 0, set()
    for k, step in enumerate(steps):
        for place in taken_by(step):
            if (maker := makers[place]) >= 0:
                taken.add(maker)
                if not (single[k] or single[maker]) and dtypes.is_float(types[place]):
                    apart |= 1 << maker
        makers += [k] * (len(step.dtypes) if isinstance(step, Fold) else 1)
    formulas, picks = zip(*[_taken_as(s, types) for s in steps], strict=True)
    kinds = tuple([triton_type(s.dtype if isinstance(s, Step) else s.dtypes[0]) for s in steps])
    wide = sum([s.wide << k for k, s in enumerate(steps) if isinstance(s, Step)])
    folds = sum([1 << k for k, s in enumerate(steps) if isinstance(s, Fold)])
    return Steps(formulas, picks, wide, tape.stores, kinds, apart, folds, len(steps), sum([1 << k for k in taken]))


def taken_by(step: Step | Fold) -> tuple[int, ...]:
    """The places of all values that a step takes."""
    return (*step.picks, *step.scalars, *step.numbers) if isinstance(step, Fold) else step.picks
