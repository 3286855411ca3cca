"""Code of an op's author: the functions and kernels that its record leads to, outside of what all ops share."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tritensor.ops.table import Op, Partials

_SHARED = ("tritensor.kernels.parts", "triton.", "numpy", "functools")
_FOREIGN = ("tritensor", "triton", "numpy", "math")  # modules whose functions are not looked for
_DEPTH = 8  # helpers of helpers; beyond that it is no longer about the op


def list_authored(thing: Any) -> list[FunctionType]:
    """The author's functions that a corner of an op (or anything) leads to, kernels by the function that was decorated."""
    found: dict[int, FunctionType] = {}
    _walk(thing, found, set(), 0)
    return list(found.values())


def modules(op: Op) -> set[str]:
    """The modules that the functions of a record were written in."""
    corners = (op.reference, op.cpu, op.forward, op.rule, op.backward, op.cpu_backward, op.samples, op.shape)
    own = set() if op.module.startswith(_SHARED) else {op.module}
    return own | {f.__module__ for corner in corners for f in list_authored(corner)}


def find_concerned(op: Op, question: str, kernels: bool) -> list[FunctionType]:
    """The author's functions that a question is about: of a corner that launches kernels these, or the scalar functions that shared kernels call."""
    if question == "shape_rule":
        corner: Any = op.shape
    elif question in ("rule_is_derivative", "rule_differentiates"):
        corner = op.rule
    elif question == "outputs_alone":
        corner = op.backward if kernels else op.rule
    elif question == "backward_is_rule":
        corner = (op.backward if kernels else op.cpu_backward) or op.rule
    else:
        corner = op.forward if kernels else op.cpu
    found: dict[int, FunctionType] = {}
    jitted: set[int] = set()
    _walk(corner, found, jitted, 0)
    return [f for k, f in found.items() if k in jitted] or list(found.values())  # what launches is rarely what is wrong


def place(function: FunctionType) -> str:
    """ "my_ops.py:17": where a function is written."""
    return f"{Path(function.__code__.co_filename).name}:{function.__code__.co_firstlineno}"


def _walk(thing: Any, found: dict[int, FunctionType], jitted: set[int], depth: int) -> None:
    if depth > _DEPTH:
        return
    inner = _unwrap(thing)
    if isinstance(inner, FunctionType):  # @triton.jit
        if not _is_shared(inner):
            jitted.add(id(inner))
        thing = inner
    if isinstance(thing, FunctionType):
        if id(thing) in found:
            return
        if not _is_shared(thing):
            found[id(thing)] = thing
        for next in _list_called(thing):
            _walk(next, found, jitted, depth + 1)
    elif isinstance(thing, Partials):
        for f in thing.functions:
            _walk(f, found, jitted, depth + 1)
    elif isinstance(thing, tuple | list):
        for f in thing:
            _walk(f, found, jitted, depth + 1)
    elif isinstance(thing, functools.partial):
        _walk((thing.func, *thing.args, *thing.keywords.values()), found, jitted, depth + 1)
    elif isinstance(getattr(thing, "function", None), FunctionType):  # a recorded corner
        _walk(thing.function, found, jitted, depth + 1)


def _list_called(function: FunctionType) -> Iterator[Any]:
    """What a function holds; of one that the author wrote the functions that it names as well."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    if not _is_shared(function):
        code = list(dis.get_instructions(function))  # nothing is called to find out: kernels cannot be
        named = [function.__globals__.get(i.argval) for i in code if i.opname == "LOAD_GLOBAL"]
        members = [i.argval for i in code if i.opname in ("LOAD_ATTR", "LOAD_METHOD")]
        named += [getattr(m, n, None) for m in named if isinstance(m, ModuleType) and not m.__name__.startswith(_FOREIGN) for n in members]
        yield from (v for v in named if isinstance(v, FunctionType) or isinstance(_unwrap(v), FunctionType))


def _unwrap(thing: Any) -> Any:
    """The function under @triton.jit; None for anything else, `ops` among it, which would look for an op of that name."""
    try:
        return object.__getattribute__(thing, "fn")
    except AttributeError:
        return None


def _is_shared(function: FunctionType) -> bool:
    module = str(function.__globals__.get("__name__", ""))  # functools.wraps gives a wrapper of ours its author's __module__
    return module.startswith(_SHARED) or (module.startswith("tritensor.") and not module.startswith("tritensor.kernels."))
