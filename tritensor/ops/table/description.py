"""Descriptions of ops, as `help(ops.softmax)` shows them: an op's signature and documentation, put together from its record when somebody asks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

import numpy as np

from tritensor.ops.table.record import Op


class OpSignature(inspect.Signature):
    """An op's signature, made when someone asks for it: arrays by place, attributes by name, with reference's defaults."""

    __slots__ = ("_op",)

    def __init__(self, op: Op) -> None:
        self._op = op

    @property
    def parameters(self) -> Any:
        """The parameters by name."""
        return {p.name: p for p in parameters(self._op)}

    @property
    def return_annotation(self) -> Any:
        """A tensor, several, or nothing."""
        return return_annotation_of(self._op)

    # inspect's own reads slots that nobody has filled here
    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """An ordinary signature with some parts changed."""
        given = {"parameters": list(self.parameters.values()), "return_annotation": self.return_annotation, **changes}
        return inspect.Signature(list(given["parameters"]), return_annotation=given["return_annotation"])


def parameters(op: Op, by_place: Any = Parameter.POSITIONAL_ONLY) -> list[Parameter]:
    """An op's inputs, then its attributes. Annotations are strings, as the door of public functions reads them."""
    found = []
    several = op.broadcasts and len(op.inputs) > 1
    for i, name in enumerate(op.inputs):
        if op.variadic and i == len(op.inputs) - 1:
            found.append(Parameter(name, Parameter.VAR_POSITIONAL, annotation="Tensor"))
        elif i < op.required:
            found.append(Parameter(name, by_place, annotation="Operand" if several else "Tensor"))
        else:
            found.append(Parameter(name, by_place, default=None, annotation="Tensor | None"))
    notes = _read_annotations(op.reference)
    for name, default in op.attrs.items():
        note = notes.get(name, "bool" if type(default) is bool else Parameter.empty)
        found.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=note))
    return found


def bare_signature(op: Op, by_place: Any = Parameter.POSITIONAL_ONLY) -> inspect.Signature:
    """An op's signature without types, against which a call is held and which an error shows."""
    return inspect.Signature([p.replace(annotation=Parameter.empty) for p in parameters(op, by_place)])


def _read_annotations(reference: Callable[..., Any]) -> dict[str, str]:
    """The annotations that a reference has of its parameters' types, as strings."""
    given: dict[str, Any] = {}
    if not isinstance(reference, np.ufunc):
        for f in (getattr(reference, "__wrapped__", None), reference):
            given |= getattr(f, "__annotations__", {})
    return {n: a if isinstance(a, str) else getattr(a, "__name__", "") or str(a) for n, a in given.items()}


def return_annotation_of(op: Op) -> str | None:
    """The result of a call, as an annotation."""
    if op.mutates:
        return None
    return "Tensor" if op.public == 1 else f"tuple[{', '.join(['Tensor'] * op.public)}]"


def write_documentation(op: Op) -> str:
    """The op's summary, then its inputs, outputs, types and gradient, and where it was registered."""
    kept = [o for o in op.outputs if o in op.residuals]
    lines = [_summarise(op), ""]
    lines.append(f"Inputs: {_describe_arguments(op)}." if op.inputs else "Inputs: none.")
    if op.attrs:
        lines.append(f"Attributes, by name: {', '.join(op.attrs)}.")
    if op.mutates:
        lines.append(f"Overwrites {', '.join(op.mutates)} and returns nothing.")
    else:
        lines.append(f"Outputs: {', '.join(op.outputs[: op.public])}{'; for backward alone ' + ', '.join(kept) if kept else ''}.")
    lines.append(f"Types that tests ask: {', '.join(op.dtypes)}.")
    lines.append(_describe_gradient(op))
    lines.append(f"Registered by {op.owner}.")
    return "\n".join(lines)


def _summarise(op: Op) -> str:
    """The first paragraph of the op's own documentation; of a ufunc without numpy's signature, which stands above it."""
    ufunc = getattr(op.reference, "bare", op.reference)
    said = op.doc or (ufunc.__doc__ if isinstance(ufunc, np.ufunc) else "") or ""
    paragraphs = inspect.cleandoc(said).split("\n\n")
    if len(paragraphs) > 1 and paragraphs[0].startswith(f"{getattr(ufunc, '__name__', '')}("):
        paragraphs = paragraphs[1:]
    return paragraphs[0] or f"The op {op.name}."


def _describe_arguments(op: Op) -> str:
    names = [n if i < op.required or op.variadic else f"{n} (optional)" for i, n in enumerate(op.inputs)]
    shapes = ", broadcast together" if op.broadcasts and len(names) > 1 else ""
    return ", ".join(names) + (" (any number)" if op.variadic else "") + shapes


def _describe_gradient(op: Op) -> str:
    if op.rule is None:
        return "Has no gradient."
    named = sorted({n for names in op.rule.names for n in names} - {"needs"})
    return "Differentiable, to any order" + (f"; its gradient uses {', '.join(named)}" if named else "") + "."


def describe(call: Callable[..., Any], op: Op) -> Callable[..., Any]:
    """Give a call of the op its name, module, signature and documentation."""
    call.__name__ = call.__qualname__ = op.name
    call.__module__ = op.owner.module
    call.__doc__ = write_documentation(op)
    call.__signature__ = OpSignature(op)  # type: ignore[attr-defined]
    return call
