"""Signatures as the reference shows them: the names that callers use, types without what says nothing, defaults that can be read."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable
from typing import Any, ForwardRef

Resolve = Callable[[str], str | None]

_QUIET = {"Any", "", "None"}  # annotations that tell a reader nothing


def annotation(given: Any, resolve: Resolve) -> str:
    """An annotation as words; "" where it says nothing. Our own classes stand there in full, behind the `~` that shows the last word alone."""
    if given is inspect.Parameter.empty:
        return ""
    given = given.__forward_arg__ if isinstance(given, ForwardRef) else given  # of a named tuple
    text = given if isinstance(given, str) else inspect.formatannotation(given)
    text = text.replace("'", "").replace('"', "").replace("tritensor.tensor.core.", "").replace("typing.", "")
    if text in _QUIET:
        return ""
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*(?![\w.])", lambda m: f"~{full}" if (full := resolve(m[0])) else m[0], text)


def default(value: Any) -> str:
    """A default as Python spells it; a function, a class or a member of an enumeration by its name."""
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__name__)
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    if re.search(r"<.*>|\n", text):
        return "..."
    return re.sub(r"\btritensor\.", "", text)


def parameter(p: inspect.Parameter, resolve: Resolve) -> str:
    """One parameter: `dim: int = 0`."""
    star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
    said = annotation(p.annotation, resolve)
    text = f"{star}{p.name}" + (f": {said}" if said else "")
    if p.default is not p.empty:
        text += (" = " if said else "=") + default(p.default)
    return text


def signature(value: Any, resolve: Resolve, method: bool = False) -> str:
    """`(input: Tensor, dim: int = 0) -> Tensor`; "" where Python knows none, and for an enumeration, which nobody calls."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):  # a class made in C, a functools.partial of one
        return ""
    given = list(found.parameters.values())[1 if method else 0 :]
    parts: list[str] = []
    kinds = [p.kind for p in given]
    for i, p in enumerate(given):
        first_by_name = p.kind is p.KEYWORD_ONLY and p.KEYWORD_ONLY not in kinds[:i]
        if first_by_name and p.VAR_POSITIONAL not in kinds:
            parts.append("*")
        parts.append(parameter(p, resolve))
        if p.kind is p.POSITIONAL_ONLY and p.POSITIONAL_ONLY not in kinds[i + 1 :]:
            parts.append("/")
    back = "" if inspect.isclass(value) else annotation(found.return_annotation, resolve)
    return f"({', '.join(parts)})" + (f" -> {back}" if back else "")
