"""A copy of a kernel with one fault planted in its source, to see that a test finds it."""

from __future__ import annotations

import ast
import inspect
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

_names = itertools.count()


def planted(module: ModuleType, kernel: str, old: str, new: str, folder: Path) -> Any:
    """`module.kernel` with `old` (which must stand in it once) replaced by `new`; the copy's source is written to `folder`."""
    text = Path(inspect.getfile(module)).read_text()
    node = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    source = "\n".join(text.split("\n")[first : node.end_lineno]) + "\n"
    assert source.count(old) == 1, f"{kernel} holds {old!r} {source.count(old)} times"
    path = folder / f"planted_{next(_names)}.py"
    path.write_text(source.replace(old, new))
    scope = dict(vars(module))
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope[kernel]
