"""Asking: which modes and classes are handed a call below autograd, in which order, and what a thread is inside of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from tritensor.autograd.modes import state
from tritensor.ground.call_site import wrapper
from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding import protocol
from tritensor.tensor.overriding.protocol import dispatches


class Setting(threading.local):
    """What a thread is inside of: how many calls of handlers deep it is below autograd; whether handlers are switched off."""

    depth = 0
    off = False


setting = Setting()


class below_autograd:
    """A context manager for what is called below autograd: it is recorded by nobody."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = state.enabled
        state.enabled = False
        setting.depth += 1

    def __exit__(self, *exc: object) -> None:
        setting.depth -= 1
        state.enabled = self.before


class DisableTorchDispatch:
    """`torch._C._DisableTorchDispatch`: in it no handler is asked, and a tensor of a class that has one is what it was made of."""

    def __enter__(self) -> None:
        self.__dict__.setdefault("before", []).append(setting.off)
        setting.off = True

    def __exit__(self, *exc: object) -> None:
        setting.off = self.__dict__["before"].pop()


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [t for part in value for t in tensors_of(part)]


def find_dispatching(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors whose classes dispatch, one of each class: a subclass before its superclasses, else from left to right."""
    found: list[Tensor] = []
    for x in tensors:
        if type(x) is not Tensor and dispatches(type(x)) and not any([type(y) is type(x) for y in found]):
            found.insert(next((i for i, y in enumerate(found) if issubclass(type(x), type(y))), len(found)), x)
    return found


@wrapper
def ask(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost mode, or else the classes of the arguments, make of a call; what the function itself gives where nobody takes it.

    Raises TypeError where all that were asked give NotImplemented.
    """
    function: Callable[..., Any] = func.find_function()
    if setting.off:
        return function(*args, **kwargs)
    found = find_dispatching(tensors_of((args, kwargs)))
    types = tuple([type(x) for x in found])
    modes = protocol.setting.lower_modes
    if not modes and not found:
        return function(*args, **kwargs)
    if modes:
        mode = modes.pop()  # what its handler calls goes to the next one
        try:
            with below_autograd():
                result = mode.__torch_dispatch__(func, types, args, kwargs)
        finally:
            modes.append(mode)
        if result is not NotImplemented:
            return result
    for x in found:
        with below_autograd():
            result = type(x).__torch_dispatch__(func, types, args, kwargs)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    asked = ", ".join([*(["a mode"] if modes else []), *(c.__qualname__ for c in types)])
    raise TypeError(
        f"Multiple dispatch failed for '{func}': all __torch_dispatch__ handlers returned NotImplemented, of {asked}; let one of them answer, or call "
        "func(*args, **kwargs) with the tensors inside for what it does not know"
    )
