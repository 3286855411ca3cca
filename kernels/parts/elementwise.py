"""Elementwise ops: one kernel for all of them, and `elementwise(...)`, which makes a whole op of a formula and its gradients."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.thread_state import here
from tritensor.kernels.parts import backends, formula_llvm, maths
from tritensor.kernels.parts.allocation import allocate_result
from tritensor.kernels.parts.configs.element_tiles import FEW, LARGE, SMALL, ElementTile, Heavy
from tritensor.kernels.parts.configs.element_tiles import HEAVY as HEAVY
from tritensor.kernels.parts.cpu import blocks
from tritensor.kernels.parts.half_precision.variants import half_variants
from tritensor.kernels.parts.launch_rules import config_of
from tritensor.kernels.parts.pointwise_samples import ANYWHERE, Domain, sample_calls, timed_calls
from tritensor.kernels.parts.view_arithmetic import merge_axes
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import Pointwise, StepRecorder
from tritensor.ops.table import FLOATS, Op, Sample, Spec, Work, broadcast, op
from tritensor.ops.table.formula_checks import as_tuple, refuse_formulas
from tritensor.ops.table.shape_rules import refuse_kind
from tritensor.ops.table.signature import signature


@triton.jit
def _coordinates(row, sizes):
    """Coordinates of a row number along every axis but the last, innermost first."""
    found = ()
    for d in tl.static_range(len(sizes) - 1):
        if d == len(sizes) - 2:
            found = found + (row,)  # type: ignore[assignment]
        else:
            found = found + (row % sizes[len(sizes) - 2 - d],)  # type: ignore[assignment]
            row = row // sizes[len(sizes) - 2 - d]
    return found


@triton.jit
def _offset(row, col, coordinates, strides, LAST: tl.constexpr):
    """sum of coordinate * stride. LAST tells what the compiler must know of the last axis: 0 it is broadcast, 1 its stride
    is 1, 2 any other, 3 any other, but the axis before it has stride 1."""
    offset = tl.zeros_like(row)  # (rows, 1)
    for d in tl.static_range(len(strides) - 1):
        if d == 0 and LAST == 3:
            offset += coordinates[d]
        else:
            offset += coordinates[d] * strides[len(strides) - 2 - d]
    if LAST == 1:
        offset = offset + col  # (rows, cols)
    elif LAST != 0:
        offset = offset + col * strides[len(strides) - 1]
    return offset


@triton.jit
def _values(ins, scalars, row, col, coordinates, rows, cols, strides, first, LAST: tl.constexpr, COMPUTE: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """Every operand's tile, floats widened to COMPUTE and booleans to int8, then the scalars."""
    found = ()
    for i in tl.static_range(len(ins)):
        at = ins[i] + _offset(row, col, coordinates, strides[first + i], LAST[first + i])
        if MASKED:
            mask = (row < rows) if LAST[first + i] == 0 else (row < rows) & (col < cols)
            x = tl.load(at, mask=mask, other=1)
        else:
            x = tl.load(at)
        if x.dtype.is_floating():
            x = x.to(COMPUTE)
        elif x.dtype == tl.int1:
            x = x.to(tl.int8)
        found = found + (x,)  # type: ignore[assignment]
    for i in tl.static_range(len(scalars)):
        found = found + (tl.broadcast_to(scalars[i], (1, 1)),)  # type: ignore[assignment]
    return found


@triton.jit
def _tile(
    outs, ins, scalars, row, col, rows, sizes, strides,
    FORMULAS: tl.constexpr, PICKS: tl.constexpr, LAST: tl.constexpr, COMPUTE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    cols = sizes[len(sizes) - 1]
    coordinates = _coordinates(row, sizes)
    values = _values(ins, scalars, row, col, coordinates, rows, cols, strides, len(outs), LAST, COMPUTE, MASKED)
    for o in tl.static_range(len(outs)):
        args = ()
        for k in tl.static_range(len(PICKS[o])):
            args = args + (values[PICKS[o][k]],)  # type: ignore[assignment]
        y = FORMULAS[o](*args)
        y = tl.broadcast_to(maths.stored(y, outs[o].dtype.element_ty), (ROWS, COLS))
        at = outs[o] + _offset(row, col, coordinates, strides[o], LAST[o])
        if MASKED:
            tl.store(at, y, mask=(row < rows) & (col < cols))
        else:
            tl.store(at, y)


# outs[o][i] = FORMULAS[o](operand[i] for each operand it picks), over axes collapsed as far as all strides allow
@triton.jit
def _kernel(
    outs, ins, scalars, rows, sizes, strides,
    FORMULAS: tl.constexpr, PICKS: tl.constexpr, LAST: tl.constexpr, COMPUTE: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    if LONG_OFFSETS:
        program = program.to(tl.int64)
    cols = sizes[len(sizes) - 1]
    top, left = 0, program * COLS
    if len(sizes) > 1:  # for one row a division would cost as much as the rest
        across = tl.cdiv(cols, COLS)
        top, left = program // across * ROWS, program % across * COLS
    row = top + tl.arange(0, ROWS)[:, None]  # (ROWS, 1)
    col = left + tl.arange(0, COLS)[None, :]  # (1, COLS)
    # A mask with a bound that does not divide by 16 makes every access scalar: only the edge pays for it.
    if (top + ROWS <= rows) & (left + COLS <= cols):
        _tile(outs, ins, scalars, row, col, rows, sizes, strides, FORMULAS, PICKS, LAST, COMPUTE, ROWS, COLS, False)
    else:
        _tile(outs, ins, scalars, row, col, rows, sizes, strides, FORMULAS, PICKS, LAST, COMPUTE, ROWS, COLS, True)


class Plan(NamedTuple):
    """A call cut into tiles: collapsed sizes, strides of every array over them, what is known of last strides, the tile."""

    grid: tuple[int]
    rows: int
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    long_offsets: bool
    tile: tuple[int, int]
    crossed: bool


def collapse(shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merge neighbouring axes that every array steps through evenly, and drop axes of size 1; at least one axis is left."""
    sizes, merged = merge_axes(shape, strides)
    return (sizes, tuple(merged)) if sizes else ((1,), ((1,),) * len(strides))


def _expanded(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """An array's strides over the broadcast shape."""
    lead = len(shape) - len(own)
    return (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(own, strides, strict=True))


def _tile_shape(rows: int, cols: int, crossed: bool, large: int = LARGE, exact: int = 0) -> tuple[int, int]:
    """Rows and columns of a tile, of `exact` elements where that is not 0. `crossed`: some array is contiguous along the rows, so that a square
    tile serves both ways."""
    total = exact or (SMALL if rows * cols <= FEW else large)
    if rows == 1:
        return 1, total
    across = total
    if crossed:
        across = 32 if total >= LARGE else 16
    else:
        while across > 16 and -(-cols // across) * across > 1.25 * cols:
            across //= 2
    across = min(across, triton.next_power_of_2(cols))
    return min(total // across, triton.next_power_of_2(rows)), across


@lru_cache(maxsize=4096)
def _plan(shape: tuple[int, ...], layouts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], large: int = LARGE, exact: int = 0) -> Plan:
    """The plan of a call with result `shape` and arrays of these (shape, strides), in tiles of `large` elements where there are many, of `exact`
    whatever there is where that is not 0."""
    expanded = [_expanded(shape, own, steps) for own, steps in layouts]
    # axes as the result lies, so that it is written along memory
    order = sorted(range(len(shape)), key=lambda d: -abs(expanded[0][d]))
    sizes, strides = collapse(tuple([shape[d] for d in order]), [tuple([steps[d] for d in order]) for steps in expanded])
    cols = sizes[-1]
    rows = math.prod(sizes[:-1])
    crossed = len(sizes) > 1 and any(s[-2] == 1 and s[-1] != 0 for s in strides)
    tile = _tile_shape(rows, cols, crossed, large, exact)
    reach = max(sum(abs(step) * (size - 1) for step, size in zip(s, sizes, strict=True)) for s in strides)
    grid = (-(-rows // tile[0]) * -(-cols // tile[1]),)
    long_offsets = max(reach, rows * cols) >= 2**31 - 2 * max(LARGE, exact)
    last = tuple(s[-1] if s[-1] in (0, 1) else 3 if len(s) > 1 and s[-2] == 1 else 2 for s in strides)
    return Plan(grid, rows, sizes, strides, last, long_offsets, tile, crossed)


def scalar(value: Any, dtype: np.dtype) -> Any:
    """A Python number as the kernel gets it, for arrays of `dtype`: 16-bit floats meet scalars in float32."""
    d = dtypes.of(dtype)
    if d.kind in ("float", "float8"):
        return np.float64(value) if d.itemsize == 8 else float(value)
    return np.int8(bool(value)) if d.kind == "bool" else dtype.type(value)


def run(
    formulas: Sequence[Any], picks: Sequence[Any], operands: Sequence[Any], outs: Sequence[CudaArray], scalars_as: np.dtype,
    heavy: Heavy = None,
) -> None:  # fmt: skip
    """outs[o] = formulas[o](operands[k] for k in picks[o]), in one launch; operands are CudaArrays, broadcast, and numbers. `heavy`: see elementwise."""
    if type(here.recorder) is StepRecorder:
        here.recorder.steps.append(_step(formulas, picks, operands, outs, scalars_as))
        return
    shape = outs[0].shape
    if 0 in shape:
        return
    arrays: list[CudaArray] = []
    numbers: list[Any] = []
    double = bool(scalars_as == np.float64)
    for x in operands:
        if isinstance(x, CudaArray):
            arrays.append(x)
            double |= x.dtype == np.float64
        else:
            numbers.append(scalar(x, scalars_as))
    if len(numbers) and len(arrays):  # the kernel sees arrays first
        seen_arrays, seen_numbers, order = 0, len(arrays), []
        for x in operands:
            if isinstance(x, CudaArray):
                order.append(seen_arrays)
                seen_arrays += 1
            else:
                order.append(seen_numbers)
                seen_numbers += 1
        picks = [[order[k] for k in pick] for pick in picks]
    large = heavy.get(max([x.itemsize for x in (*outs, *arrays)]), LARGE) if heavy else LARGE
    layouts = tuple([(x.shape, x.strides) for x in (*outs, *arrays)])
    plan = _plan(shape, layouts, large)
    rule = ElementTile(SMALL if plan.rows * plan.sizes[-1] <= FEW else large)
    key = (plan.rows, plan.sizes[-1], plan.crossed, max([x.itemsize for x in (*outs, *arrays)]), (arrays or outs)[0].dtype)
    tile = config_of("elementwise", key, rule)
    if tile.elements != rule.elements:
        plan = _plan(shape, layouts, large, tile.elements)
    launch(
        _kernel, plan.grid, tuple(outs), tuple(arrays), tuple(numbers), plan.rows, plan.sizes, plan.strides,
        FORMULAS=half_variants(formulas, outs, double), PICKS=tuple(map(tuple, picks)), LAST=plan.last, COMPUTE=tl.float64 if double else tl.float32,
        LONG_OFFSETS=plan.long_offsets, ROWS=plan.tile[0], COLS=plan.tile[1], num_warps=tile.warps,
    )  # fmt: skip


def _step(
    formulas: Sequence[Any], picks: Sequence[Any], operands: Sequence[Any], outs: Sequence[CudaArray], scalars_as: np.dtype
) -> Pointwise:
    """A call of `run` as the step that it is."""
    wide = bool(scalars_as == np.float64) or any([isinstance(x, CudaArray) and x.dtype == np.float64 for x in operands])
    given = tuple([x if isinstance(x, CudaArray) else scalar(x, scalars_as) for x in operands])
    return Pointwise(tuple(formulas), tuple(map(tuple, picks)), given, tuple(outs), wide)


@triton.jit
def unchanged(g):
    """The gradient of an input that is only added: g itself."""
    return g


@triton.jit
def flat(g):
    """The gradient of a step function: 0."""
    return maths.zeros(g)


def _names(formula: Any) -> tuple[str, ...]:
    code = backends.body(formula).__code__
    return code.co_varnames[: code.co_argcount]


def _result_shape(name: str, arrays: Sequence[Any], inputs: Sequence[str]) -> tuple[int, ...]:
    shapes = [x.shape for x in arrays if hasattr(x, "shape")]
    if all(s == shapes[0] for s in shapes):  # mostly: the labels are for errors alone
        return shapes[0]
    labels = [n for n, x in zip(inputs, arrays, strict=False) if hasattr(x, "shape")]
    return broadcast(name, *shapes, labels=labels)


def shape_rule(name: str, inputs: Sequence[str], result: str, kinds: Sequence[str]) -> Callable[..., Spec]:
    """Broadcast shape and result type; refuses types whose kind is not among `kinds`."""

    def shape(*arrays: Any, **attrs: Any) -> Spec:
        label, dtype = next((label, x.dtype) for label, x in zip(inputs, arrays, strict=False) if hasattr(x, "dtype"))
        refuse_kind(name, dtype, kinds, label)
        return Spec(_result_shape(name, arrays, inputs), _result_type(result, dtype))

    return shape


def _result_type(result: str, dtype: np.dtype) -> np.dtype:
    """The type of the result over inputs of `dtype`: theirs, the real part's, or a fixed one."""
    if result == "real":
        return dtype.type(0).real.dtype if dtype.kind == "c" else dtype
    return dtype if result == "same" else np.dtype(result)


def forward_of(
    formula: Any, name: str, inputs: Sequence[str], attributes: dict[str, Any], result: str, heavy: Heavy = None
) -> Callable[..., CudaArray]:
    """The forward corner of a formula of `inputs` and then `attributes` (given with their defaults)."""
    picks = (tuple(range(len(inputs) + len(attributes))),)

    def forward(*arrays: Any, out: CudaArray | None = None, **attrs: Any) -> CudaArray:
        first = next(x for x in arrays if isinstance(x, CudaArray))
        if out is None:
            out = allocate_result(arrays, _result_shape(name, arrays, inputs), _result_type(result, first.dtype))
        run(
            (formula,),
            picks,
            arrays + tuple([attrs.get(a, default) for a, default in attributes.items()]) if attributes else arrays,
            (out,), first.dtype, heavy,
        )  # fmt: skip
        return out

    forward.uniform = True  # type: ignore[attr-defined]  # numbers among its arguments only reach the kernel (see replay/)
    return forward


def backward_of(gradients: Sequence[Any], heavy: Heavy = None) -> Any:
    """The backward corner of gradient formulas, one per input (None where there is none).

    Formulas that name the same values share one launch; others are launched apart, so that each keeps only what it names.
    """
    named = {_names(f)[1:] for f in gradients if f is not None}
    # one launch reads what both need once
    if len(gradients) > 1 and len(named) == 1 and () not in named:
        return _joint_backward(gradients, named.pop(), heavy)
    return tuple(None if f is None else unchanged.fn if f is unchanged else _one_backward(f, heavy) for f in gradients)


def _one_backward(formula: Any, heavy: Heavy) -> Callable[..., CudaArray]:
    picks = (tuple(range(len(_names(formula)))),)

    def backward(g: CudaArray, *named: Any) -> CudaArray:
        out = allocate_result((g, *named), g.shape, g.dtype)
        run((formula,), picks, (g, *named), (out,), g.dtype, heavy)
        return out

    backward.__signature__ = signature(_names(formula))  # type: ignore[attr-defined]
    backward.uniform = True  # type: ignore[attr-defined]
    return backward


def _joint_backward(gradients: Sequence[Any], names: Sequence[str], heavy: Heavy) -> Callable[..., tuple[CudaArray | None, ...]]:
    picks = tuple(range(len(names) + 1))

    def backward(g: CudaArray, *named: Any) -> tuple[CudaArray | None, ...]:
        *values, needs = named
        wanted = [f if need else None for f, need in zip(gradients, needs, strict=True)]
        outs = [None if f is None else allocate_result((g, *values), g.shape, g.dtype) for f in wanted]
        found = [f for f in wanted if f is not None]
        if not found:
            return tuple(outs)
        run(found, [picks] * len(found), (g, *values), [y for y in outs if y is not None], g.dtype, heavy)
        return tuple(outs)

    backward.__signature__ = signature(("g", *names, "needs"))  # type: ignore[attr-defined]
    backward.uniform = True  # type: ignore[attr-defined]
    return backward


def elementwise(
    name: str, formula: Any, gradients: Any = None, reference: Any = None, *, promote: str | None = "float", result: str = "same",
    attributes: tuple[str, ...] = (), kinds: tuple[str, ...] = ("float", "complex"), one_rounding: bool = False, forward: Any = None, rule: Any = None,
    backward: Any = None, cpu: Any = None, cpu_backward: Any = None, bent: bool = False, domain: Domain | tuple[Domain, ...] = ANYWHERE,
    scalars: bool = True, holomorphic: bool = True, heavy: Heavy = None, dtypes: tuple[str, ...] = FLOATS,
    extra: Callable[[np.random.Generator], Sequence[Sample]] | None = None, samples: Callable[[np.random.Generator], Sequence[Sample]] | None = None,
    tolerance: dict[str, tuple[float, str]] | None = None, condition: Any = None, doc: str = "", outputs: tuple[str, ...] = ("y",),
    borrows: tuple[str, ...] | None = None, native: Sequence[str] | None = None, loop: Callable[..., bool] | None = None,
    public: bool | str | Sequence[str] = (), replace: bool = False,
) -> Op:  # fmt: skip
    """Register an elementwise op from scalar `@triton.jit` formulas: `elementwise("tanh", _tanh, _tanh_grad, np.tanh)`.

    Args:
        formula: of the inputs, then the attributes, in operators and functions of maths. 16-bit floats arrive as float32 and are rounded once after it.
        gradients: the gradient formula, or a tuple with one per input; each names what it needs (g, inputs, y,
            attributes). Its body serves as kernel, on numpy, and on Tensors as the differentiable rule. None: not differentiable.
        reference: plain numpy, an expression of the arrays (and the attributes, by name); a bare ufunc where there is one.
        cpu: what the CPU runs in its place where there are too few elements for machine code: a faster expression, or a function with `out=`, which is
            run as it is (see cpu/blocks.py). Left out: reference.
        result: "same" (the inputs' type), "real" (that of its real part) or a type's name. kinds: those of "bool", "uint", "int", "float", "complex"
            that it takes after promotion, `dtypes`, which tests walk, among them.
        one_rounding: the gradient formulas are single operations, so numpy rounds 16-bit floats right by itself.
        forward, rule, backward, cpu_backward: functions to use in place of those made here. heavy: for a formula that keeps more values
            than the registers hold of eight elements: those of a tile, by the widest array's bytes. bent: the gradient is constant but for jumps.
        domain: where samples are drawn, one or one per input; `extra` appends samples, `samples` stands for all. scalars: whether a Python number may
            stand for an input in them. outputs: the result's name, where an input is called y.
        native: types in which the CPU runs the formula as machine code where there are many elements. None: all floats; of a ufunc, itself one
            pass over memory, those of 16 bits. `loop` stands for the formula's.
        condition, holomorphic, borrows, public, replace: as in `op`; where terms cancel, as in 1 + tanh(x), condition says how large they are.
            public=True makes it a function, a method, an in-place method, and both take `out=`.
    """
    attributes, kinds, dtypes, outputs = map(as_tuple, (attributes, kinds, dtypes, outputs))
    gradients = gradients if gradients is None or isinstance(gradients, tuple) else (gradients,)
    refuse_formulas(name, formula, gradients, reference, attributes, kinds, dtypes, promote, outputs)
    inputs = (names := _names(formula))[: len(names) - len(attributes)]
    if gradients is not None:
        rule = rule or backends.gradient_rules(name, gradients, bent)
        backward = backward or backward_of(gradients, heavy)
        cpu_backward = cpu_backward or tuple(
            None if f is None else formula_llvm.numpy_gradient(f, one_rounding or f is unchanged) for f in gradients
        )
    defaults = {a: inspect.signature(reference).parameters[a].default for a in attributes}
    cpu = cpu or reference
    # where it is right for 16-bit floats, too, a ufunc runs as it is: it lays its result out as its input lies
    if isinstance(cpu, np.ufunc) and (len(inputs) == 2 or (promote == "float" and gradients is not None and not one_rounding)):
        cpu = blocks.of_ufunc(cpu, inputs, result == "bool")
    elif not blocks.takes_out(cpu):
        cpu = blocks.in_expression(cpu, np.dtype if result == "same" else partial(_result_type, result))
    # a ufunc is one pass over memory already, which in 32 and 64 bits machine code does not outrun
    if native is None:
        native = formula_llvm.HALF_TYPES if isinstance(getattr(cpu, "bare", cpu), np.ufunc) else FLOATS
    if native and "float" in kinds and result in ("same", "real", "bool"):
        loop = loop or formula_llvm.formula_loop(formula, names=attributes)
        cpu = formula_llvm.with_machine_code(cpu, loop, native, defaults, np.dtype(np.bool_) if result == "bool" else None)
    domains = [Domain(*d) for d in (domain if isinstance(domain[0], tuple) else (domain,) * len(inputs))]
    return op(
        name, reference, shape=shape_rule(name, inputs, result, kinds), forward=forward or forward_of(formula, name, inputs, defaults, result, heavy),
        rule=rule, backward=backward, cpu=cpu, cpu_backward=cpu_backward,
        inputs=inputs if isinstance(reference, np.ufunc | np.vectorize) else None, outputs=outputs, borrows=borrows,
        differentiable=gradients is not None, broadcasts=True, promote=promote, into=True, holomorphic=holomorphic, dtypes=dtypes, doc=doc,
        public=public, replace=replace, samples=samples or sample_calls(domains, scalars, dtypes, extra), sizes=timed_calls(domains), work=work,
        tolerance=tolerance, condition=condition,
    )  # fmt: skip


def work(*arrays: Any, **attrs: Any) -> Work:
    """One operation per element; every input read once, the result written once."""
    given = [x for x in arrays if hasattr(x, "shape")]
    size = math.prod(np.broadcast_shapes(*[x.shape for x in given]))
    return Work(size, sum(x.nbytes for x in given) + size * given[0].dtype.itemsize)
