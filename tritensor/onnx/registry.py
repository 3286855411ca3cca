"""Table of translations from tritensor's ops to ONNX, and of reasons why an op has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritensor.ops.table import registry as ops

Translation = Callable[..., Any]

_builtin: dict[str, Translation] = {}
_registered: dict[str, Translation] = {}  # of packages and programs, which go first
_reasons: dict[str, str] = {}


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enter a translation of ours under the names of ops."""

    def enter(f: Translation) -> Translation:
        for name in names:
            _builtin[name] = f
        return f

    return enter


def unsupported(reason: str, *names: str) -> None:
    """Enter why ops have no translation."""
    for name in names:
        _reasons[name] = reason


def register(op_name: str) -> Callable[[Translation], Translation]:
    """Say how an op is written in ONNX: `@tt.onnx.register("my_op")` over a function (g, *inputs, **attrs) that gives the output, or several.

    `g` is the graph, to which `g.op("Add", a, b)` appends a node. Inputs are values with `.shape` and `.dtype`, Python numbers, or None for one that was
    left out; `attrs` are those of the op. A translation of ours with the same name is replaced. Raises TypeError for a name that is no string.
    """
    if not isinstance(op_name, str):
        raise TypeError(f"onnx.register: the op's name is a {type(op_name).__name__}; give a string, as in @onnx.register('my_op')")

    def enter(f: Translation) -> Translation:
        if not callable(f):
            raise TypeError(f"onnx.register: {op_name!r} is translated by a {type(f).__name__}; give a function of (g, *inputs, **attrs)")
        _registered[op_name] = f
        return f

    return enter


def translation(name: str, custom: Mapping[str, Translation] | None = None) -> Translation | None:
    """How an op is written, or None."""
    return (custom or {}).get(name) or _registered.get(name) or _builtin.get(name)


def reason(name: str) -> str:
    """Why an op has no translation, and what could serve."""
    if name not in _reasons and name in ops and ops[name].mutates:
        return "it writes in place, as a step of an optimizer does, and a graph of ONNX writes nothing; export the model without its training step"
    return _reasons.get(name, f'nothing says how it is written in ONNX; say it with @tritensor.onnx.register("{name}")')


def list_ops() -> dict[str, str]:
    """Every op of the table: "translated", or the reason why it is not. The pseudo-op of views that are written is left out."""
    return {name: "translated" if name in _builtin else reason(name) for name in sorted(ops.everything())}
