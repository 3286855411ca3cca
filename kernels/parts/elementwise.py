"""Elementwise ops: one kernel for all of them, and `elementwise(...)`, which makes a whole op of a formula and its gradients."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.thread_state import here
from tritensor.kernels.parts import backends, formula_llvm, maths
from tritensor.kernels.parts.allocation import allocate_result
from tritensor.kernels.parts.configs.element_tiles import HEAVY as HEAVY
from tritensor.kernels.parts.configs.element_tiles import Heavy
from tritensor.kernels.parts.cpu import blocks
from tritensor.kernels.parts.half_precision.variants import half_variants
from tritensor.kernels.parts.pointwise_samples import ANYWHERE, Domain, sample_calls, timed_calls
from tritensor.kernels.parts.tapes.pointwise import run_steps
from tritensor.kernels.parts.tapes.separate_steps import Steps, told
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import Pointwise, StepRecorder
from tritensor.ops.table import FLOATS, Op, Sample, Spec, Work, broadcast, op
from tritensor.ops.table.formula_checks import as_tuple, refuse_formulas
from tritensor.ops.table.shape_rules import refuse_kind
from tritensor.ops.table.signature import signature


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
    mixed = tuple([isinstance(x, CudaArray) for x in operands]) if len(numbers) and len(arrays) else ()
    steps = _told(tuple(formulas), tuple(picks), len(operands), mixed, tuple([y.dtype for y in outs]), double)
    run_steps(steps, tuple(arrays), tuple(numbers), tuple(outs), heavy)


@lru_cache(maxsize=8192)
def _told(
    formulas: tuple[Any, ...], picks: tuple[Any, ...], count: int, mixed: tuple[bool, ...], results: tuple[np.dtype, ...], double: bool
) -> tuple[Any, ...]:
    """What the kernel is told of formulas over so many operands; `mixed`: which of them are arrays, where others are numbers."""
    if mixed:  # the kernel sees arrays first
        order = sorted(range(count), key=lambda k: not mixed[k])
        picks = tuple([[order.index(k) for k in pick] for pick in picks])
    wide = (1 << len(results)) - 1 if double else 0
    return told(Steps(half_variants(formulas, results, double), tuple(map(tuple, picks)), wide, tuple(range(count, count + len(results)))))


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
