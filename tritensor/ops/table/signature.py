"""A function's signature read cheaply: what an op's inputs and attributes are, and what a gradient asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

EMPTY = inspect.Parameter.empty
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional", inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional", inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "variadic", inspect.Parameter.VAR_KEYWORD: "rest",
}  # fmt: skip


def list_parameters(function: Callable[..., Any]) -> list[tuple[str, str, Any]]:
    """(name, kind, default or EMPTY) of every parameter; off the code object where that tells all."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__signature__") or hasattr(function, "__wrapped__"):
        return [(p.name, _KINDS[p.kind], p.default) for p in inspect.signature(function).parameters.values()]
    n, k = code.co_argcount, code.co_kwonlyargcount
    names, defaults, by_name = code.co_varnames, function.__defaults__ or (), function.__kwdefaults__ or {}  # type: ignore[attr-defined]
    first = n - len(defaults)
    found = [(names[i], "positional", defaults[i - first] if i >= first else EMPTY) for i in range(n)]
    if code.co_flags & inspect.CO_VARARGS:
        found.append((names[n + k], "variadic", EMPTY))
    found += [(name, "keyword", by_name.get(name, EMPTY)) for name in names[n : n + k]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append((names[n + k + bool(code.co_flags & inspect.CO_VARARGS)], "rest", EMPTY))
    return found


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Parameter names of a gradient function after its first, the incoming gradient."""
    return tuple(name for name, _, _ in list_parameters(function))[1:]


def read_signature(reference: Callable[..., Any], problems: list[str]) -> tuple[tuple[str, ...], int, bool, dict[str, Any]]:
    """Inputs, how many are required, whether the last is variadic, and attribute defaults, off a reference's signature."""
    inputs, required, variadic, attrs = [], 0, False, {}
    for name, kind, default in list_parameters(reference):
        if name == "out":  # where `into` results go: no part of the op's signature
            continue
        if kind == "variadic":
            inputs.append(name)
            variadic = True
        elif kind == "positional":
            inputs.append(name)
            if default is EMPTY:
                required += 1
            elif default is not None:
                problems.append(
                    f"input {name!r} defaults to {default!r}: an optional array defaults to None; make an attribute keyword-only (after *)"
                )
        elif kind == "keyword":
            attrs[name] = default
        else:
            problems.append(f"reference takes **{name}: spell its attributes out, they are the op's signature")
    return tuple(inputs), required, variadic, attrs


def signature(names: Sequence[str]) -> inspect.Signature:
    """The signature of a function that takes `*values`, for registration to read: the names of its values."""
    return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])


def by_names(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A gradient's corner of `function(gradient, **values)` that asks for the values of these names. What it hands on to another op as it is, such as the
    sizes of windows, need not be spelled out then."""

    def corner(gradient: Any, *values: Any) -> Any:
        return function(gradient, **dict(zip(names, values, strict=True)))

    corner.__signature__ = signature(("gradient", *names))  # type: ignore[attr-defined]
    return corner
