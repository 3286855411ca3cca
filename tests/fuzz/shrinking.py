"""Cutting a failing program down: statements go, calls become their arguments, literals become small, while the same failure stays."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.program import Program, facts

TRIES = 600


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = TRIES) -> Program:
    """The smallest program that these steps reach and for which `fails` still says yes; `fails` is asked at most `tries` times."""
    left = tries
    changed = True
    while changed and left > 0:
        changed = False
        for candidate in _smaller(program):
            if left <= 0:
                break
            left -= 1
            if fails(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs that are one step smaller, the largest steps first."""
    lines = program.statements
    for size in (len(lines) // 2, len(lines) // 4):
        if size > 1:
            for start in range(len(lines) - size, -1, -size):
                yield _without(lines, set(range(start, start + size)))
    for index in range(len(lines) - 1, -1, -1):
        yield _without(lines, {index})
    for index, code in enumerate(lines):
        alias = re.fullmatch(r"(\w+) = (\w+)", code)
        if alias:
            renamed = (re.sub(rf"\b{alias[1]}\b", alias[2], later) for later in lines[index + 1 :])
            yield Program((*lines[:index], *renamed))
    for index in range(len(lines) - 1, -1, -1):
        for code in simpler(lines[index]):
            yield Program((*lines[:index], code, *lines[index + 1 :]))


def _without(lines: tuple[str, ...], gone: set[int]) -> Program:
    """The program without some statements, and without those that read what these set."""
    lost: set[str] = set()
    known: set[str] = set()
    kept = []
    for index, code in enumerate(lines):
        if index in gone or facts(code).reads & lost:
            lost |= facts(code).sets - known
        else:
            kept.append(code)
            known |= facts(code).sets
    return Program(tuple(kept))


def simpler(code: str) -> Iterator[str]:
    """Variants of one statement that say less."""
    if re.match(r"holds|(drawn)?(left|right)\d", code):
        return  # an invariant means what it says only as a whole
    tree = ast.parse(code)
    count = sum(1 for _ in ast.walk(tree.body[0]))  # what follows behind a semicolon fills a module's parameters, and stays
    seen = {ast.unparse(tree)}
    for number in range(count):
        for variant in range(64):
            changed = copy.deepcopy(tree)
            edited = _edit(changed, number, variant)
            if edited is None:
                break
            try:
                text = ast.unparse(ast.fix_missing_locations(edited))
                ast.parse(text)
            except (SyntaxError, ValueError):
                continue
            if text not in seen and len(text) <= len(code) + 2:
                seen.add(text)
                yield text


def _edit(tree: ast.Module, number: int, variant: int) -> ast.Module | None:
    """The tree with the `variant`-th change at its `number`-th node, or None when the node has no more."""
    node = list(ast.walk(tree.body[0]))[number]
    options = list(_options(node))
    if variant >= len(options):
        return None
    options[variant]()
    holder = _Swap(node, getattr(node, "_instead", None))
    return holder.visit(tree) if getattr(node, "_instead", None) is not None else tree


class _Swap(ast.NodeTransformer):
    """Puts one node in another's place."""

    def __init__(self, old: ast.AST, new: Any) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _options(node: ast.AST) -> Iterator[Callable[[], Any]]:
    """What can be made simpler at one node."""

    def instead(other: ast.AST) -> Callable[[], Any]:
        return lambda: setattr(node, "_instead", other)

    if isinstance(node, ast.With) and len(node.body) == 1:
        yield instead(node.body[0])
    if isinstance(node, ast.FunctionDef | ast.With | ast.ClassDef):
        for index, line in enumerate(node.body):
            if len(node.body) > 1 and not isinstance(line, ast.Return):
                yield lambda i=index: node.body.pop(i)
    if isinstance(node, ast.Call):
        yield from (instead(a) for a in node.args if not isinstance(a, ast.Constant | ast.Starred))
        if (isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name | ast.Attribute)) or (
            isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id not in ("tt", "F", "nn")
        ):
            yield instead(node.func.value)
        yield from ((lambda i=i: node.keywords.pop(i)) for i in range(len(node.keywords)))
        yield from ((lambda i=i: node.args.pop(i)) for i in range(len(node.args) - 1, -1, -1))
    if isinstance(node, ast.BinOp):
        yield from (instead(node.left), instead(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        yield instead(node.operand)
    if isinstance(node, ast.Subscript):
        yield instead(node.value)
    if isinstance(node, ast.Tuple | ast.List):
        array = isinstance(node, ast.List) and len(node.elts) > 1 and all(isinstance(e, ast.List) for e in node.elts)
        if array:  # a nested list loses the last of every row
            for keep in {len(node.elts[0].elts) // 2, len(node.elts[0].elts) - 1} - {0}:
                yield lambda k=keep: [e.elts.__delitem__(slice(k, None)) for e in node.elts]
        if len(node.elts) > 4:
            yield lambda: node.elts.__delitem__(slice(len(node.elts) // 2, None))
        if len(node.elts) > 1 or isinstance(node, ast.Tuple):  # what is empty fails otherwise
            yield from ((lambda i=i: node.elts.pop(i)) for i in range(len(node.elts) - 1, -1, -1))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        for value in _simpler_numbers(node.value):
            yield lambda v=value: setattr(node, "value", v)


def _simpler_numbers(value: float) -> list[float]:
    if isinstance(value, int):
        return [v for v in (0, 1, 2, value // 2) if v < value]
    return [v for v in (1.0, 2.0, 0.5) if value not in (0.0, 1.0, 2.0, 0.5) or (v < value and value != 0.0)]
