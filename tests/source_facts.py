"""Facts of the package's source files, read once: imports, functions, captions, names of ops."""

from __future__ import annotations

import ast
import functools
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tritensor"


def sources() -> list[Path]:
    """Every Python file of the package, the four wings through their links."""
    found = []
    for folder, _, names in os.walk(PACKAGE, followlinks=True):
        found += [Path(folder) / n for n in names if n.endswith(".py") and "__pycache__" not in folder]
    return sorted(found)


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@functools.cache
def text(path: Path) -> str:
    return path.read_text()


class Facts:
    """What the rules ask of a file, read in one walk over its tree; the trees of all files together would fill 600 MB."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(text(path), str(path))
        self._lines = text(path).splitlines()
        self.caption = ast.get_docstring(tree)
        self.imports: list[
            tuple[str, str | None, int, bool]
        ] = []  # (module, name or None, line, whether it runs when the file is imported)
        self.late_imports: list[tuple[str, int]] = []  # (module, line) of import_module("..."), up to the first part that is computed
        self.functions: list[tuple[str, int, int]] = []  # (name, line, lines of code)
        self.bare_excepts: list[int] = []
        self.attributes_of_ops: set[str] = set()  # ops.NAME
        self.keys_of_registry: set[str] = set()  # registry["NAME"]
        self.strings: set[str] = set()
        top = {id(n) for n in tree.body}
        for n in tree.body:  # if TYPE_CHECKING and try blocks run at import as well
            if isinstance(n, ast.If | ast.Try):
                top |= {id(m) for m in ast.walk(n)}
        for n in ast.walk(tree):
            self._note(n, id(n) in top)
        del self._lines

    def _note(self, n: ast.AST, top: bool) -> None:
        if isinstance(n, ast.Import):
            self.imports += [(a.name, None, n.lineno, top) for a in n.names]
        elif isinstance(n, ast.ImportFrom):
            self.imports += [("." * n.level + (n.module or ""), a.name, n.lineno, top) for a in n.names]
        elif isinstance(n, ast.FunctionDef):
            body = n.body[1:] if ast.get_docstring(n) else n.body
            last = body[-1].end_lineno or 0 if body else 0
            comments = sum(line.lstrip().startswith("#") for line in self._lines[body[0].lineno - 1 : last]) if body else 0
            self.functions.append((n.name, n.lineno, last - body[0].lineno + 1 - comments if body else 0))
        elif isinstance(n, ast.Call) and _called(n.func) in ("import_module", "__import__") and n.args:
            self.late_imports += [(module, n.lineno) for module in _named_module(n.args[0])]
        elif isinstance(n, ast.ExceptHandler) and n.type is None:
            self.bare_excepts.append(n.lineno)
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "ops":
            self.attributes_of_ops.add(n.attr)
        elif (
            isinstance(n, ast.Subscript)
            and isinstance(n.value, ast.Name)
            and n.value.id == "registry"
            and isinstance(n.slice, ast.Constant)
        ):
            self.keys_of_registry.add(str(n.slice.value))
        elif isinstance(n, ast.Constant) and isinstance(n.value, str):
            self.strings.add(n.value)


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _named_module(argument: ast.expr) -> list[str]:
    """The module that `import_module` is given: a string, or as much of an f-string as stands before its first field."""
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument.left if isinstance(argument, ast.BinOp) else argument
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return []
    return [first.value if first is argument or "." not in first.value else first.value.rpartition(".")[0]]


facts = functools.cache(Facts)
