"""Names that a PyTorch script asks of torch and tritensor has not: noted while it ran, and read from the source of what it loaded."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import NamedTuple

from tritensor.torch_compat import finder, recorded_names


class Place(NamedTuple):
    """A name under PyTorch's path, and where it was asked for."""

    file: str
    line: int
    name: str
    reached: bool


def place(path: str, name: str, frame: types.FrameType | None) -> Place:
    """Where a frame stands that asks for a name."""
    full = ".".join(part for part in ("" if path.partition(".")[0] == "torchvision" else "torch", path, name) if part)
    return Place("?", 0, full, True) if frame is None else Place(frame.f_code.co_filename, frame.f_lineno, full, True)


def report(asked: list[Place]) -> str:
    """The list for the end of a run: file, line and name; "" where nothing was missing."""
    mine = [p for p in asked if _is_users(p.file)]
    # What ran is told once, as reached.
    seen = {(p.file, p.line, p.name) for p in mine} | {(p.file, p.line, p.name.replace("Tensor.", "")) for p in mine}
    unread = [p for file in _files() for p in find_in_source(file) if (p.file, p.line, p.name) not in seen]
    found = sorted({*mine, *unread})
    if not found:
        return ""
    count = len({p.name for p in found})
    lines = [f"tritensor.run: {count} name{'s' * (count != 1)} of torch that tritensor has not:"]
    lines += [f"  {_short(p.file)}:{p.line}: {p.name}{'' if p.reached else ' (not reached)'}" for p in found]
    return "\n".join(lines)


def _short(file: str) -> str:
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def _is_users(file: str) -> bool:
    """True where a file is neither Python's, nor installed, nor of this package."""
    paths = sysconfig.get_paths()
    outside = [paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")] + [
        os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    ]
    return not file.startswith("<") and not any(file.startswith(p + os.sep) for p in outside)


def _files() -> Iterator[str]:
    """The source files of the user's that this process loaded."""
    loaded = {vars(m).get("__file__") for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)}
    yield from sorted(f for f in loaded if isinstance(f, str) and f.endswith(".py") and _is_users(f))


def find_in_source(file: str) -> list[Place]:
    """Names below torch that a source file writes out and that are not here; methods of tensors cannot be told from others' in the source."""
    try:
        with open(file, "rb") as f:
            tree = ast.parse(f.read())
    except (OSError, SyntaxError, ValueError):  # a source that cannot be read says nothing; Python has told of the error itself
        return []
    bound, found = _imports(tree)
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}  # of a.b.c the longest alone: the walk meets a.b as well
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            chain = _chain(node)
            if chain and chain[0] in bound:
                missing = first_missing(bound[chain[0]] + chain[1:])
                if missing:
                    found.append((node.lineno, missing))
    return sorted({Place(file, line, name, False) for line, name in found})


def _imports(tree: ast.AST) -> tuple[dict[str, list[str]], list[tuple[int, str]]]:
    """Which names of a file are modules or objects of torch, as paths below it; and what it imports that is not here."""
    bound: dict[str, list[str]] = {}
    missing: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                parts = a.name.split(".")
                if parts[0] == "torch":
                    bound[a.asname or "torch"] = parts[1:] if a.asname else []  # `import torch.nn` binds torch, `as n` the module itself
                    missing += [(node.lineno, m) for m in [first_missing(parts[1:])] if m]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "torch":
            parts = (node.module or "").split(".")[1:]
            above = first_missing(parts)
            for a in node.names:
                gone = above or ("" if a.name == "*" else first_missing([*parts, a.name]))
                if gone:
                    missing.append((node.lineno, gone))
                elif a.name != "*":
                    bound[a.asname or a.name] = [*parts, a.name]
    return bound, missing


def _chain(node: ast.expr) -> list[str]:
    """["torch", "nn", "Linear"] of `torch.nn.Linear`; [] of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def first_missing(parts: list[str]) -> str:
    """The shortest prefix of a path below torch that is not here, written out; "" where all of it is, or where it leaves the modules."""
    at = ""
    for i, name in enumerate(parts):
        if at == "Tensor":
            return "torch.Tensor." + name if _tensor_lacks(name) else ""
        if at and not finder.is_here(at):  # below what is missing everything is: one line says it
            return ""
        if name.startswith("__"):
            return ""
        if not _has(at, name):
            return ".".join(["torch", *parts[: i + 1]])
        below = f"{at}.{name}" if at else name
        if below == "ops" or (
            below != "Tensor" and not isinstance(sys.modules.get("tritensor." + below), types.ModuleType) and not finder.is_here(below)
        ):
            return ""  # an object, as torch.ops is, though a folder is called so, too: what it has is its own matter
        at = below
    return ""


def _has(path: str, name: str) -> bool:
    module = sys.modules.get("tritensor" + ("." + path if path else ""))
    return (module is not None and name in vars(module)) or finder.find_name(path, name) is not finder.ABSENT


def _tensor_lacks(name: str) -> bool:
    from tritensor.tensor.core import Tensor

    return name in recorded_names.names_of("Tensor") and not hasattr(Tensor, name)  # an attribute that PyTorch has not either is the user's
