"""Kernels take what they use: an unused parameter is compiled for, again and again, and says something that is not so."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.loops import each

KERNELS = Path(__file__).resolve().parent.parent.parent / "kernels"
# Functions that a kernel is handed all take the same: what one of them leaves unused, another needs.
HANDED = {"index", "value", "n", "mean", "here", "there", "place"}
# The same of families whose formulas all take the same, whether they need it or not: {folder or file: names}.
FORMULAS = {
    "losses/likelihoods.py": {"x", "t"},  # a slope is given both
    "losses/nll.py": {"one"},
    "special/polynomials.py": {"k"},  # the number of a recurrence's step
    "optimizers/formulas/": {"t", "lr", "momentum"},  # step, rate and settings
    "recurrent/": {"g", "y"},  # what a cell kept
    "parts/tapes/moments.py": {"n", "_"},  # a walk's states
    "reductions/": {"col"},  # where along its row an element of a scan lies
    "reductions/extrema.py": {"count", "share"},  # what a walk is told of the elements before
}


def jitted(tree: ast.Module) -> list[ast.FunctionDef]:
    def is_jit(d: ast.expr) -> bool:
        d = d.func if isinstance(d, ast.Call) else d
        return isinstance(d, ast.Attribute) and d.attr == "jit"

    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and any(map(is_jit, n.decorator_list))]


def unused(function: ast.FunctionDef) -> set[str]:
    """Parameters that the body never reads; `do_not_specialize` names in the decorator are no use."""
    taken = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    read = {n.id for line in function.body for n in ast.walk(line) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return taken - read


def launched(tree: ast.Module) -> set[str]:
    """Names that stand first in a launch(...)."""
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "launch" and n.args)
    return {n.args[0].id for n in calls if isinstance(n.args[0], ast.Name)}


FILES = [p for p in sorted(KERNELS.rglob("*.py")) if ".jit" in p.read_text()]


@each("path", FILES, ids=lambda p: p.relative_to(KERNELS).as_posix())
def test_no_parameter_is_unused(path: Path) -> None:
    tree = ast.parse(path.read_text())
    kernels = launched(tree)
    handed = HANDED.union(*[names for place, names in FORMULAS.items() if path.relative_to(KERNELS).as_posix().startswith(place)])
    found = [
        f"{path.name}:{f.lineno}: {f.name} never uses {name}"
        for f in jitted(tree)
        for name in sorted(unused(f) - (set() if f.name in kernels or f.name.endswith("_kernel") else handed))
    ]
    assert not found, "\n".join(found)


def test_an_unused_constexpr_is_found() -> None:
    tree = ast.parse("@triton.jit(do_not_specialize=['n'])\ndef _k(x, n, A: tl.constexpr, B: tl.constexpr):\n    tl.store(x, n + B)\n")
    assert [unused(f) for f in jitted(tree)] == [{"A"}]
    assert launched(ast.parse("launch(_k, (1,), x)\nother(_q)")) == {"_k"}
