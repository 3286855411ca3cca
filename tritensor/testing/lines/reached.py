"""Coverage of an op's corners and kernels by its samples: a line that none ran, no question has checked."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from tritensor.cuda.emulator.source_lines import quoted
from tritensor.ops.table import Op
from tritensor.testing.lines.authors import list_authored

_SIMPLE = (ast.Pass, ast.Raise, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)  # refusals are not what samples are for


class Reached:
    """Within the block, lines of the authors' functions of these ops that this thread runs are noted; kernels too, where device cuda is emulated."""

    def __init__(self, ops: Iterable[Op]) -> None:
        self._functions = [f for op in ops for f in _functions(op)]
        self._files = {f.__code__.co_filename for f in self._functions}
        self._lines: set[tuple[str, int]] = set()
        self._before: Any = None

    def __enter__(self) -> Reached:
        self._before = sys.gettrace()
        if self._before is None:  # a debugger, or what measures coverage, has it
            sys.settrace(self._trace_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace_call(self, frame: Any, event: str, argument: Any) -> Any:
        return self._trace_line if frame.f_code.co_filename in self._files else None

    def _trace_line(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace_line

    def missed(self, op: Op) -> list[str]:
        """ "my_ops.py:31: total += v": the first line of each run of statements of an op's corners and kernels that nothing ran."""
        found: dict[str, None] = {}
        for function in _functions(op):
            file = function.__code__.co_filename
            ran = {line for name, line in self._lines if name == file}
            before = True  # of what runs on without a branch the first line is enough
            for first, last in _statements(function):
                here = not ran.isdisjoint(range(first, last + 1))
                if not here and before:
                    found[quoted(file, first)] = None
                before = here
        return list(found)


def _functions(op: Op) -> list[FunctionType]:
    """What the author of an op wrote to compute with: no lambdas, which run whole or not at all."""
    corners = (op.forward, op.backward, op.rule, op.reference, op.cpu, op.cpu_backward)
    return [f for f in list_authored(corners) if f.__name__ != "<lambda>" and Path(f.__code__.co_filename).suffix]


def _statements(function: FunctionType) -> Iterator[tuple[int, int]]:
    """First and last line of each statement of a function, of a compound one those of its head."""
    linecache.checkcache(function.__code__.co_filename)  # the author edits and asks again in one process
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):  # made by exec, or not a whole statement
        return
    for node in _walk_statements(tree.body[0]):
        last = node.end_lineno or node.lineno
        if isinstance(body := getattr(node, "body", None), list) and body:
            last = max(node.lineno, body[0].lineno - 1)  # a branch not taken is no line of the if
        yield node.lineno + start - 1, last + start - 1


def _walk_statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements below one that tell whether they ran, in order; not those of functions inside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt) or isinstance(child, ast.FunctionDef | ast.ClassDef):
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from _walk_statements(child)
            continue
        if not (isinstance(child, _SIMPLE) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))):
            yield child
        yield from _walk_statements(child)
