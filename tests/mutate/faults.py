"""The faults: every place of a source file where a small bug can be planted, and the text that plants it."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
# What is no part of the program's answers: messages, what tests and benchmarks draw, how an object is shown.
SKIPPED = ("__repr__",)
FOR_TESTS = ("samples", "sizes", "work", "condition", "tolerance", "domain", "domains")  # fields of a record
DRAWN = ("Sample", "Domain", "Work")


class Fault(NamedTuple):
    """One bug: the bytes from `start` to `end` of a file become `new`."""

    path: str  # relative to the root
    function: str  # the innermost function around it, "" at module level
    kind: str
    start: int
    end: int
    new: str

    def planted(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        before, after = source.decode().splitlines(), self.planted(source).decode().splitlines()
        lines = difflib.unified_diff(before, after, self.path, self.path, n=1, lineterm="")
        return "\n".join(lines)


def _changed(node: ast.AST, **fields: object) -> str:
    """The node's text with some fields replaced, in parentheses where it is an expression."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    text = ast.unparse(other)
    return f"({text})" if isinstance(node, ast.expr) else text


def _expression(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(kind, new text) of every fault of one expression."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield "comparison", _changed(node, ops=[COMPARISONS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if not any(isinstance(side, ast.Constant | ast.JoinedStr) and not _number(side) for side in (node.left, node.right)):
            yield "arithmetic", _changed(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield "and/or", _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not removed", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and _number(node):
        yield "constant", repr(node.value + 1)  # type: ignore[operator]
    elif isinstance(node, ast.Call) and _swappable(node.args[:2]):
        yield "arguments swapped", _changed(node, args=[node.args[1], node.args[0], *node.args[2:]])


def _swappable(pair: list[ast.expr]) -> bool:
    return len(pair) == 2 and not any(isinstance(a, ast.Starred) for a in pair) and ast.dump(pair[0]) != ast.dump(pair[1])


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _statement(node: ast.stmt) -> Iterator[tuple[ast.AST, str, str]]:
    """(what is replaced, kind, new text) of every fault of one statement by itself."""
    if isinstance(node, ast.If):
        yield node.test, "branch dropped", "False"
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield node.value, "return value dropped", "None"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield node, "statement dropped", "pass"


def _for_tests(tree: ast.Module) -> frozenset[str]:
    """Functions that a record names in fields that only tests and benchmarks ask, or that draw calls, and what only these use."""
    fields = (k.value for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg in FOR_TESTS)
    found = {n.id for field in fields for n in ast.walk(field) if isinstance(n, ast.Name)}
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    found |= {name for name, n in functions.items() if n.returns and any(made in ast.unparse(n.returns) for made in DRAWN)}
    elsewhere = [n for n in tree.body if not (isinstance(n, ast.FunctionDef) and n.name in found)]
    named = {n.id for part in elsewhere for n in ast.walk(part) if isinstance(n, ast.Name)}
    used = {n.id for name in found & set(functions) for n in ast.walk(functions[name]) if isinstance(n, ast.Name)}
    return frozenset(found | {name for name in used & set(functions) if name not in named})


class _Finder:
    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.skipped = _for_tests(ast.parse(source)) | set(SKIPPED)
        self.found: list[Fault] = []
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def add(self, node: ast.AST, function: str, kind: str, new: str) -> None:
        start = self.lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self.lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        self.found.append(Fault(self.path, function, kind, start, end, new))

    def walk(self, node: ast.AST, function: str) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
            return
        if isinstance(node, ast.FunctionDef):
            if node.name in self.skipped:
                return
            defaults = [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
            for child in (*defaults, *node.body):
                self.walk(child, node.name)
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DRAWN:
            return
        if isinstance(node, ast.keyword) and node.arg in FOR_TESTS:
            return
        if isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body) and function == "":
            return
        if isinstance(node, ast.stmt) and function:
            for target, kind, new in _statement(node):
                self.add(target, function, kind, new)
        if isinstance(node, ast.expr):
            for kind, new in _expression(node):
                self.add(node, function, kind, new)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "slice_annotation"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.walk(child, function)


def faults(path: str, source: bytes) -> list[Fault]:
    """Every fault of a file, in the order of the text; a few do not parse."""
    finder = _Finder(path, source)
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            finder.walk(node, "")
    return sorted(set(finder.found))


def parses(fault: Fault, source: bytes) -> bool:
    """Whether the file is Python with the fault in it."""
    try:
        ast.parse(fault.planted(source))
    except SyntaxError:
        return False
    return True
