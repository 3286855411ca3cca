"""Interception: public functions, methods, operators and properties ask for overriding arguments and modes, from the first class or mode on that overrides.

A function object stays the one that programs hold (`from torch import add`, a dictionary by functions): its code is replaced by a call of an entry, and a twin
keeps the code that it had. So a program without such a class pays nothing, and one with it finds every function, however it came by it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tritensor.dispatch.plans.door_code import copy_function
from tritensor.ground.call_site import mark_wrapper, wrapper
from tritensor.ground.process import locks
from tritensor.ground.providers import provider
from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding import names, protocol
from tritensor.tensor.overriding.protocol import PLAIN, setting, takes_over
from tritensor.tensor.public_api.publish import public

_lock = locks.lock()
originals: dict[Callable[..., Any], Callable[..., Any]] = {}  # by the function object that programs hold, what has its code
_shown: dict[Any, str] = {}  # how messages name what handlers are given
_OPERANDS = (Tensor, bool, int, float, complex, np.generic, np.ndarray)


def install() -> None:
    """Let every public function ask. Done once."""
    with _lock:
        # Another thread was first.
        if setting.installed:
            return
        front = vars(provider(""))
        for space in names.SPACES:
            _intercept_space(f"torch.{space}", vars(front[space]))
        _intercept_space("torch", public)
        _intercept_space("torch", {name: front[name] for name in ("numel", "is_floating_point")})
        _intercept_space("torch.autograd", {name: vars(front["autograd"])[name] for name in ("grad", "backward")})
        _intercept_space("torch.nn.functional", {n: f for n, f in vars(provider("nn.functional")).items() if not n.startswith("_")})
        init = vars(provider("nn.init"))
        _intercept_space("torch.nn.init", {name: init[name] for name in names.INIT})
        _intercept_operators()
        _intercept_methods()
        protocol.Setting.installed = True


def resolve(func: Any) -> str | None:
    """`torch.Tensor.add` for what that is, as torch.overrides.resolve_name says it; None for what nobody overrides."""
    install()
    return _shown.get(func)


def overridden_names() -> list[tuple[Any, str]]:
    """What handlers are given, each with its name."""
    install()
    return list(_shown.items())


def _intercept_space(space: str, functions: Mapping[str, Any]) -> None:
    for name, f in functions.items():
        if type(f) is FunctionType and name not in names.NEVER:
            by_modes, bound = name in names.BY_MODES_ALONE, names.is_bound(space, name)
            shown = f"torch.functional.{name}" if bound and space == "torch" and name != "lobpcg" else f"{space}.{name}"
            if f not in _shown or space == "torch.nn.functional":  # under which it is known where it stands in torch, too
                _shown[f] = shown
            _intercept(f, lambda original, f=f, m=by_modes, b=bound: _entry(original, f, m, b))  # type: ignore[misc]


def _intercept_operators() -> None:
    for python, name in names.OPERATORS.items():
        f: Any = inspect.getattr_static(Tensor, python)
        func = getattr(Tensor, name) if name else f
        _shown.setdefault(f, f"torch.Tensor.{python}")
        _intercept(f, functools.partial(_operator_entry, func=func, python=python))


def _intercept_methods() -> None:
    for cls in Tensor.__mro__[:-1]:
        for name, value in list(vars(cls).items()):
            if name in names.NEVER_METHODS or (name.startswith("_") and name not in names.PRIVATE_METHODS):
                continue
            if type(value) is FunctionType:
                _shown.setdefault(value, f"torch.Tensor.{name}")
                bound = names.is_bound("torch.Tensor", name)
                _intercept(value, lambda original, f=value, b=bound: _entry(original, f, False, b))  # type: ignore[misc]
            elif type(value) is property:
                for part, kind in ((value.fget, "__get__"), (value.fset, "__set__"), (value.fdel, "__delete__")):
                    func = getattr(value, kind)
                    _shown.setdefault(func, f"torch.Tensor.{name}.{kind}")
                    if type(part) is FunctionType:
                        _intercept(part, lambda original, f=func: _entry(original, f, False, False))  # type: ignore[misc]


def _intercept(f: FunctionType, make_entry: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Let a function object call the entry that is made for a twin of it."""
    if f in originals:
        return
    original = copy_function(f)
    originals[f] = original
    f.__dict__.setdefault("__wrapped__", original)  # where inspect.signature looks
    f.__code__ = _code_calling(make_entry(original), f.__code__)


_PLACE = "the entry"


def _code_calling(entry: Callable[..., Any], old: CodeType) -> CodeType:
    """Code for a function object with old's free variables that hands its arguments to `entry`."""
    made = _template(old.co_freevars)
    code = made.replace(
        co_consts=tuple([entry if c == _PLACE else c for c in made.co_consts]), co_name=old.co_name, co_qualname=old.co_qualname,
        co_filename=old.co_filename, co_firstlineno=old.co_firstlineno,
    )  # fmt: skip
    return mark_wrapper(code)


@functools.cache
def _template(free: tuple[str, ...]) -> CodeType:
    """Code with those free variables, which must be a function object's own when it takes the code. They stand behind the return: nothing reads them."""
    lines = [f"def outer({', '.join(free)}):", " def call(*args, **kwargs):", f"  entry = {_PLACE!r}", "  return entry(args, kwargs)"]
    lines += [f"  ({', '.join(free)},)"] * bool(free) + [" return call"]
    space: dict[str, Any] = {}
    exec("\n".join(lines), space)
    code: CodeType = space["outer"](*free).__code__
    return code


def _entry(original: Callable[..., Any], func: Any, by_modes: bool, bound: bool) -> Callable[..., Any]:
    @wrapper
    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not kwargs and not setting.modes and not setting.lower_modes:
            for x in args:
                if type(x) not in PLAIN:
                    break
            else:
                return original(*args)
        return _call(original, func, by_modes, bound, args, kwargs)

    return enter


def _operator_entry(original: Callable[..., Any], func: Any, python: str) -> Callable[..., Any]:
    """The same of an operator: handlers are asked about operands that the tensor could have taken, or that override; and TypeError means NotImplemented, so
    that Python goes on to the other operand's class."""
    any_operand, bound = python in names.ANY_OPERAND, python in names.BOUND_METHODS

    @wrapper
    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for x in args[1:]:
            if not (any_operand or isinstance(x, _OPERANDS) or type(x) is list or type(x) is tuple or takes_over(x)):
                return original(*args)
        # PyTorch's == is two functions: of a tensor of such a class, and of a plain one.
        own = Tensor.eq if python == "__eq__" and not setting.modes and not takes_over(args[0]) else func
        try:
            return _call(original, own, False, bound, args, kwargs)
        except TypeError:
            # Of a call that nobody took over it is the tensor's own answer.
            if setting.level == protocol.ALL_DISABLED or not (setting.modes or (not setting.level and protocol.find_overriding(args))):
                raise
            return NotImplemented

    return enter


@wrapper
def _call(original: Callable[..., Any], func: Any, by_modes: bool, bound: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a public function: of those that override it, if there are any, else of the function itself."""
    if setting.skips:
        setting.skips = False
        return _compute(original, func, args, kwargs)
    if setting.level == protocol.ALL_DISABLED:
        return _compute(original, func, args, kwargs)
    values = (*args, *kwargs.values()) if kwargs else args
    if by_modes:
        values = (kwargs.get("out"),)
    found = [] if setting.level else protocol.find_overriding(values)
    if not found and not setting.modes:
        if by_modes and not setting.level:
            with protocol.DisableTorchFunctionSubclass():  # its arguments are data, and asked by nobody
                return _compute(original, func, args, kwargs)
        return _compute(original, func, args, kwargs)
    if "out" in kwargs and kwargs["out"] is None:
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    if bound:
        args, kwargs = _bind(original, args, kwargs, all_named=_shown.get(func, "").startswith("torch.nn.init."))
        found = protocol.find_overriding(values, tensors=True) if found or not setting.level else found
    return protocol.ask(func, _shown.get(func) or repr(func), found, args, kwargs if kwargs or bound else None)


@wrapper
def _compute(original: Callable[..., Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function's own result, or that of classes and modes below autograd."""
    if protocol.tell is not None:
        result = protocol.tell(_shown.get(func), args, kwargs)
        if result is not NotImplemented:
            return result
    return original(*args, **kwargs)


@functools.cache
def _parameters(f: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(f)


def _bind(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], all_named: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What must be given by place, the rest, or all, by name with its defaults."""
    signature = _parameters(f)
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs  # older orders and names of arguments, which the function itself knows
    given.apply_defaults()
    by_place: list[Any] = []
    by_name: dict[str, Any] = {}
    for name, value in given.arguments.items():
        p = signature.parameters[name]
        if p.kind is p.VAR_POSITIONAL:
            by_place += value
        elif p.kind is p.VAR_KEYWORD:
            by_name |= value
        elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY and not all_named:
            by_place.append(value)
        else:
            by_name[name] = value
    return tuple(by_place), by_name
