"""PyTorch's public names by module, as they were recorded: read when a name is missing, never before."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

from tritensor.ground.process.late_imports import loading

VERSION = "2.13"
FILE = os.path.join(os.path.dirname(__file__), "torch_names.json")
TENSOR_FILE = os.path.join(os.path.dirname(__file__), "tensor_names.txt")  # by itself: the front door reads it


class Name(NamedTuple):
    """One name of a module of PyTorch's: what it is ("class", "function" or "value"), and the shortest path to the same object."""

    kind: str
    home: str


def _text(file: str) -> str:
    with loading("tritensor"), open(file, encoding="utf-8") as f:  # no descriptor left: that is said, and not that a name is missing
        return f.read()


@functools.cache
def recorded() -> dict[str, dict[str, str]]:
    """{module: {home: names}}; "" is torch itself, "Tensor" the class; a class is marked with *, a function with ()."""
    import json

    found: dict[str, dict[str, str]] = json.loads(_text(FILE))
    return {"Tensor": {".": _text(TENSOR_FILE)}, **found}  # kept once, in the file that the front door reads


def tensor_names() -> list[str]:
    """The public attributes of PyTorch's Tensor."""
    return _text(TENSOR_FILE).replace("()", "").split()


@functools.cache
def names_of(path: str) -> dict[str, Name]:
    """The names of one module; none where PyTorch has no such module."""
    found = {}
    for home, names in recorded().get(path, {}).items():
        for marked in names.split():
            name = marked.rstrip("*()")
            kind = "class" if marked.endswith("*") else "function" if marked.endswith("()") else "value"
            found[name] = Name(kind, path if home == "." else home)
    return found


@functools.cache
def children_of(path: str) -> tuple[str, ...]:
    """The names of the modules right below one."""
    lead = path + "." if path else ""
    return tuple(
        m.removeprefix(lead) for m in recorded() if m not in ("", "Tensor") and m.startswith(lead) and "." not in m.removeprefix(lead)
    )
