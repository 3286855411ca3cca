"""An optimizer's step from a formula of a few lines: `step_formula(...)`, and the two ops by which it is tested and timed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.optimizers import cpu_table, gpu_table
from tritensor.kernels.optimizers.decay import COUPLED, DECOUPLED, NONE
from tritensor.kernels.optimizers.step_formula import StepFormula
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.copying import to_c_order, write
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, Work, op, refuse_kind, refuse_mixed


def step_formula(
    name: str, formula: Any, numbers: Any, *, states: Sequence[str] = (), scalars: Sequence[str] = ("step",), settings: Sequence[str] = ("lr",),
    flags: Sequence[str] = (), example: Sequence[float], flagged: Sequence[dict[str, Any]] = ({},), doc: str,
) -> StepFormula:  # fmt: skip
    """A StepFormula, and its two ops for tests and benchmarks: `<name>_step` of one parameter and `<name>_numbers` of many.

    example: settings that tests and benchmarks take; flagged: flags that reach every branch.
    """
    made = StepFormula(name, formula, numbers, states, scalars, settings, flags, example)
    _register_step(made, flagged, doc)
    if numbers not in _registered:
        _registered.append(numbers)
        _register_numbers(made)
    return made


_registered: list[Any] = []  # functions of numbers, which several formulas may share


def _signed(function: Callable[..., Any], positional: Sequence[str], optional: Sequence[str], keywords: dict[str, Any]) -> Any:
    """A function that says which arguments it takes."""
    kinds = inspect.Parameter
    function.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        *[kinds(n, kinds.POSITIONAL_OR_KEYWORD) for n in positional],
        *[kinds(n, kinds.POSITIONAL_OR_KEYWORD, default=None) for n in optional],
        *[kinds(n, kinds.KEYWORD_ONLY, default=v) for n, v in keywords.items()],
    ])  # fmt: skip
    return function


def _draw(rng: np.random.Generator, shape: tuple[int, ...], states: int) -> list[np.ndarray]:
    """A parameter, its gradient, and states of sizes that differ, as moments do."""
    return [rng.standard_normal(shape), rng.standard_normal(shape), *[np.asarray((rng.random(shape) + 0.1) / 4**k) for k in range(states)]]


def _register_step(made: StepFormula, flagged: Sequence[dict[str, Any]], doc: str) -> None:
    name, inputs, flags, states = f"{made.name}_step", ("p", "g", *made.states, "numbers"), made.flags, len(made.states)
    keywords = {"maximize": False, "decay": NONE} | dict.fromkeys(flags, False)

    def variant(given: dict[str, Any]) -> tuple[Any, ...]:
        found = keywords | given
        return bool(found["maximize"]), int(found["decay"]), tuple(bool(found[f]) for f in flags)

    def reference(*arrays: np.ndarray, **given: Any) -> None:
        formula = made.spelled(backends.on_numpy, *variant(given))
        for k, value in zip(made.written, formula(*arrays[:-1], *arrays[-1]), strict=True):
            arrays[k][...] = value

    def cpu(*arrays: np.ndarray, **given: Any) -> None:
        cpu_table.CpuTable(made, [list(arrays[:-1])]).run(None, np.asarray(arrays[-1]).reshape(1, -1), variant(given))

    def forward(*arrays: CudaArray, **given: Any) -> None:
        rows = [to_c_order(x) for x in arrays[:-1]]
        gpu_table.step_one(made, rows, to_c_order(arrays[-1]), variant(given))
        for k in made.written:
            if rows[k] is not arrays[k]:
                write(arrays[k], rows[k])

    def shape(*arrays: Any, **given: Any) -> Spec:
        p, numbers = arrays[0], arrays[-1]
        refuse_kind(name, p.dtype, ("float",), "the parameter")
        for label, x in zip(inputs[1:-1], arrays[1:-1], strict=True):
            if tuple(x.shape) != tuple(p.shape):
                raise ShapeError(f"{name}: {label} {tuple(x.shape)} for a parameter of shape {tuple(p.shape)}; both must be the same")
        refuse_mixed(name, ("the parameter", p), *zip(inputs[1:-1], arrays[1:-1], strict=True))
        if tuple(numbers.shape) != (1 + made.count,) or not dtypes.is_float(numbers.dtype):
            raise ShapeError(
                f"{name}: numbers is {numbers.dtype} of shape {tuple(numbers.shape)}; it takes {1 + made.count} floating numbers"
            )
        return Spec(tuple(p.shape), p.dtype)

    numbers = np.array(made.row([2.0] + [0.5] * (len(made.scalars) - 1), made.example, 0.1, NONE)[1], np.float64)

    def samples(rng: np.random.Generator) -> list[Sample]:
        found = [Sample(*_draw(rng, (3, 5), states), numbers, decay=k, maximize=k == COUPLED, **given) for k, given in enumerate(flagged)]
        found.append(Sample(*_draw(rng, (), states), numbers, decay=DECOUPLED, **flagged[0]))
        if not made.states:  # blocks and their ends are alike for all formulas: the shortest walks them
            found += [Sample(*_draw(rng, n, states), numbers, **flagged[0]) for n in ((1100,), (0,))]
        return found

    def sizes(rng: np.random.Generator) -> list[Sample]:
        p = rng.standard_normal((4096, 4096))
        return [Sample(*[p] * (2 + states), numbers, **flagged[0])]

    def work(p: Any, *rest: Any, **_: Any) -> Work:
        n = math.prod(p.shape)
        return Work(4 * n * (1 + states), n * p.dtype.itemsize * (3 + 2 * states))

    arguments = (inputs, (), keywords)
    op(
        name, _signed(reference, *arguments), cpu=cpu, shape=_signed(shape, *arguments), forward=_signed(forward, *arguments), samples=samples,
        sizes=sizes, work=work, mutates=("p", *made.states), differentiable=False, dtypes=FLOATS, doc=doc,
    )  # fmt: skip


def _register_numbers(made: StepFormula) -> None:
    name, k, c = f"{made.name}_numbers", 1 + made.count, len(made.scalars)
    inputs = ("numbers", "scalars") if c else ("numbers",)
    usual: dict[str, Any] = dict(zip(made.settings, made.example, strict=True))
    keywords: dict[str, Any] = dict.fromkeys(made.settings, inspect.Parameter.empty) | {"weight_decay": 0.0, "decay": NONE}

    def taken(arrays: Sequence[Any], given: dict[str, Any]) -> tuple[Any, Any, Any, list[float], float, int]:
        numbers, *rest = arrays
        scalars = rest.pop(0) if c else None
        rate = rest[0] if rest else None
        found = keywords | given
        return numbers, scalars, rate, [found[s] for s in made.settings], found["weight_decay"], int(found["decay"])

    def reference(*arrays: Any, **given: Any) -> None:
        numbers, scalars, rate, settings, weight_decay, decay = taken(arrays, given)
        if rate is not None:
            settings[0] = rate.item()
        for i in range(len(numbers)):
            new, row = made.row(scalars[i].tolist() if c else [], settings, weight_decay, decay)
            numbers[i] = row
            if c:
                scalars[i] = new

    def forward(*arrays: Any, **given: Any) -> None:
        numbers, scalars, rate, settings, weight_decay, decay = taken(arrays, given)
        held: list[Any] = [to_c_order(x) if x is not None else None for x in (numbers, scalars)]
        gpu_table.advance(made, held[0], held[1], rate, settings, weight_decay, decay)
        for x, y in zip((numbers, scalars), held, strict=True):
            if x is not None and y is not x:
                write(x, y)

    def shape(*arrays: Any, **given: Any) -> Spec:
        numbers, scalars, rate, *_ = taken(arrays, given)
        if len(numbers.shape) != 2 or numbers.shape[1] != k or (c and tuple(scalars.shape) != (numbers.shape[0], c)):
            shapes = " and scalars ".join(str(tuple(x.shape)) for x in (numbers, scalars) if x is not None)
            raise ShapeError(f"{name}: numbers {shapes}; they are (n, {k})" + (f" and (n, {c})" if c else ""))
        for label, x in zip((*inputs, "rate"), (numbers, *([scalars] if c else []), rate), strict=True):
            if x is not None:
                refuse_kind(name, x.dtype, ("float",), label)
        if rate is not None and math.prod(rate.shape) != 1:
            raise ShapeError(f"{name}: rate has shape {tuple(rate.shape)}; a learning rate is one number")
        return Spec(tuple(numbers.shape), numbers.dtype)

    def samples(rng: np.random.Generator) -> list[Sample]:
        def rows(n: int) -> list[np.ndarray]:
            return [np.zeros((n, k)), *([np.column_stack([np.arange(n), *[rng.random(n) + 0.5] * (c - 1)]).astype(float)] if c else [])]

        return [
            Sample(*rows(4), **usual), Sample(*rows(4), weight_decay=0.1, decay=COUPLED, **usual),
            Sample(*rows(150), np.array(0.25), weight_decay=0.5, decay=DECOUPLED, **usual), Sample(*rows(0), **usual),
        ]  # fmt: skip

    def work(numbers: Any, *_: Any, **given: Any) -> Work:
        return Work(100 * numbers.shape[0], numbers.shape[0] * numbers.dtype.itemsize * (k + 2 * c))

    arguments = (inputs, ("rate",), keywords)
    op(
        name, _signed(reference, *arguments), shape=_signed(shape, *arguments), forward=_signed(forward, *arguments), samples=samples, work=work,
        mutates=inputs, differentiable=False, dtypes=("float32", "float64"),
        doc=f"The numbers of the next step of {made.name}, a row for each parameter, and its scalars moved on. `rate`, on the device, stands for lr.",
    )  # fmt: skip
