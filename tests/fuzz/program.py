"""A program: statements over named values, as data that can be run in either library, printed as a script and cut down."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass
from functools import lru_cache

OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
# Calls that only carry the statement's own op: `(x * y).sum()` in a gradient is about the gradient.
PLAIN_NAMES = {"tt", "nn", "F", "np", "dev", "inf", "nan", "copy", "io", "pickle", "math", "tempfile"}
BUILTIN = set(dir(builtins))
HEADER = "import tritensor as tt\nfrom math import inf, nan\nfrom tritensor import nn\nfrom tritensor.nn import functional as F"


@dataclass(frozen=True)
class Facts:
    """What a statement's text says: the names that it sets and reads, and the op that it is about."""

    sets: frozenset[str]
    reads: frozenset[str]
    op: str
    differentiates: bool


@lru_cache(maxsize=20_000)
def tree_of(code: str) -> ast.Module:
    """A statement's syntax."""
    return ast.parse(code)


@lru_cache(maxsize=20_000)
def facts(code: str) -> Facts:
    """The facts of one statement. A function's own arguments and locals do not count as names that it reads; `v0 += 1` writes to what is there."""
    tree = tree_of(code)
    sets, reads, inner = set(), set(), set()
    written: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (reads if isinstance(node.ctx, ast.Load) or node in written else sets).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node in tree.body:
                sets.add(node.name)
            if isinstance(node, ast.FunctionDef):
                inner |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
                inner |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        elif isinstance(node, ast.Lambda):
            inner |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        elif isinstance(node, ast.comprehension):
            inner |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.AugAssign):
            written.append(node.target)
    differentiates = bool(re.search(r"\b(backward|grad|step)\(", code))
    return Facts(frozenset(sets - inner), frozenset(reads - inner - PLAIN_NAMES - BUILTIN), _op(tree.body[-1]), differentiates)


def _op(node: ast.AST) -> str:
    """The name of the outermost call, operator or indexing of a statement."""
    if isinstance(node, ast.With):
        return _op(node.body[0])
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return "def"
    if isinstance(node, ast.AugAssign):
        return f"i{OPERATORS[type(node.op)]}"
    if isinstance(node, ast.Assign):
        if any(isinstance(t, ast.Subscript) for t in node.targets):
            return "setitem"
        return _op(node.value)
    if isinstance(node, ast.Expr):
        return _op(node.value)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return node.func.attr
        return node.func.id if isinstance(node.func, ast.Name) else _op(node.func)
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)]
    if isinstance(node, ast.Compare):
        return "compare"
    if isinstance(node, ast.UnaryOp):
        return type(node.op).__name__.lower()
    if isinstance(node, ast.Subscript):
        return "getitem" if isinstance(node.value, ast.Name) else _op(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Tuple | ast.List) and node.elts:
        return _op(node.elts[0])
    return type(node).__name__.lower()


@dataclass(frozen=True)
class Program:
    """Statements in order. Every kind of program is one of these; what a kind adds is how they are drawn and judged."""

    statements: tuple[str, ...]

    def script(self) -> str:
        """A file that runs by itself."""
        used = [
            m
            for m in ("copy", "io", "pickle", "math", "tempfile", "numpy")
            if any(f"{'np' if m == 'numpy' else m}." in s for s in self.statements)
        ]
        extra = "".join(f"\nimport {m}" + (" as np" if m == "numpy" else "") for m in used)
        device = '\ndev = "cpu"' if any(re.search(r"\bdev\b", s) for s in self.statements) else ""
        return "\n".join([HEADER + extra + device, *self.statements])

    def in_float64(self) -> Program:
        """The same program whose floats are all of 64 bits: the measure of roundings."""
        wide = [re.sub(r"tt\.(float32|float16|bfloat16|half)\b", "tt.float64", s) for s in self.statements]
        return Program(tuple(re.sub(r"\.(float|half|bfloat16)\(\)", ".double()", s) for s in wide))
