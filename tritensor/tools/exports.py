"""Exports of nn, nn.functional and optim, written into their `__init__.py` from the files below: `python tritensor/tools/exports.py`, part of `make pages`.

A public function is one whose decorator checks its arguments (`@checked`), or says `@exported` where it checks them itself; a public layer is a class of
`nn/layers/`, a public optimizer one of `optim/optimizers/`. Names with an underscore, mixins and files called base.py hold what these are made of.
Every other line of the `__init__.py` is written by hand and stays. The file runs by its path, without importing the package: a name that
is not exported yet may be what the package needs to be imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# Rooms whose `__init__.py` is written, and the folder that it opens.
ROOMS = {"nn/functional": "nn/functional", "nn": "nn/layers", "optim": "optim/optimizers"}
_FOUNDATIONS = ("base", "__init__")


def public_names(path: Path, functions: bool) -> list[str]:
    """What a file offers to users: functions by their decorators, or classes."""
    found = []
    for n in ast.parse(path.read_text()).body:
        function = functions and isinstance(n, ast.FunctionDef) and any(_publishes(d) for d in n.decorator_list)
        kind = not functions and isinstance(n, ast.ClassDef) and not n.name.startswith("_") and not n.name.endswith("Mixin")
        if function or kind:
            found.append(n.name)  # type: ignore[attr-defined]
    return found


def _publishes(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in ("checked", "exported")


def _order(line: tuple[str, str]) -> tuple[str, int, str]:
    """Ruff's order of imports: by module, then constants, classes, functions."""
    module, name = line
    return module, 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name.lower()


def _list_kept(text: str, below: str) -> Iterator[tuple[str, str]]:
    """(module, name) of the lines that are written by hand: all that import from elsewhere."""
    for n in ast.parse(text).body:
        if isinstance(n, ast.ImportFrom) and n.module is not None and not n.module.startswith(below + "."):
            yield from ((n.module, a.name) for a in n.names)


def text_of(room: str) -> str:
    """The `__init__.py` of a room as it should be."""
    folder, path = PACKAGE / ROOMS[room], PACKAGE / room / "__init__.py"
    below = "tritensor." + ROOMS[room].replace("/", ".")
    lines = list(_list_kept(path.read_text(), below))
    for file in sorted(folder.rglob("*.py")):
        if file.stem not in _FOUNDATIONS:
            module = ".".join((below, *file.relative_to(folder).with_suffix("").parts))
            lines += [(module, name) for name in public_names(file, room == "nn/functional")]
    caption = ast.get_docstring(ast.parse(path.read_text()), clean=False)
    # `as`: type checkers take it for a name that is offered.
    rows = [f"from {module} import {name} as {name}" for module, name in sorted(set(lines), key=_order)]
    return f'"""{caption}"""\n\n' + "\n".join(rows) + "\n"


def main() -> None:
    """Write the three files."""
    for room in ROOMS:
        path = PACKAGE / room / "__init__.py"
        text = text_of(room)
        path.write_text(text)
        print(f"{room}/__init__.py: {text.count(' import ')} names")


if __name__ == "__main__":
    main()
