"""PyTorch's signatures in a JSON file: how one is written, how it is read, and which of our functions it belongs to."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Any

import tritensor as tt

FILE = Path(__file__).with_name("torch_signatures.json")
ANYTHING = {"default": "..."}  # a stub file's way not to say
ROOTS: dict[str, Any] = {"torch": tt, "Tensor": tt.Tensor, "F": tt.nn.functional}


def written(signature: inspect.Signature) -> list[list[Any]]:
    """[name, kind] of every parameter, and its default where it has one."""
    return [[p.name, p.kind.name, *_default(p.default)] for p in signature.parameters.values()]


def _default(value: Any) -> list[Any]:
    if value is Parameter.empty:
        return []
    if value is Ellipsis:
        return [ANYTHING]
    if isinstance(value, tuple):
        return [{"tuple": list(value)}]
    if value is None or isinstance(value, bool | int | float | str):
        return [value]
    shown = str(value)
    return [type(value).__name__ if shown.startswith("<") else shown]  # some show where they lie in memory


def read(parameters: list[list[Any]]) -> inspect.Signature:
    """The signature that was written so."""
    return inspect.Signature([Parameter(name, getattr(Parameter, kind), default=_value(*default)) for name, kind, *default in parameters])


def _value(value: Any = Parameter.empty) -> Any:
    if isinstance(value, dict):
        return Ellipsis if value == ANYTHING else tuple(value["tuple"])
    return value


def recorded() -> dict[str, tuple[bool, list[inspect.Signature]]]:
    """Whether it is called as a method, and PyTorch's overloads, by the function's name."""
    found = json.loads(FILE.read_text())
    return {name: (method, [read(s) for s in signatures]) for name, (method, signatures) in found.items()}


def ours(name: str) -> Callable[..., Any]:
    """Our function of a name such as torch.add, Tensor.add, F.relu, nn.Linear.__init__."""
    first, *rest = name.split(".")
    at: Any = ROOTS[first] if first in ROOTS else getattr(tt, first)
    for part in rest:
        found = inspect.getattr_static(at, part) if inspect.isclass(at) else getattr(at, part)
        at = getattr(found, "__func__", found)
    function: Callable[..., Any] = at
    return function
