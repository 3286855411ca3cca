"""Python syntax that means something else in Triton than in Python: loops over range, and, or, not, chained comparisons, assert, min, max.

Triton's interpreter runs a kernel as Python. There a loop variable is an int without `.to`, `block and block` is the second one, and
`min(block, block)` the first. `install()` makes the interpreter rewrite these as the compiler reads them. What the compiler does not read at
all, such as `break` and globals that are no constexpr, raises when a program comes to it; names of an enclosing function are found, as compiled.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream

from tritensor.ground.dtypes import DType

_PREFIX = "_emulated_"  # of the names under which rewritten kernels find what is below


def _range(*bounds: Any, **_: Any) -> Iterator[Any]:
    """Triton's range and tl.range: the variable is a scalar of the bounds' integer type."""
    semantic = upstream.interpreter_semantic
    # Triton's range promotes its bounds; Python's would refuse tensors
    given = [semantic.to_tensor(b) for b in bounds]
    kind = given[0].dtype
    for b in given[1:]:
        kind = semantic.integer_promote_impl(kind, b.dtype)
    for n in builtins.range(*(int(b.handle.data.reshape(())) for b in given)):
        yield semantic.scalar_constant(n, kind)


def _tl_range(arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
    """tl.range: its options say how to compile the loop, and nothing about what it computes."""
    return _range(*(b for b in (arg1, arg2, step) if b is not None))


def _join(word: str, *operands: Callable[[], Any]) -> Any:
    """`a and b`, `a or b`: what is known at compile time decides at once; of tensors all are evaluated, and joined lane by lane."""
    dynamic, value = [], None
    for operand in operands:
        value = operand()
        if isinstance(value, tl.tensor):
            dynamic.append(value)
        elif bool(value) is (word == "or"):
            return value
    if not dynamic:
        return value
    found = dynamic[0]
    for other in dynamic[1:]:
        found = found.logical_and(other) if word == "and" else found.logical_or(other)
    return found


def _compare(operands: list[Any], *steps: Callable[[Any, Any], Any]) -> Any:
    """`a < b < c` as `(a < b) and (b < c)`."""
    return _join("and", *(lambda i=i, f=f: f(operands[i], operands[i + 1]) for i, f in enumerate(steps)))  # type: ignore[misc]


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _truth(value: Any) -> bool:
    """The condition of `if`, `while` and `a if c else b`: known at compile time, or a scalar."""
    value = getattr(value, "condition", value)  # tl.condition's options say how to compile the loop
    if not isinstance(value, tl.tensor):
        return bool(value)
    if value.handle.data.size != 1:
        raise TypeError("a condition is a block of several values; ask about one, or use tl.where")
    return bool(value.handle.data.reshape(()))


def _assert(condition: Any, message: Any = "") -> None:
    """`assert` in a kernel is tl.device_assert."""
    tl.device_assert(condition, message)


def _extreme(name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if any(isinstance(a, tl.tensor) for a in args):
            return getattr(tl.core, f"builtin_{name}")(*args, **options)
        return getattr(builtins, name)(*(getattr(a, "value", a) for a in args), **options)

    return call


def _refused(word: str) -> None:
    """A statement that Triton's compiler does not know."""
    instead = {"break": "; let the condition of a while loop say it", "continue": "; put the rest of the loop's body under an if"}
    raise NotImplementedError(f"Triton's compiler takes no {word} in a kernel{instead.get(word, '')}")


def _no_constant(name: str, value: Any) -> Any:
    """A global of the kernel's file, or a name of the function around it, that holds plain data: compiled, kernels may see it as tl.constexpr alone."""
    raise NameError(
        f"{name} is a global variable, and Triton's compiler lets a kernel see those only that hold a tl.constexpr: "
        f"write {name} = tl.constexpr({value!r}), or give the kernel a parameter {name}: tl.constexpr"
    )


_WORDS: dict[str, Any] = {
    "range": _range, "truth": _truth, "joined": _join, "compared": _compare, "not": _not, "assert": _assert, "min": _extreme("min"), "max": _extreme("max"),
    "refused": _refused, "no_constant": _no_constant,
}  # fmt: skip
_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.Break: "break", ast.Continue: "continue", ast.Try: "try", ast.Raise: "raise", ast.Delete: "del", ast.Global: "global",
    ast.Nonlocal: "nonlocal", ast.Import: "import", ast.ImportFrom: "import", ast.Match: "match",
}  # fmt: skip
_DATA = (int, float, complex, str, bytes, list, dict, set, type(None), np.generic, np.ndarray, DType)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=_PREFIX + name, ctx=ast.Load()), args=list(args), keywords=[])


def _function(body: ast.expr, *names: str) -> ast.Lambda:
    parameters = ast.arguments(posonlyargs=[], args=[ast.arg(arg=n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=parameters, body=body)


class _Rewriter(ast.NodeTransformer):
    """What interpreted kernels are rewritten by. `own` are names that a kernel's file, the functions around it and the kernel itself define,
    `data` those outside of it that hold what the compiler would not let it see."""

    def __init__(self, around: dict[str, Any]) -> None:
        self.own = frozenset(around)
        self.data = frozenset() if _plain_globals_pass() else frozenset([n for n, v in around.items() if _is_data(n, v)])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        inside = stored | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
        self.own, self.data = self.own | inside, self.data - inside
        node.body = [self.visit(statement) for statement in node.body]  # its defaults may be of any value
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.data:
            return _call("no_constant", ast.Constant(value=node.id), node)
        return node

    # annotations are left alone: compiled, they are read as types and not run
    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit(self, node: ast.AST) -> Any:
        word = _STATEMENTS.get(type(node))  # type: ignore[arg-type]
        return super().visit(node) if word is None else ast.Expr(value=_call("refused", ast.Constant(value=word)))

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) > 1:
            raise ValueError("a kernel assigns to one target at a time")
        self.generic_visit(node)
        to_tensor = ast.Attribute(value=ast.Name(id="interpreter_semantic", ctx=ast.Load()), attr="to_tensor", ctx=ast.Load())
        node.value = ast.Call(func=to_tensor, args=[node.value, ast.Constant(value=False)], keywords=[])
        return node

    def visit_If(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = _call("truth", node.test)
        return node

    def visit_While(self, node: ast.While) -> Any:
        return self.visit_If(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit_If(node)

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call):
            node.iter.func = self._renamed(node.iter.func, ("range",))
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        node.func = self._renamed(node.func, ("min", "max"))
        return node

    def _renamed(self, function: ast.expr, names: tuple[str, ...]) -> ast.expr:
        if isinstance(function, ast.Name) and function.id in names and function.id not in self.own:
            return ast.Name(id=_PREFIX + function.id, ctx=ast.Load())
        return function

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
            return node  # `:=` would bind in the lambda
        word = "and" if isinstance(node.op, ast.And) else "or"
        return _call("joined", ast.Constant(value=word), *(_function(v) for v in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return _call("not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        left, right = ast.Name(id="a", ctx=ast.Load()), ast.Name(id="b", ctx=ast.Load())
        steps = [_function(ast.Compare(left=left, ops=[op], comparators=[right]), "a", "b") for op in node.ops]
        return _call("compared", ast.List(elts=[node.left, *node.comparators], ctx=ast.Load()), *steps)

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        return ast.Expr(value=_call("assert", node.test, *([node.msg] if node.msg is not None else [])))


def _plain_globals_pass() -> bool:
    """Whether Triton was told to let kernels see any global."""
    return os.environ.get("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "0").lower() in ("1", "true", "on", "yes")


def _is_data(name: str, value: Any) -> bool:
    plain = isinstance(value, _DATA) or type(value) is tuple
    return plain and not name.startswith("__") and not hasattr(builtins, name)


def _enclosing(function: Any) -> dict[str, Any]:
    """The names that a kernel takes from the functions around it, with what they hold now."""
    return {n: held(c) for n, c in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)}


def held(cell: Any) -> Any:
    """What a name of the function around a kernel holds; tl, which kernels may see, for one that is not assigned to yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return tl


_transformed = upstream.FunctionRewriter._transform_ast
_executed = upstream.FunctionRewriter._compile_and_exec


def _transform(self: Any, source: str) -> Any:
    self.ast_transformer = _Rewriter({**self.fn.__globals__, **_enclosing(self.fn)})
    return _transformed(self, source)


def _compile_and_exec(self: Any, tree: ast.Module) -> Any:
    """The rewritten function. One that stands in another function shares that one's names: it is compiled inside of a function that has them."""
    free = self.fn.__code__.co_freevars
    if not free:
        return _executed(self, tree)
    names = ast.arguments(posonlyargs=[], args=[ast.arg(arg=n) for n in free], kwonlyargs=[], kw_defaults=[], defaults=[])
    around = ast.parse("def around(): pass").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.args, around.body = names, tree.body
    code = compile(ast.fix_missing_locations(ast.Module(body=[around], type_ignores=[])), self.filename, "exec")
    inner = _code_in(_code_in(code, "around"), self.fn.__name__)
    namespace = self.fn.__globals__
    for name, value in vars(upstream).items():
        # never over a name of the kernel's own file
        namespace.setdefault(name, value)
    cells = dict(zip(free, self.fn.__closure__, strict=True))
    made = FunctionType(inner, namespace, self.fn.__name__, self.fn.__defaults__, tuple([cells[n] for n in inner.co_freevars]))
    made.__kwdefaults__ = self.fn.__kwdefaults__
    return made


def _code_in(code: CodeType, name: str) -> CodeType:
    """The code of the function of that name which is defined in it."""
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _find_def(self: Any, lines: list[str]) -> int:
    """The line, counted from 1, on which a kernel's `def` stands: the first, since its docstring may hold another."""
    return next((i + 1 for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def install() -> None:
    """Rewrite the kernels that are interpreted from now on."""
    for name, function in _WORDS.items():
        setattr(upstream, _PREFIX + name, function)  # a rewritten kernel sees what that module holds
    upstream.FunctionRewriter._transform_ast = _transform
    upstream.FunctionRewriter._compile_and_exec = _compile_and_exec
    upstream.FunctionRewriter._find_def = _find_def
    for language in (tl, tl.core):
        language.range = _tl_range
    tl.tensor.__bool__ = lambda self: True  # what Triton's own functions see, which ask `if other` of any object
