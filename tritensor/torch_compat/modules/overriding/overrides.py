"""torch.overrides: questions about `__torch_function__`, and the modes that take over whatever is called inside them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from tritensor import fft, linalg, nn, special
from tritensor.ground.call_site import wrapper
from tritensor.ground.providers import provider
from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding import interception, names, protocol
from tritensor.tensor.overriding.protocol import EnableTorchFunction as _enable_torch_function  # noqa: F401
from tritensor.tensor.overriding.protocol import setting

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's class takes functions over, or a mode does. Tensors and Parameters themselves do not."""
    if setting.level == protocol.ALL_DISABLED:
        return False
    return bool(setting.modes) or (not setting.level and any(protocol.takes_over(x) for x in relevant_args))


def has_torch_function_unary(obj: Any) -> bool:
    """has_torch_function of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function of arguments by place."""
    return has_torch_function(args)


@wrapper
def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the innermost mode or the classes of `relevant_args` make of a call of `public_api`.

    Raises TypeError where all of them give NotImplemented, or none takes it over.
    """
    interception.install()  # what their handlers call must ask as well
    values = tuple(relevant_args)
    found = [] if setting.level else protocol.find_overriding(values)
    found = found and protocol.find_overriding(values, tensors=True)
    for x in found:
        handler = x.__torch_function__
        if getattr(handler, "__self__", None) is x:
            warnings.warn(
                "Defining your `__torch_function__ as a plain method is deprecated; define it as a classmethod.",
                DeprecationWarning,
                stacklevel=2,
            )
    name = f"{getattr(public_api, '__module__', '')}.{getattr(public_api, '__name__', public_api)}"
    return protocol.ask(public_api, name, found, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator by which a function asks the arguments that `dispatcher(*args, **kwargs)` names, an iterable of them, before it runs."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or has __torch_function__."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results Tensor.__torch_function__ leaves as they are."""
    return protocol.nowrap_functions()


@functools.cache
def _overridable() -> dict[Any, list[Callable[..., Any]]]:
    interception.install()
    spaces = {"torch": provider(""), "torch.nn.functional": nn.functional, "torch.nn.init": nn.init, "torch.Tensor": Tensor}
    spaces |= {"torch.linalg": linalg, "torch.fft": fft, "torch.special": special}
    found: dict[Any, list[Callable[..., Any]]] = {}
    for f, name in interception.overridden_names():
        space, _, last = (
            name.replace("torch.functional.", "torch.")
            .removesuffix(".__get__")
            .removesuffix(".__set__")
            .removesuffix(".__delete__")
            .rpartition(".")
        )
        hidden = (last.startswith("_") or last.endswith("_")) and space not in ("torch.Tensor", "torch.nn.init")
        if space == "torch.autograd" or last in names.BY_MODES_ALONE or name.endswith(("__set__", "__delete__")) or hidden:
            continue
        found.setdefault(f.__self__ if name.endswith(".__get__") else spaces[space], []).append(f)
    return found


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """By namespace (the module, Tensor, a property of Tensor) the functions that a class of arguments can take over."""
    return _overridable()


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be taken over one of its parameters, which returns -1."""
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for functions in _overridable().values():
        for f in functions:
            kept = "self" if getattr(f, "__name__", "") == "__get__" else _parameters_of(f)
            space: dict[str, Any] = {"_given": None}
            exec(f"def override({kept}):\n    return -1", space)
            found[f] = space["override"]
    return found


def _parameters_of(f: Callable[..., Any]) -> str:
    """A function's parameters as source text, whatever their defaults are."""
    parts: list[str] = []
    starred = False
    for p in inspect.signature(f).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        stars = "*" * (p.kind is p.VAR_POSITIONAL) + "**" * (p.kind is p.VAR_KEYWORD)
        parts.append(stars + p.name + ("" if p.default is p.empty else "=_given"))
    return ", ".join(parts)


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that no class of arguments can take over."""
    interception.install()
    front = provider("")
    known = {f for f, _ in interception.overridden_names() if f not in interception.originals or f.__name__ not in names.BY_MODES_ALONE}
    public = [getattr(front, n) for n in front.__all__ if not n.startswith("_")]
    return {f for f in (*public, *vars(nn.functional).values()) if type(f) is FunctionType and f not in known}


def resolve_name(f: Any) -> str | None:
    """The name under which a function that `__torch_function__` gets stands in the namespaces, None for others."""
    return interception.resolve(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or reads a property of it."""
    return (interception.resolve(func) or "").startswith("torch.Tensor.") or getattr(func, "__name__", "") == "__get__"


def redispatch_function(func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call a function itself, past the class or mode that is being asked now; what it calls in turn is taken over again."""
    given = kwargs or {}
    if func in interception.originals and (setting.modes or protocol.find_overriding((*args, *given.values()))):
        setting.skips = True
    try:
        return func(*args, **given)
    finally:
        setting.skips = False


class TorchFunctionMode:
    """A mode whose `__torch_function__(func, types, args, kwargs)` is asked for every public function that is called inside `with mode:`, those that make
    tensors among them. What the method calls goes on to the mode outside of it."""

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """An instance, as PyTorch made them before `with Mode():` did."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets everything pass."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchFunctionMode) -> None:
    interception.install()
    setting.modes.append(mode)


def _pop_mode() -> Any:
    return setting.modes.pop()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    old = _pop_mode()
    try:
        yield old
    finally:
        _push_mode(old)


def _get_current_function_mode() -> Any:
    return setting.modes[-1] if setting.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(setting.modes)


def _len_torch_function_stack() -> int:
    return len(setting.modes)


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """In it what is called from inside a `__torch_dispatch__` is dispatched again."""
    yield
