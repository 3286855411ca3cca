"""Losses of single elements: `pointwise_loss(...)` makes a whole op of a formula and its slopes; map and reduction run in one pass on both devices."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.strides import BACKWARDS, ELEMENTWISE
from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_elementwise_layout
from tritensor.kernels.parts.cpu.blocks import evaluate
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.kernels.parts.cpu.summation import summed
from tritensor.kernels.parts.elementwise import run, scalar
from tritensor.kernels.parts.formula_llvm import formula_loop, to_common_layout
from tritensor.kernels.parts.pointwise_samples import ANYWHERE, Domain
from tritensor.kernels.parts.reduction import ReductionFunctions, add, fold, zero
from tritensor.kernels.parts.templates.template_args import bound
from tritensor.llvm.loops import MANY
from tritensor.llvm.passes.reduce import FormulaSum
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Op, Sample, Spec, Work, op, ops, refuse_kind
from tritensor.ops.table.signature import signature

REDUCTIONS = ("none", "mean", "sum")


def _map(x, t, index):  # type: ignore[no-untyped-def]
    return formula(x, t)  # type: ignore[name-defined]  # noqa: F821


def _map_with_number(x, t, index, number):  # type: ignore[no-untyped-def]
    return formula(x, t, number)  # type: ignore[name-defined]  # noqa: F821


@cache
def _map_of(formula: Any, numbers: int) -> Any:
    """A formula as a reduction's map."""
    return bound(_map_with_number if numbers else _map, formula.__name__, formula=formula)


# an element's share of the mean: g / n
@triton.jit
def _share(g, n):
    return maths.div(g, n)


def _every(x: Any, reduction: str) -> tuple[int, ...]:
    """The dims that are reduced."""
    return () if reduction == "none" else tuple(range(len(x.shape)))


def _divisor(x: Any, reduction: str) -> int:
    return math.prod(x.shape) if reduction == "mean" else 1


class _Loss:
    """The corners of one loss; attributes (at most one) follow x and the target in every formula."""

    def __init__(
        self, name: str, formula: Any, slopes: Sequence[Any], expression: Callable[..., Any], attributes: dict[str, Any],
        check: Callable[..., None] | None, rule: Callable[..., Any] | None, layout: str,
    ) -> None:  # fmt: skip
        self.layout, self.expression = layout, expression
        self.name, self.formula, self.slopes, self.attributes, self.check = name, formula, slopes, attributes, check
        self.plain = backends.translate(formula, backends.on_numpy)
        self.loop, self.fold = formula_loop(formula), FormulaSum(lambda *vectors: backends.translate(formula, on_vectors)(*vectors))
        self.slope_loops = [formula_loop(s) for s in slopes]
        self.plain_slopes = [backends.translate(s, backends.on_numpy) for s in slopes]
        by_x, by_target = slopes
        self.rules: tuple[Callable[..., Any], ...] = (
            rule or backends.translate(by_x, backends.on_tensors),
            backends.translate(by_target, backends.on_tensors),
        )

    def numbers(self, attrs: dict[str, Any]) -> tuple[Any, ...]:
        return tuple([float(attrs.get(a, default)) for a, default in self.attributes.items()]) if self.attributes else ()

    def shape(self, x: Any, target: Any, *, reduction: str = "mean", **attrs: Any) -> Spec:
        if reduction not in REDUCTIONS:
            raise ArgumentError(f"{self.name}: reduction is {reduction!r}; it is 'mean', 'sum' or 'none'")
        refuse_kind(self.name, x.dtype, ("float",))
        if x.shape != target.shape:
            raise ShapeError(
                f"{self.name}: x {tuple(x.shape)} and target {tuple(target.shape)} differ; a loss does not broadcast (it would average over an outer "
                "product): reshape one of them"
            )
        return Spec(x.shape if reduction == "none" else (), x.dtype)

    def reference(self, x: np.ndarray, target: np.ndarray, *, reduction: str = "mean", **attrs: Any) -> Any:
        each = self.expression(x, target, *self.numbers(attrs))
        return each if reduction == "none" else np.mean(each) if reduction == "mean" else np.sum(each)

    def cpu(self, x: np.ndarray, target: np.ndarray, *, reduction: str = "mean", **attrs: Any) -> np.ndarray:
        if self.check is not None:
            self.check(x, target)
        numbers, acc_type = self.numbers(attrs), dtypes.accumulator(x.dtype)
        if reduction == "none":
            return self._each(x, target, numbers)
        found: Any = None
        if x.size >= MANY:
            found = self.fold((*to_common_layout((x, target))[0], *numbers))
        if found is None:
            found = summed(
                np.asarray(self.plain(x.astype(acc_type, copy=False), target.astype(acc_type, copy=False), *numbers)), _every(x, reduction)
            )
        return np.asarray(np.true_divide(found, x.size) if reduction == "mean" else found, x.dtype)

    def _each(self, x: np.ndarray, target: np.ndarray, numbers: tuple[Any, ...]) -> np.ndarray:
        if x.size >= MANY:
            (a, b), shape, order = to_common_layout((x, target))
            y = np.empty(shape, x.dtype, order)  # type: ignore[call-overload]
            if self.loop((a, b, *numbers), y):
                return y
        return np.asarray(evaluate(self.plain, (x, target, *numbers)), x.dtype)

    def forward(self, x: CudaArray, target: CudaArray, *, reduction: str = "mean", **attrs: Any) -> CudaArray:
        numbers, acc_type = tuple([scalar(n, x.dtype) for n in self.numbers(attrs)]), dtypes.accumulator(x.dtype)
        y = allocate(x.shape if reduction == "none" else (), x.dtype, x)
        functions = ReductionFunctions(_map_of(self.formula, len(numbers)), add, maths.div, zero)
        fold(functions, (x, target), _every(x, reduction), (y,), (acc_type,), (np.float64(_divisor(x, reduction)),), numbers=numbers)
        return to_elementwise_layout(y, (target, x) if self.layout == BACKWARDS else (x, target))

    def rule(self, g: Any, x: Any, target: Any, reduction: str, needs: tuple[bool, ...], *numbers: Any) -> tuple[Any, ...]:
        up = ops.div(g, float(max(_divisor(x, reduction), 1))) if reduction == "mean" else g
        return tuple([r(up, x, target, *numbers) if need else None for r, need in zip(self.rules, needs, strict=True)])

    def backward(
        self, g: CudaArray, x: CudaArray, target: CudaArray, reduction: str, needs: tuple[bool, ...], *numbers: Any
    ) -> tuple[Any, ...]:
        if reduction == "mean":
            up = allocate((), dtypes.accumulator(x.dtype), x)
            run((_share,), ((0, 1),), (g, _divisor(x, reduction)), (up,), up.dtype)
            g = up
        found = [allocate(a.shape, a.dtype, a) if need else None for a, need in zip((x, target), needs, strict=True)]
        outs = [y for y in found if y is not None]
        wanted = [s for s, need in zip(self.slopes, needs, strict=True) if need]
        if outs:
            run(wanted, [range(3 + len(numbers))] * len(outs), (g, x, target, *numbers), outs, x.dtype)
        return tuple(found)

    def cpu_backward(self, i: int) -> Callable[..., Any]:
        """The gradient by x (0) or by the target (1)."""

        def gradient(g: np.ndarray, x: np.ndarray, target: np.ndarray, reduction: str, *numbers: Any) -> np.ndarray:
            if reduction == "mean":
                g = np.true_divide(g, max(x.size, 1), dtype=dtypes.accumulator(x.dtype))
            return self._slope(i, g, x, target, numbers)

        gradient.__signature__ = signature(("g", "x", "target", "reduction", *self.attributes))  # type: ignore[attr-defined]
        return gradient

    def _slope(self, i: int, g: Any, x: np.ndarray, target: np.ndarray, numbers: tuple[Any, ...]) -> np.ndarray:
        if x.size >= MANY:
            (up, a, b), shape, order = to_common_layout((g, x, target))
            y = np.empty(shape, x.dtype, order)  # type: ignore[call-overload]
            if self.slope_loops[i]((up, a, b, *numbers), y):
                return y
        plain = self.plain_slopes[i]
        if x.size < MANY and x.dtype.char in "fd":
            return np.asarray(plain(g, x, target, *numbers), x.dtype)
        return np.asarray(evaluate(lambda a, b, up, *n: plain(up, a, b, *n), (x, target, g, *numbers)), x.dtype)

    def with_names(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A gradient's corner under the names that registration reads off it."""

        def corner(*given: Any) -> Any:
            return function(*given)

        corner.__signature__ = signature(("g", "x", "target", "reduction", "needs", *self.attributes))  # type: ignore[attr-defined]
        corner.__module__ = backends.body(self.formula).__module__
        return corner

    def with_attributes(self, function: Callable[..., Any], doc: str = "") -> Callable[..., Any]:
        """A forward corner with the op's own signature."""

        def corner(x: Any, target: Any, **attrs: Any) -> Any:
            return function(x, target, **attrs)

        word, both = inspect.Parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD
        attributes = {"reduction": "mean", **self.attributes}
        corner.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [word("x", both), word("target", both), *[word(n, word.KEYWORD_ONLY, default=d) for n, d in attributes.items()]]
        )
        corner.__module__, corner.__doc__ = backends.body(self.formula).__module__, doc
        return corner


def pointwise_loss(
    name: str, formula: Any, slopes: tuple[Any, Any], expression: Callable[..., Any], *, doc: str, attributes: dict[str, Any] | None = None,
    domain: Domain | tuple[Domain, Domain] = ANYWHERE,
    draw: Callable[[np.random.Generator, tuple[int, ...]], tuple[np.ndarray, np.ndarray]] | None = None, others: Sequence[float] = (),
    check: Callable[[np.ndarray, np.ndarray], None] | None = None, tolerance: dict[str, tuple[float, str]] | None = None,
    every_path: bool = False, borrows: tuple[str, ...] | None = None, rule: Callable[..., Any] | None = None, layout: str = ELEMENTWISE,
) -> Op:  # fmt: skip
    """Register a loss `(x, target, *, reduction, [number])` of inputs of one shape, reduced by "mean", "sum" or "none".

    Args:
        formula: `(x, t[, number]) -> loss`, `@triton.jit` of functions of `maths` alone.
        slopes: the gradients by x and by the target, `(g, x, t[, number])`, each a product with g.
        expression: the loss in plain numpy, `(x, t[, number])`.
        attributes: the number's name and default, at most one.
        domain, draw: where samples of x and of the target lie; `others` are more values of the number to try.
        every_path: samples reach every path of what all such losses share; of one loss is enough.
        borrows: as in `op`.
        rule: the gradient by x on tensors, `(g, x, t)`, where its derivative is another than the slope's own.
        layout: as in `op`; "backwards" where the formula's first operand is the target.
        check: of numpy's x and target, raises for what the loss is not defined on.
    """
    loss = _Loss(name, formula, slopes, expression, attributes or {}, check, rule, layout)
    domains = domain if isinstance(domain[0], tuple) else (domain, domain)

    def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return draw(rng, shape) if draw is not None else (domains[0].draw(rng, shape), domains[1].draw(rng, shape))  # type: ignore[union-attr]

    def samples(rng: np.random.Generator) -> list[Sample]:
        cases: list[tuple[tuple[int, ...], str]] = [((5, 7), "mean"), ((11,), "none")]
        if every_path:
            cases += [((3, 4, 2), "sum"), ((300,), "none"), ((4500,), "mean")]
        made = [Sample(*drawn(rng, shape), reduction=r, **loss.attributes) for shape, r in cases]
        tried: list[dict[str, Any]] = [dict.fromkeys(loss.attributes, n) for n in others]
        return made + [Sample(*drawn(rng, (4, 3)), reduction="sum", **given) for given in tried]

    cpu = loss.with_attributes(loss.cpu)
    if loss.check is not None:
        cpu.refuses = lambda x, target: True  # type: ignore[attr-defined]
    return op(
        name, loss.with_attributes(loss.reference, doc), cpu=cpu, layout=layout, shape=loss.with_attributes(loss.shape),
        forward=loss.with_attributes(loss.forward), rule=loss.with_names(loss.rule), backward=loss.with_names(loss.backward),
        cpu_backward=(loss.cpu_backward(0), loss.cpu_backward(1)), promote="same", samples=samples, tolerance=tolerance, borrows=borrows,
        sizes=lambda rng: [Sample(*drawn(rng, (4096, 4096)), reduction="mean", **loss.attributes)],
        work=loss.with_attributes(lambda x, target, **attrs: Work(3 * x.size, 2 * x.size * x.dtype.itemsize)),
    )  # fmt: skip
