"""Ops that a function of kernels/ serves, read off the text: who names it, who names those, up to the records that name an op."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.tiers.ops import ops_of

FEW = 8  # ops asked of a function that many use


class Definition:
    """One function, class or other statement of a file, the definitions that it names as (file, name), and its strings."""

    def __init__(self, path: str, node: ast.AST, imported: dict[str, tuple[str, str]]) -> None:
        self.path = path
        self.name = getattr(node, "name", "")
        self.named: set[tuple[str, str]] = set()
        self.words: set[str] = set()
        self.inner: set[str] = set()
        text = ast.unparse(node)
        device = any(word in text for word in ("tl.", "CudaArray", "triton.jit"))
        self.runs_on = "emulated" if device else "cpu" if "np.ndarray" in text else ""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self.name = node.targets[0].id
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self.named.add(imported.get(part.id, (path, part.id)))
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                self.named.add((imported.get(part.value.id, ("", ""))[0], part.attr))
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Attribute) and isinstance(part.value.value, ast.Name):
                folder = imported.get(part.value.value.id, ("", ""))[0]  # folder.file.name, the file read when it is first asked for
                self.named.add((f"{folder}/{part.value.attr}.py", part.attr))
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                self.words.add(part.value)
            elif isinstance(part, ast.FunctionDef | ast.ClassDef):
                self.inner.add(part.name)


def _imported(tree: ast.Module, root: Path) -> dict[str, tuple[str, str]]:
    """What each imported name means: (file, name in it), the name "" for a file or a folder."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tritensor.kernels"):
            folder = (node.module or "").removeprefix("tritensor.").replace(".", "/")
            for alias in node.names:
                whole = f"{folder}/{alias.name}.py"
                if (root / whole).exists():
                    meant = whole, ""
                else:
                    within = f"{folder}/{alias.name}"
                    meant = (within, "") if (root / within).is_dir() else (f"{folder}.py", alias.name)
                found[alias.asname or alias.name] = meant
    return found


@cache
def definitions(root: Path) -> tuple[Definition, ...]:
    found = []
    for path in sorted((root / "kernels").rglob("*.py")):
        tree = ast.parse(path.read_text())
        imported = _imported(tree, root)
        for node in tree.body:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                found.append(Definition(path.relative_to(root).as_posix(), node, imported))
    return tuple(found)


def runs_on(root: Path, path: str, function: str) -> str:
    """Where a fault in a function shows first: "emulated" for a part of a kernel or of its launch, "cpu" for numpy's, "" where either may."""
    found = {d.runs_on for d in definitions(root) if d.path == path and (function in d.inner or d.name == function)}
    return found.pop() if len(found) == 1 else ""


def says(root: Path, path: str, function: str, name: str) -> bool:
    """Whether a name stands in a function."""
    return any(
        name in {said for _, said in d.named} for d in definitions(root) if d.path == path and (function in d.inner or d.name == function)
    )


@cache
def ops_reaching(root: Path, path: str, function: str) -> tuple[str, ...]:
    """Ops that a fault in this function may change: those of its own file first, then a few of the others."""
    return _some(list(all_reaching(root, path, function)), path, function) if function else ops_of(path)


@cache
def all_reaching(root: Path, path: str, function: str) -> tuple[str, ...]:
    """Every op that a fault in this function may change."""
    if not function:
        return ops_of(path)
    every = definitions(root)
    front = {i for i, d in enumerate(every) if d.path == path and (function in d.inner or d.name == function)}
    reached = set(front)
    while front:
        meant = {(every[i].path, every[i].name) for i in front if every[i].name}
        front = {i for i, d in enumerate(every) if i not in reached and d.named & meant}
        reached |= front
    found: dict[str, None] = {}
    for i in sorted(reached):
        if not every[i].inner:  # a statement of the file: it may name the op
            ops = ops_of(every[i].path)
            found |= dict.fromkeys([op for op in ops if op in every[i].words] or ops)
    return tuple(found) or ops_of(path)


def _some(found: list[str], path: str, function: str) -> tuple[str, ...]:
    """All that are the file's own, those that the function is named for first; a few, spread evenly, of the others."""
    own = [op for op in ops_of(path) if op in found]
    own.sort(key=lambda op: op not in function)  # stable
    others = [op for op in sorted(found) if op not in own]
    few = max(FEW - len(own), 0)
    few = min(few, len(others))
    return tuple(own + [others[i * len(others) // few] for i in range(few)])
