"""Reductions: one kernel that folds any axes of any strided arrays, its backward counterpart that spreads, and the functions that name an op."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import EmptyError
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import Blocks, blocks, count, layout, reduced, reduction_blocks, splits_of
from tritensor.kernels.parts.configs.spaces import blocks_problem, blocks_space
from tritensor.kernels.parts.launch_rules import cdiv, config_of
from tritensor.kernels.parts.templates.template_args import bound
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import Folded, Spreading, StepRecorder
from tritensor.ops.table import Op, Sample, Spec, normal_dims, op, refuse_kind
from tritensor.ops.tuning.tunables import tunable

for _name in ("reduction", "reduction_join", "spread"):
    tunable(_name, Blocks, blocks_space, blocks_problem)

CHAIN = 16  # tiles folded in sequence before their total joins the grand total: keeps the error of a sum flat


# Where the elements of a tile lie.
@triton.jit
def _offset(index, sizes, strides):
    """Sum of coordinate * stride, for a linear index into axes of the given sizes."""
    offset = index * 0
    for k in tl.static_range(len(sizes) - 1, 0, -1):
        offset += (index % sizes[k]) * strides[k]
        index = index // sizes[k]
    return offset + index * strides[0]


@triton.jit
def _bases(row, kept, strides, ALIGN: tl.constexpr, KEPT: tl.constexpr):
    """Offset of every row in every array. One axis needs no division; ALIGN is a known divisor of its stride."""
    bases = ()
    for k in tl.static_range(len(strides)):
        if KEPT[k] == 1:
            base = row
        elif len(kept) == 1:
            base = row * (strides[k][0] // ALIGN * ALIGN)
        else:
            base = _offset(row, kept, strides[k])
        bases = bases + (base,)
    return bases


@triton.jit
def _address(x, base, outer_index, outer, outer_strides, col, stride, ALIGN: tl.constexpr, KIND: tl.constexpr):
    """Pointers to a tile (rows, cols), or (rows, 1) where the array does not vary along cols (KIND 0)."""
    if len(outer) > 1:
        base = base + _offset(outer_index, outer, outer_strides)
    else:
        base = base + outer_index * (outer_strides[0] // ALIGN * ALIGN)
    if KIND == 0:
        pointers = x + base[:, None]
    elif KIND == 1:
        pointers = x + base[:, None] + col[None, :]
    else:
        pointers = x + base[:, None] + (col * stride)[None, :]
    return pointers


@triton.jit
def _read(pointers, rows_in, cols_in, whole, KIND: tl.constexpr, BRANCH: tl.constexpr):
    """A tile, 0 outside the array. BRANCH: one known to be whole is read without a mask, which would make each access narrow."""
    if KIND == 0:
        value = tl.load(pointers, mask=rows_in, other=0)
    elif BRANCH:
        if whole:
            value = tl.load(pointers)
        else:
            value = tl.load(pointers, mask=rows_in & cols_in, other=0)
    else:
        value = tl.load(pointers, mask=rows_in & cols_in, other=0)
    return value


@triton.jit
def _per_row(xs, bases, rows_in, KINDS: tl.constexpr):
    """Of every input that holds one value per row (KIND 3) that value, read once before the walk: no part of a hot loop."""
    values = ()
    for k in tl.static_range(len(xs)):
        if KINDS[k] == 3:
            value = upcast(tl.load(xs[k] + bases[k][:, None], mask=rows_in, other=0))
        else:
            value = 0
        values = values + (value,)
    return values


@triton.jit
def _tile(
    xs, per_row, bases, outer_index, outer, outer_strides, col, strides, rows_in, cols_in, whole,
    ALIGN: tl.constexpr, KINDS: tl.constexpr, BRANCH: tl.constexpr,
):  # fmt: skip
    """The tile of every input, 16-bit floats as float32."""
    values = ()
    for k in tl.static_range(len(xs)):
        if KINDS[k] == 3:
            value = per_row[k]
        else:
            pointers = _address(xs[k], bases[k], outer_index, outer, outer_strides[k], col, strides[k], ALIGN, KINDS[k])
            value = upcast(_read(pointers, rows_in, cols_in, whole, KINDS[k], BRANCH))
        values = values + (value,)
    return values


@triton.jit
def upcast(x):
    """16-bit floats as float32, everything else as it is."""
    if x.dtype.is_floating() and x.dtype.primitive_bitwidth < 32:
        x = x.to(tl.float32)
    return x


@triton.jit
def as_tuple(x, N: tl.constexpr):
    """Functions that handle one value may return it bare."""
    if N == 1:
        return (x,)
    else:
        return x


@triton.jit
def nothing(SHAPE: tl.constexpr, IDENTITY: tl.constexpr, STATES: tl.constexpr):
    """The state of no elements at all."""
    state = ()
    for k in tl.static_range(len(STATES)):
        state = state + (tl.full(SHAPE, IDENTITY[k], STATES[k]),)
    return state


@triton.jit
def mapped_state(values, index, numbers, inside, MAP: tl.constexpr, IDENTITY: tl.constexpr, STATES: tl.constexpr):
    """The state of every element of a tile; of lanes outside the array, the state of nothing."""
    if MAP is None:
        mapped = values
    else:
        mapped = as_tuple(MAP(*values, index, *numbers), len(STATES))
    state = ()
    for k in tl.static_range(len(STATES)):
        state = state + (tl.where(inside, mapped[k].to(STATES[k]), tl.full((1, 1), IDENTITY[k], STATES[k])),)
    return state


@triton.jit
def _counts(tiles, ends, tail, STATE: tl.constexpr, BN: tl.constexpr):
    """The number of elements so far in each column of tiles, (1, BN), and 1 / that: one of each tile, but of the last ones of a row only where they reach."""
    KIND: tl.constexpr = tl.float64 if tl.float64 == STATE else tl.float32
    reached = (tl.arange(0, BN) < tail)[None, :]
    every, some = tiles.to(KIND), (tiles - ends).to(KIND)
    return tl.where(reached, every, some), tl.where(reached, 1 / every, 1 / tl.maximum(some, 1))


# y[row] = finish(fold over (o, c) of map(x[row, o, c])), fold by the associative combine
@triton.jit(do_not_specialize=["kept", "outer", "tiles", "tiles_per_program", "splits"])
def _reduce_kernel(
    xs, ys, kept, kept_strides, outer, outer_strides, inner, inner_strides, rows, tiles, tiles_per_program, splits, scalars, numbers,
    MAP: tl.constexpr, COMBINE: tl.constexpr, WALK: tl.constexpr, FOLD: tl.constexpr, FINISH: tl.constexpr, IDENTITY: tl.constexpr, STATES: tl.constexpr,
    KEPT: tl.constexpr, INNER: tl.constexpr, ALIGN: tl.constexpr, BRANCH: tl.constexpr, LONG_OFFSETS: tl.constexpr, CHAIN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    split = pid % splits
    row = (pid // splits) * BM + tl.arange(0, BM)
    index_type: tl.constexpr = tl.int64 if LONG_OFFSETS else tl.int32
    # 64-bit offsets cost registers: only arrays that reach beyond 2^31 elements have them
    row = row.to(index_type)
    rows_in = (row < rows)[:, None]
    inner = inner // ALIGN * ALIGN
    tiles_inner = tl.cdiv(inner, BN)
    bases = _bases(row, kept, kept_strides, ALIGN, KEPT)
    begin = split * tiles_per_program
    end = tl.minimum(begin + tiles_per_program, tiles)
    per_row = _per_row(xs, bases, rows_in, INNER)
    state = nothing((BM, BN), IDENTITY, STATES)
    at = begin // tl.maximum(tiles_inner, 1)
    start = (begin - at * tiles_inner) * BN
    ends = 0
    # a sum of CHAIN tiles joins the grand total: no element is added to a number much larger than it more often than that
    for link in range(begin, end, CHAIN):
        part = state if WALK is not None else nothing((BM, BN), IDENTITY, STATES)
        for t in range(link, tl.minimum(link + CHAIN, end)):
            col = start + tl.arange(0, BN)
            cols_in = (col < inner)[None, :]
            whole = (start + BN <= inner) & ((pid // splits + 1) * BM <= rows)
            o = at.to(index_type)
            col = col.to(index_type)
            values = _tile(
                xs, per_row, bases, o, outer, outer_strides, col, inner_strides, rows_in, cols_in, whole, ALIGN, INNER, BRANCH
            )  # (BM, BN)
            index = tl.broadcast_to((o * inner + col)[None, :], (BM, BN))
            new = mapped_state(values, index, numbers, rows_in & cols_in, MAP, IDENTITY, STATES)
            last = (start + BN >= inner).to(tl.int32)
            ends += last
            # a mean that moves with each element has no use for chains, whose totals it would weigh anew
            if WALK is not None:
                so_far, share = _counts(t + 1 - begin, ends, inner - (tiles_inner - 1) * BN, STATES[0], BN)
                part = as_tuple(WALK(*part, *new, so_far, share), len(STATES))
            else:
                part = as_tuple(COMBINE(*part, *new), len(STATES))
            at += last
            start = (start + BN) * (1 - last)
        state = part if WALK is not None else as_tuple(COMBINE(*state, *part), len(STATES))
    # across the tile's columns once, after the walk: inside it every step would cross threads
    state = FOLD(state)  # (BM,)
    if FINISH is not None:
        state = as_tuple(FINISH(*state, *scalars), len(ys))
    for k in tl.static_range(len(ys)):
        at = split.to(index_type) * rows + row
        tl.store(ys[k] + at, state[k].to(ys[k].dtype.element_ty), mask=row < rows)


# y[row, o, c] = formula(x[row, o, c], ...), every array with its own strides, 0 where it holds one value per row
@triton.jit(do_not_specialize=["outer", "inner", "tiles"])
def _spread_kernel(
    xs, ys, kept, kept_strides, outer, outer_strides, inner, inner_strides, rows, tiles, scalars,
    FORMULA: tl.constexpr, KEPT: tl.constexpr, INNER: tl.constexpr, ALIGN: tl.constexpr, LONG_OFFSETS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    row = (pid // tiles) * BM + tl.arange(0, BM)
    t = pid % tiles
    index_type: tl.constexpr = tl.int64 if LONG_OFFSETS else tl.int32
    row = row.to(index_type)
    rows_in = (row < rows)[:, None]
    inner = inner // ALIGN * ALIGN
    tiles_inner = tl.cdiv(inner, BN)
    o = t // tiles_inner
    col = (t - o * tiles_inner) * BN + tl.arange(0, BN)
    cols_in = (col < inner)[None, :]
    o = o.to(index_type)
    col = col.to(index_type)
    bases = _bases(row, kept, kept_strides, ALIGN, KEPT)
    values = _tile(xs, (), bases, o, outer, outer_strides, col, inner_strides, rows_in, cols_in, False, ALIGN, INNER, False)
    index = tl.broadcast_to((o * inner + col)[None, :], (BM, BN))
    found = as_tuple(FORMULA(*values, index, *scalars), len(ys))
    for k in tl.static_range(len(ys)):
        pointers = _address(
            ys[k], bases[len(xs) + k], o, outer, outer_strides[len(xs) + k], col, inner_strides[len(xs) + k], ALIGN, INNER[len(xs) + k]
        )
        value = tl.broadcast_to(found[k], (BM, BN)).to(ys[k].dtype.element_ty)
        tl.store(tl.broadcast_to(pointers, (BM, BN)), value, mask=rows_in & cols_in)


def _fold(state):  # type: ignore[no-untyped-def]
    return tl.reduce(state, 1, combine)  # type: ignore[name-defined]  # noqa: F821


@cache
def fold_of(combine: Any) -> Any:
    """`tl.reduce` bound to one combine function."""
    return bound(_fold, combine.__name__, combine=combine)


# The functions of a plain sum.
@triton.jit
def value(x, index):
    return x


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def add_pairs(a, b, a_, b_):
    return a + a_, b + b_


def zero(states: tuple[np.dtype, ...]) -> tuple[int, ...]:
    return (0,) * len(states)


class ReductionFunctions(NamedTuple):
    """A reduction in `@triton.jit` functions over states (one value, or a tuple of them).

    map: `(*inputs, index, *numbers) -> state` of one element; `index` is its place among the reduced ones, `numbers` are what `fold` was given.
    combine: `(*state, *state) -> state`, associative.
    finish: `(*state, *scalars) -> output(s)`, None where the state is the output.
    identity: `(numpy dtypes of the state) -> numbers`, the state of nothing.
    walk: `(*state, *state of one element, count, share) -> state`, as combine where the element comes after all of the first: `count`, (1, columns), are
        those of its column so far, it included, a float, and `share` is 1 / count. None: combine, in chains of CHAIN, which a walk has not.
    """

    map: Any
    combine: Any
    finish: Any
    identity: Callable[[tuple[np.dtype, ...]], tuple[Any, ...]]
    walk: Any = None


_JOINED = 16  # tiles of totals that one program joins: some 100 kB, which takes it less time than another launch


def fold(
    functions: ReductionFunctions, xs: Sequence[CudaArray], dims: tuple[int, ...], ys: Sequence[CudaArray], states: tuple[np.dtype, ...],
    scalars: tuple[Any, ...] = (), ordered: bool = False, numbers: tuple[Any, ...] = (),
) -> None:  # fmt: skip
    """Reduce `dims` (sorted) of inputs of one shape into C-ordered outputs; in two launches where rows are few and long."""
    if type(here.recorder) is StepRecorder:
        here.recorder.steps.append(Folded(functions, tuple(xs), dims, tuple(ys), states, scalars, ordered, numbers))
        return
    view = layout(xs[0].shape, dims, tuple(x.strides for x in xs), 0, ordered)
    if view.rows == 0:
        return
    key = (view.rows, view.inner, view.kept_kinds[0] == 1 and view.inner_kinds[0] != 1, sum(d.itemsize for d in states))
    name = "reduction" if functions.map is not None else "reduction_join"
    tile_rows, tile_columns, shared = config_of(name, (*key, xs[0].dtype), Blocks(*reduction_blocks(*key)))
    tiles = 0 if view.count == 0 else math.prod(view.outer) * cdiv(view.inner, tile_columns)
    row_blocks = cdiv(view.rows, tile_rows)
    # few long rows: several programs share each, and a second launch joins their totals, which are so few that a third would cost more than it spares
    alone = 1 if functions.map is None and tiles <= _JOINED else 0
    splits = min(shared, max(tiles, 1)) or alone or splits_of(row_blocks, tiles, tile_rows * tile_columns)
    per_program = cdiv(tiles, splits)
    splits = cdiv(tiles, per_program) if tiles else 1
    # Of nothing there is no value per row either, whatever the strides: it must not be read.
    kinds = tuple(
        3 if k == 0 and view.count and not any(steps) else k for k, steps in zip(view.inner_kinds, view.outer_strides, strict=True)
    )
    targets = tuple(ys) if splits == 1 else tuple(allocate((splits, view.rows), d, xs[0]) for d in states)
    launch(
        _reduce_kernel, (row_blocks * splits,), tuple(xs), targets, view.kept, view.kept_strides, view.outer, view.outer_strides, view.inner,
        view.inner_strides, view.rows, tiles, per_program, splits, scalars if splits == 1 else (), numbers, MAP=functions.map, COMBINE=functions.combine,
        WALK=functions.walk,
        FOLD=fold_of(functions.combine), FINISH=functions.finish if splits == 1 else None, IDENTITY=functions.identity(states),
        STATES=tuple(triton_type(d) for d in states), KEPT=view.kept_kinds, INNER=kinds, ALIGN=view.align,
        BRANCH=view.rows == 1 and len(view.outer) == 1, LONG_OFFSETS=view.long_offsets, CHAIN=CHAIN, BM=tile_rows, BN=tile_columns,
    )  # fmt: skip
    # the totals of all splits, in a fixed order: results repeat bit for bit
    if splits > 1:
        fold(ReductionFunctions(None, functions.combine, functions.finish, functions.identity), targets, (0,), ys, states, scalars)


def spread(
    formula: Any, xs: Sequence[CudaArray], dims: tuple[int, ...], ys: Sequence[CudaArray], scalars: tuple[Any, ...] = (),
    ordered: bool = False,
) -> None:  # fmt: skip
    """The counterpart of `fold`: `ys[...] = formula(*xs, index, *scalars)` for inputs of one shape, expanded where they hold one value per row."""
    if type(here.recorder) is StepRecorder:
        here.recorder.steps.append(Spreading(formula, tuple(xs), dims, tuple(ys), scalars, ordered))
        return
    arrays = (*xs, *ys)
    view = layout(ys[0].shape, dims, tuple(a.strides for a in arrays), len(xs), ordered)
    # a grid of no programs is not launched
    if view.rows == 0 or view.count == 0:
        return
    key = (view.rows, view.inner, view.kept_kinds[len(xs)] == 1 and view.inner_kinds[len(xs)] != 1, max(ys[0].dtype.itemsize, 4))
    tile_rows, tile_columns, _ = config_of("spread", (*key, ys[0].dtype), Blocks(*blocks(*key)))
    tiles = math.prod(view.outer) * cdiv(view.inner, tile_columns)
    launch(
        _spread_kernel, (cdiv(view.rows, tile_rows) * tiles,), tuple(xs), tuple(ys), view.kept, view.kept_strides, view.outer, view.outer_strides,
        view.inner, view.inner_strides, view.rows, tiles, scalars, FORMULA=formula, KEPT=view.kept_kinds, INNER=view.inner_kinds,
        ALIGN=view.align, LONG_OFFSETS=view.long_offsets, BM=tile_rows, BN=tile_columns,
    )  # fmt: skip


@cache
def triton_type(dtype: np.dtype) -> Any:
    """A type as Triton names it."""
    return tl.int1 if dtype == np.bool_ else getattr(tl, dtypes.of(dtype).name)


# Refusals that all reductions share.
def refuse_empty(name: str, shape: tuple[int, ...], dim: tuple[int, ...], what: str) -> None:
    """Raise EmptyError where nothing is left to choose from."""
    for a in dim:
        if shape[a] == 0:
            raise EmptyError(f"{name}: x {shape} has no element along dim {a}, and there is no {what} of nothing; give it at least one")


ORDERED = ("bool", "uint", "int", "float")
NUMBERS = ("bool", "uint", "int", "float", "complex")


def same_state(dtype: np.dtype) -> tuple[np.dtype, ...]:
    """One value, kept in the type that sums are kept in."""
    return (dtypes.accumulator(dtype),)


def same_result(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return (dtype,)


def no_scalars(count: int) -> tuple[Any, ...]:
    return ()


def reduction(
    name: str, reference: Callable[..., Any], *, map: Any, combine: Any, finish: Any,
    identity: Callable[[tuple[np.dtype, ...]], tuple[Any, ...]], rule: Any, backward: Any = None, cpu: Any = None, cpu_backward: Any = None,
    samples: Callable[[np.random.Generator], Sequence[Sample]], state: Callable[..., tuple[np.dtype, ...]] = same_state,
    result: Callable[[np.dtype], tuple[np.dtype, ...]] = same_result, scalars: Callable[..., tuple[Any, ...]] = no_scalars,
    kinds: tuple[str, ...] = ORDERED, needs_element: str = "", ordered: bool = False, outputs: tuple[str, ...] = ("y",),
    forward: Any = None, walk: Any = None, **more: Any,
) -> Op:  # fmt: skip
    """Register a reduction `(x, *, dim, ..., keepdim)`. It is five functions: map, combine, finish, identity, rule.

    Args:
        name, reference, backward, cpu, cpu_backward, samples, outputs, more: as `op(...)` takes them, `public` and `replace` among them.
        map, combine, finish, identity, walk: see `ReductionFunctions`.
        rule: the gradient; None for a reduction without one.
        state: numpy dtypes of the state for an input dtype; result: those of the outputs.
        scalars: `(count, **attributes other than dim and keepdim)` -> what `finish` gets after the state.
        kinds: kinds of dtype that it takes (DTypeError for the others).
        needs_element: what does not exist over no elements, such as "largest" (ShapeError then).
        ordered: `map` uses the index: elements are numbered in C order, and `state` gets how many there are after the dtype.
        forward: one of its own, for a map that takes more than x; the functions are not looked at then.
    """
    functions = ReductionFunctions(map, combine, finish, identity, walk)

    def shape(x: Any, *, dim: Any, keepdim: bool = False, **rest: Any) -> Any:
        dims = normal_dims(name, dim, len(x.shape))
        refuse_kind(name, x.dtype, kinds)
        if needs_element and 0 in x.shape:
            refuse_empty(name, x.shape, dims, needs_element)
        kept = reduced(x.shape, dims, keepdim)
        found = tuple(Spec(kept, d) for d in result(x.dtype))
        return found if len(found) > 1 else found[0]

    def folded(x: CudaArray, *, dim: Any, keepdim: bool = False, **rest: Any) -> Any:
        dims = normal_dims(name, dim, len(x.shape))
        kept = reduced(x.shape, dims, keepdim)
        ys = tuple(allocate(kept, d, x) for d in result(x.dtype))
        n = count(x.shape, dims)
        states = state(x.dtype, n) if ordered else state(x.dtype)
        fold(functions, (x,), dims, ys, states, scalars(n, **rest), ordered)
        return ys if len(ys) > 1 else ys[0]

    return op(
        name, reference, cpu=cpu, shape=shape, forward=forward or folded, rule=rule, backward=backward, cpu_backward=cpu_backward,
        samples=samples, outputs=outputs, differentiable=rule is not None, **more,
    )  # fmt: skip
