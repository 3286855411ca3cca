"""The epilogue of a matrix product: a tape over each element, its bias added, before it is stored."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.tapes.separate_steps import Steps, arguments, between, read, steps_of, told
from tritensor.kernels.parts.tapes.tape import Step, Tape
from tritensor.kernels.parts.view_arithmetic import merge_axes
from tritensor.ops.array import CudaArray


# --- in kernels
# One operand for a tile: KIND is 1 where it varies along rows, and 2 more where its columns lie side by side, or 4 more; 8: it lies as c does. `at` and
# `masks` as apply_epilogue has them; strides: along rows' axes, innermost first as their sizes, then along columns
@triton.jit
def _operand(x, at, masks, sizes, strides, KIND: tl.constexpr, ONES: tl.constexpr):
    if KIND == 8:
        value = tl.load(x + at[0] + at[1] + at[2], mask=masks[2], other=0)
    elif KIND == 0:
        value = tl.broadcast_to(tl.load(x), ONES)
    else:
        if KIND & 1:
            left = at[3]
            for d in tl.static_range(len(sizes) - 1):
                x += left % sizes[d] * strides[d]
                left = left // sizes[d]
            x += left * strides[len(sizes) - 1]
        if KIND > 1:
            x += at[4] if KIND & 2 else at[4] * strides[len(sizes)]
        value = tl.load(x, mask=masks[2] if KIND & 1 and KIND > 1 else masks[0] if KIND & 1 else masks[1], other=0)
    return read(value)


@triton.jit
def _with_operands(values, ins, at, masks, sizes, strides, KINDS: tl.constexpr, STEP: tl.constexpr, ONES: tl.constexpr):
    """The values with those operands that step STEP is the first to take: loaded before, they would take registers."""
    found = (values[0],)
    for i in tl.static_range(len(values) - 1):
        if i < len(ins):
            if KINDS[i] >> 4 == STEP:
                found = found + (_operand(ins[i], at, masks, sizes, strides[i], KINDS[i] & 15, ONES),)  # type: ignore[assignment]
            else:
                found = found + (values[1 + i],)  # type: ignore[assignment]
        else:
            found = found + (values[1 + i],)  # type: ignore[assignment]
    return found


@triton.jit
def _store_beside(outs, value, tile, at, masks, STEPS: tl.constexpr, PLACE: tl.constexpr):
    """Value number PLACE, where results beside c are it; tile: one of c's shape."""
    for o in tl.static_range(len(outs)):
        if STEPS[3][o + 1] == PLACE:
            y = maths.stored(tl.broadcast_to(value, tile.shape), outs[o].dtype.element_ty)
            tl.store(outs[o] + at[0] + at[1] + at[2], y, mask=masks[2])


# A tile z of the product as c gets it, of type TO; results beside c are written. The values of the tape are z, operands, numbers, then what each step makes
# (see Steps). at: c's elements lie at first + down + across, where rows' and columns' shares come apart, so that addresses are sums of few; then the numbers
# of rows, counted over all matrices, and of columns. masks: of rows, of columns, of both. KINDS: see _operand, and 16 times the step that is the first to
# take it. more: see Given
@triton.jit
def apply_epilogue(z, at, masks, more, STEPS: tl.constexpr, KINDS: tl.constexpr, TO: tl.constexpr):
    ones: tl.constexpr = (1,) * len(z.shape)
    values = (z,)
    for _ in tl.static_range(len(more[0])):
        values = values + (0,)  # type: ignore[assignment]
    for i in tl.static_range(len(more[2])):
        values = values + (tl.broadcast_to(more[2][i], ones),)  # type: ignore[assignment]
    _store_beside(more[1], z, z, at, masks, STEPS, 0)
    first: tl.constexpr = 1 + len(more[0]) + len(more[2])
    for s in tl.static_range(len(STEPS[0])):
        values = _with_operands(values, more[0], at, masks, more[3], more[4], KINDS, s, ones)
        y = between(STEPS[0][s](*arguments(values, STEPS, s)), STEPS, s)
        _store_beside(more[1], y, z, at, masks, STEPS, first + s)
        values = values + (y,)  # type: ignore[assignment]
    return maths.stored(tl.broadcast_to(values[STEPS[3][0]], z.shape), TO)


@triton.jit
def _rounded(z):
    return z


@triton.jit
def _scaled(z, scale):
    return z * scale


@triton.jit
def _added(z, residual):
    return z + residual


# --- host
class Given(NamedTuple):
    """An epilogue as kernels take it.

    steps, kinds: STEPS and KINDS of apply_epilogue. more: operands, results beside c, numbers, sizes of rows' axes, strides of each operand. None of nothing.
    product: the type that the product by itself has, where it is to be cut as it is without an epilogue, so that its sums have the same bits; else None.
    """

    steps: tuple[Any, ...] | None = None
    kinds: tuple[int, ...] | None = None
    more: tuple[Any, ...] | None = None
    product: np.dtype | None = None


PLAIN = Given()


class Epilogue(NamedTuple):
    """c = activation(z) * scale + residual of a product z with its bias, nothing rounded between: the tape of so many steps.

    activation: a jitted formula of one value, of float32 where elements have 16 bits; None leaves z. residual: an array like c, in C order.
    kept: one in which z is stored, rounded, for the activation's gradient.
    """

    activation: Any = None
    scale: float = 1.0
    residual: CudaArray | None = None
    kept: CudaArray | None = None

    @property
    def form(self) -> str:
        """What of it there is, for the key of a config."""
        if self is NOTHING:  # most products
            return ""
        parts = (("act", self.activation), ("res", self.residual), ("kept", self.kept), ("scale", self.scale != 1))
        return "".join([f" {name}" for name, there in parts if there])

    def given(self, c: CudaArray) -> Given:
        """As kernels take it, for a result c."""
        if self is NOTHING:
            return PLAIN
        activation, scale, residual, kept = self
        wide, scaled, added = c.dtype.itemsize == 8, scale != 1, residual is not None
        if activation is None and kept is None and not (scaled or added):
            return PLAIN
        numbers = (np.float64(scale) if wide else float(scale),) if scaled else ()
        steps = _short(activation, scaled, added, kept is not None, wide)
        more = ((residual,) if added else (), () if kept is None else (kept,), numbers, (), ((),) * added)
        return Given(steps, (8 + 16 * (len(steps[0]) - 1),) * added, more)


NOTHING = Epilogue()


@lru_cache(maxsize=256)
def _short(activation: Any, scaled: bool, added: bool, kept: bool, wide: bool) -> tuple[Any, ...]:
    """The steps of an Epilogue as one formula would compute them."""
    last, place = 0, 1 + added + scaled
    formulas, picks = [], []
    for formula, there, *others in ((activation, activation is not None), (_scaled, scaled, 1 + added), (_added, added, 1)):
        if there:
            formulas.append(formula)
            picks.append((last, *others))
            last, place = place, place + 1
    return told(Steps(tuple(formulas), tuple(picks), (1 << len(formulas)) - 1 if wide else 0, (last, 0) if kept else (last,)))


class Separate(NamedTuple):
    """A tape over a product's result: every step has the bits of its own kernel, and the product, value 0, is rounded to its type first.

    tape: without folds. inputs: arrays for its other inputs, which broadcast to the results' shape, any strides. numbers: as kernels get them. outs: C-ordered
    arrays of one shape, one for each of its stores; the first has the memory of what gemm calls c.
    """

    tape: Tape
    inputs: tuple[CudaArray, ...]
    numbers: tuple[Any, ...]
    outs: tuple[CudaArray, ...]

    @property
    def form(self) -> str:
        """Nothing: the config is that of the product by itself."""
        return ""

    def given(self, c: CudaArray) -> Given:
        """As kernels take it, for a result c."""
        tape, inputs, numbers, outs = self
        shape, n = outs[0].shape, c.shape[-1]
        if shape[-1:] != (n,):  # the product of a matrix and a vector, whose columns are one
            shape, inputs = (*shape, 1), tuple([_column(x, shape) for x in inputs])
        kinds, sizes, strides = _lie(shape, tuple([(x.shape, x.strides) for x in inputs]))
        steps, firsts = _separate(tape)
        kinds = tuple([kind + 16 * first for kind, first in zip(kinds, firsts, strict=True)])
        return Given(steps, kinds, (inputs, outs[1:], numbers, sizes, strides), tape.inputs[0])


def _column(x: CudaArray, shape: tuple[int, ...]) -> CudaArray:
    """x broadcast to a shape, with one column."""
    x = x.expand(shape)
    return x.as_strided((*shape, 1), (*x.strides, 0), 0)


@lru_cache(maxsize=4096)
def _lie(
    shape: tuple[int, ...], layouts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """How operands of these shapes and strides lie over a result in C order: KINDS, sizes of rows' axes and strides as _operand takes them."""
    for k, (own, _) in enumerate(layouts, 1):
        if len(own) > len(shape) or any([n not in (1, full) for n, full in zip(own[::-1], shape[::-1], strict=False)]):
            raise ShapeError(f"product: operand {k} is {own}, which does not broadcast to the results' {shape}; give a view that does")
    dense = contiguous_strides(shape)
    expanded = [
        (0,) * (len(shape) - len(own)) + tuple([0 if n == 1 else s for n, s in zip(own, steps, strict=True)]) for own, steps in layouts
    ]
    alike = [all([s == d for s, d, n in zip(steps, dense, shape, strict=True) if n > 1]) for steps in expanded]
    apart = [steps for steps, like in zip(expanded, alike, strict=True) if not like]
    sizes, merged = merge_axes(shape[:-1], [steps[:-1] for steps in apart])
    rest = iter(merged)
    strides = tuple([() if like else (*next(rest)[::-1], steps[-1]) for steps, like in zip(expanded, alike, strict=True)])
    kinds = tuple(
        [8 if like else int(any(s[:-1])) + (0 if s[-1] == 0 else 2 if s[-1] == 1 else 4) for s, like in zip(strides, alike, strict=True)]
    )
    return kinds, sizes[::-1], strides


@lru_cache(maxsize=4096)
def _separate(tape: Tape) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The steps of a tape over a product, which is rounded by a step of its own before them, and which is the first to take each operand."""
    kind, first = tape.inputs[0], len(tape.inputs) + len(tape.numbers)

    def place(k: int) -> int:
        return first if k == 0 else k + (k >= first)

    steps = [
        Step(_rounded, (0,), kind, kind == np.float64),
        *[Step(s.formula, tuple(map(place, s.picks)), s.dtype, s.wide) for s in tape.steps if isinstance(s, Step)],
    ]
    found = steps_of(Tape(tape.inputs, tape.numbers, tuple(steps), tuple(map(place, tape.stores))))
    firsts = tuple([next((k for k, s in enumerate(steps) if i in s.picks), len(steps)) for i in range(1, len(tape.inputs))])
    # what a product's sums end with is no product, which a compiler would contract with the next step's sum
    return told(found._replace(apart=found.apart & ~1)), firsts
