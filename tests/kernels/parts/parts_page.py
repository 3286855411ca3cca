"""docs/kernel_parts.md as the docstrings of kernels/parts tell it: `python -m tests.kernels.parts.parts_page` writes it anew."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
PARTS = ROOT / "kernels" / "parts"
PAGE = ROOT / "docs" / "kernel_parts.md"

HEAD = """# Kernel parts

Every op file of `kernels/` is written with these, and no family of ops imports another. Import a name from its file:
`from tritensor.kernels.parts.allocation import allocate`.
"""


def _first_paragraph(node: ast.Module | ast.FunctionDef | ast.ClassDef) -> str:
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())


def _call(node: ast.FunctionDef | ast.ClassDef) -> str:
    """ "stretch(g, shape, dim)": how a function is called, without its types; a class by its name."""
    if isinstance(node, ast.ClassDef):
        return node.name
    bare = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(bare, ast.FunctionDef)
    for arg in ast.walk(bare.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return f"{node.name}({ast.unparse(bare.args)})"


def section(path: Path) -> str:
    """One file's caption and its public functions and classes that have a docstring."""
    tree = ast.parse(path.read_text())
    name = path.relative_to(PARTS).with_suffix("").as_posix()
    public = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")]
    entries = [f"- `{_call(n)}`: {_first_paragraph(n)}\n" for n in public if ast.get_docstring(n)]
    plain = [f"`{_call(n)}`" for n in public if isinstance(n, ast.FunctionDef) and not ast.get_docstring(n)]
    if plain:
        entries.append(f"- what their names say: {', '.join(plain)}\n")
    return f"## {name}\n\n{_first_paragraph(tree)}\n" + ("\n" + "".join(entries) if entries else "")


def page() -> str:
    """The whole page, a section a file."""
    return "\n".join([HEAD, *(section(p) for p in sorted(PARTS.rglob("*.py")) if p.name != "__init__.py")])


if __name__ == "__main__":
    PAGE.write_text(page())
