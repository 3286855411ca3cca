"""References are plain mathematics: no size threshold, no cache, no bit trick, no machine code, nothing that only speed asks for."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from tritensor.ops.table import Op, registry

LINES = 15  # of one function
# Modules that are there for speed alone.
FAST = ("tritensor.llvm", "tritensor.kernels.parts.cpu", "tritensor.kernels.parts.formula_llvm")
_SIZES = {"size", "nbytes", "itemsize"}
_FOR_SPEED = {"empty", "empty_like", "ctypes", "flags", "lru_cache", "cache", "frombuffer", "as_strided"}


def family(record: Op) -> str:
    """The folder of kernels/ that registers an op."""
    return registry.index[record.name].split(".")[2]


def functions(thing: Any, seen: set[int]) -> Iterator[FunctionType]:
    """The Python functions that a reference consists of: itself and what it calls of this library."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    thing = inspect.unwrap(thing) if callable(thing) and not isinstance(thing, type) else thing
    if (
        not isinstance(thing, FunctionType)
        or id(thing) in seen
        or not thing.__module__.startswith(("tritensor.kernels", "tritensor.ops", "tests."))
    ):
        return
    seen.add(id(thing))
    yield thing
    for inner in (*[c.cell_contents for c in thing.__closure__ or ()], *_globals_of(thing)):
        yield from functions(inner, seen)


def _globals_of(f: FunctionType) -> list[Any]:
    """What a function reads of its module, and of this library's modules: an attribute such as x.shape is no global of that name."""
    names = {i.argval for i in dis.get_instructions(f.__code__) if i.opname == "LOAD_GLOBAL"}
    found = [f.__globals__.get(n) for n in names]
    modules = [m for m in found if isinstance(m, ModuleType) and m.__name__.startswith("tritensor.")]
    return found + [getattr(m, n, None) for m in modules for n in f.__code__.co_names]


def faults(reference: Any) -> list[str]:
    """What of a reference is there for speed, a line each."""
    found = []
    for f in functions(reference, set()):
        where = f"{f.__module__}.{f.__qualname__}"
        if f.__module__.startswith(FAST) or f.__module__.endswith(("_llvm", ".cpu")):
            found.append(f"{where} stands where speed does")
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(f)).lstrip("@").strip().rstrip(",")) if f.__name__ != "<lambda>" else None
        found += [f"{where}: {said}" for said in (_faults_of(tree) if tree else _faults_of_lambda(f))]
        found += [f"{where} reads a table that is kept: {list(v)[:3]}" for v in _globals_of(f) if _is_cache(v)]
    return found


def _is_cache(value: Any) -> bool:
    return isinstance(value, dict | list | set) and not (isinstance(value, dict) and all(map(callable, value.values())))


def _faults_of_lambda(f: FunctionType) -> list[str]:
    return [f"uses .{n}" for n in f.__code__.co_names if n in _FOR_SPEED | {"view"}] + ["writes to out="] * ("out" in f.__code__.co_consts)


def _faults_of(tree: ast.AST) -> Iterator[str]:
    for n in ast.walk(tree):
        if isinstance(n, ast.FunctionDef):
            body = n.body[1:] if ast.get_docstring(n) else n.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > LINES:
                yield f"{n.name} has {lines} lines"
        elif isinstance(n, ast.Compare) and any(isinstance(m, ast.Attribute) and m.attr in _SIZES for m in ast.walk(n)):
            yield f"decides by size: {ast.unparse(n)}"
        elif isinstance(n, ast.Attribute) and n.attr in _FOR_SPEED:
            yield f"uses .{n.attr}"
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "view":
            yield f"reads bits: {ast.unparse(n)}"
        elif isinstance(n, ast.keyword) and n.arg == "out":
            yield "writes to out="


@pytest.mark.parametrize("name", sorted({home.split(".")[2] for home in registry.index.values()}))
def test_references_are_plain(name: str) -> None:
    found = [
        f"{r.name}: {said}" for r in registry.everything().values() if family(r) == name and not r.view for said in faults(r.reference)
    ]
    assert not found, "\n".join(found)


def test_what_is_there_for_speed_is_found() -> None:
    def by_size(x: np.ndarray) -> np.ndarray:
        return np.tanh(x) if x.size > 1000 else x

    def by_bits(x: np.ndarray) -> np.ndarray:
        return np.maximum(x.view(np.int32), 0).view(np.float32)

    assert "decides by size" in faults(by_size)[0]
    assert "reads bits" in faults(by_bits)[0]
    assert "speed" in faults(registry["tanh"].cpu)[0]
    assert not faults(lambda x: np.maximum(x, 0))


def test_a_cpu_side_that_is_the_reference_is_left_out() -> None:
    records = [r for r in registry.everything().values() if not r.view and not r.mutates]
    same = [r.name for r in records if r.cpu is r.reference and not isinstance(r.cpu, np.ufunc)]  # elementwise() takes a ufunc as it is
    assert not same, f"leave cpu out: {same}"
