"""Registration's checks of scalar formulas, before an op is made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tritensor.ground import dtypes as types
from tritensor.ground.errors import RegistrationError

KINDS = ("bool", "uint", "int", "float", "complex")


def as_tuple(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names as a tuple; one alone is taken for a tuple of it."""
    return (given,) if isinstance(given, str) else tuple(given)


def refuse_formulas(
    name: str,
    formula: Any,
    gradients: tuple[Any, ...] | None,
    reference: Any,
    attributes: tuple[str, ...],
    kinds: tuple[str, ...],
    asked: tuple[str, ...],
    promote: str | None,
    outputs: tuple[str, ...],
) -> None:
    """Raise RegistrationError with all that is wrong with what `elementwise` is given."""
    problems = [
        f"{label} is {_show_value(f)}; decorate it with @triton.jit"
        for label, f in _list_formulas(formula, gradients)
        if not hasattr(f, "fn")
    ]
    if not callable(reference):
        problems.append(f"reference is {reference!r}; give what numpy makes of the arrays, `lambda x: np.tanh(x)`, as the fourth argument")
    if not problems:
        inputs = [n for n in inspect.signature(formula.fn).parameters if n not in attributes]
        problems += _find_disagreements(formula, inputs, attributes, reference)
        for label, f in _list_formulas(formula, gradients)[1:]:
            given = list(inspect.signature(f.fn).parameters)
            if strange := [n for n in given[1:] if n not in (*inputs, *outputs, *attributes)]:
                there = ", ".join((*inputs, *outputs, *attributes))
                problems.append(
                    f"{label} takes {strange[0]!r}, which is none of {there}; behind the arriving gradient it names what it needs of these"
                )
        if gradients is not None and len(gradients) != len(inputs):
            problems.append(
                f"there are {len(gradients)} gradient formulas for the inputs {', '.join(inputs)}; give a tuple with one for each, None where there is none"
            )
    if unknown := [k for k in kinds if k not in KINDS]:
        problems.append(f"kinds has {unknown[0]!r}; it has some of {', '.join(map(repr, KINDS))}")
    elif promote != "float":
        known = {d.name: d.kind for d in types.ALL}
        problems += [
            f"dtypes has {d!r}, whose kind {known[d]!r} is not among kinds={kinds}; add it, or leave the type out"
            for d in asked
            if d in known and known[d] not in kinds
        ]
    if problems:
        raise RegistrationError(f"op {name!r} was not registered:\n" + "\n".join(f"  - {p}" for p in problems))


def _list_formulas(formula: Any, gradients: tuple[Any, ...] | None) -> list[tuple[str, Any]]:
    return [("formula", formula), *((f"gradient {i}" if i else "the gradient", f) for i, f in enumerate(gradients or ()) if f is not None)]


def _show_value(x: Any) -> str:
    return f"the plain function {x.__name__}" if isinstance(x, FunctionType) else repr(x)


def _find_disagreements(formula: Any, inputs: list[str], attributes: tuple[str, ...], reference: Callable[..., Any]) -> list[str]:
    """Where the formula and a reference that is a plain function take different things."""
    names = list(inspect.signature(formula.fn).parameters)
    if missing := [a for a in attributes if a not in names]:
        return [f"attributes names {missing[0]!r}, which the formula does not take; it takes {', '.join(names)}"]
    if attributes and names[-len(attributes) :] != list(attributes):
        return [f"the formula takes {', '.join(names)}; the attributes {', '.join(attributes)} come last, in that order"]
    # a ufunc has no names of arguments to compare
    if not isinstance(reference, FunctionType):
        return []
    taken = inspect.signature(reference).parameters.values()
    problems = []
    if any(p.kind is p.VAR_KEYWORD or p.kind is p.VAR_POSITIONAL for p in taken):
        return []
    if missing := [a for a in attributes if a not in [p.name for p in taken]]:
        problems.append(
            f"reference does not take the attribute {missing[0]!r}, which the formula does; write it after *, `lambda x, *, {missing[0]}=1.0: ...`"
        )
    arrays = [p.name for p in taken if p.kind is not p.KEYWORD_ONLY and p.name not in ("out", *attributes)]
    if len(arrays) != len(inputs):
        rest = tuple(n for n in names if n not in arrays)
        mend = f", or say attributes={rest!r}" if len(arrays) < len(inputs) and rest and not attributes else ""
        problems.append(f"reference takes the arrays {', '.join(arrays)}, the formula {', '.join(inputs)}; give both the same{mend}")
    return problems
