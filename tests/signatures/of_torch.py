"""PyTorch's signatures: from its stub files, where every overload is written out, and from Python's own view of the rest."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(torch.__file__).parent
EMPTY = inspect.Parameter.empty


def _value(node: ast.expr | None) -> Any:
    """A default as a value where it is a literal, else its source."""
    if node is None:
        return EMPTY
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _signature(f: ast.FunctionDef) -> inspect.Signature:
    kinds = inspect.Parameter
    a, found = f.args, []
    by_place = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(by_place) - len(a.defaults)) + list(a.defaults)
    for i, (arg, default) in enumerate(zip(by_place, defaults, strict=True)):
        kind = kinds.POSITIONAL_ONLY if i < len(a.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD
        found.append(kinds(arg.arg, kind, default=_value(default), annotation=_written(arg)))
    if a.vararg is not None:
        found.append(kinds(a.vararg.arg, kinds.VAR_POSITIONAL, annotation=_written(a.vararg)))
    for arg, default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        found.append(kinds(arg.arg, kinds.KEYWORD_ONLY, default=_value(default), annotation=_written(arg)))
    if a.kwarg is not None:
        found.append(kinds(a.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


def _written(arg: ast.arg) -> str:
    return ast.unparse(arg.annotation) if arg.annotation is not None else ""


def _prototype(signature: inspect.Signature) -> bool:
    """Whether an overload is one for named dimensions, a prototype that PyTorch keeps beside the others."""
    return "names" in signature.parameters or any("EllipsisType" in str(p.annotation) for p in signature.parameters.values())


def _deprecated(signature: inspect.Signature, others: list[inspect.Signature]) -> bool:
    """Whether an overload takes a factor by place, `add(input, alpha, other)`, that its successor takes by keyword; torch warns of it."""
    factors = {p.name for p in signature.parameters.values() if p.name in ("alpha", "beta", "value") and p.kind is not p.KEYWORD_ONLY}
    return any(p.name in factors and p.kind is p.KEYWORD_ONLY for o in others for p in o.parameters.values())


@functools.cache
def stubs(path: str, owner: str = "") -> dict[str, list[inspect.Signature]]:
    """Every overload in a stub file's top level, or in one of its classes."""
    body = ast.parse((ROOT / path).read_text()).body
    if owner:
        body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == owner).body
    found: dict[str, list[inspect.Signature]] = {}
    for n in body:
        if isinstance(n, ast.FunctionDef) and not any(ast.unparse(d) == "property" for d in n.decorator_list):
            found.setdefault(n.name, []).append(_signature(n))
    return {name: [s for s in all_of if not _prototype(s) and not _deprecated(s, all_of)] for name, all_of in found.items()}


def of_python(f: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function written in Python; None for others, and for those that only pass their arguments on."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return None
    kinds = {p.kind for p in signature.parameters.values()}
    return None if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds else signature


@functools.cache
def _overrides() -> dict[Any, Callable[..., Any]]:
    return torch.overrides.get_testing_overrides()


def of_override(f: Callable[..., Any]) -> inspect.Signature | None:
    """The signature that PyTorch's list of overridable functions gives."""
    stand_in = _overrides().get(f)
    return None if stand_in is None else inspect.signature(stand_in)


def overloads(f: Callable[..., Any], name: str, path: str, owner: str = "") -> list[inspect.Signature]:
    """All signatures of one of PyTorch's functions: what Python sees, else the stub file's, else the list of overridable functions'."""
    seen = of_python(f)
    if seen is not None:
        return [seen]
    written = stubs(path, owner).get(name)
    if written:
        return written
    listed = of_override(f)
    return [] if listed is None else [listed]
