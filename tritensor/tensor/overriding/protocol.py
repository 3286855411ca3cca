"""The protocol of `__torch_function__`: which arguments of a call take it over, in which order they are asked, and what a subclass of Tensor does by itself.

Little of it runs before a program has such a class, or enters a mode: `interception` is imported and puts it on the road then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tritensor.ground.call_site import wrapper
from tritensor.ground.device import device
from tritensor.ground.dtypes import DType
from tritensor.ground.providers import provider
from tritensor.ground.strides import MemoryFormat
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api import arguments
from tritensor.tensor.size import Size

ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = 0, 1, 2


class Setting(threading.local):
    """What a thread has switched off, the modes that it is inside of, the innermost last, and whether its next call is to reach the function itself."""

    installed = False  # of all threads: whether functions ask already

    def __init__(self) -> None:
        self.level = ENABLED
        self.modes: list[Any] = []
        self.lower_modes: list[Any] = []  # those below autograd (see tritensor/torch_dispatch)
        self.skips = False


setting = Setting()

# Set by tritensor.torch_dispatch once a program has a class or mode below autograd: what those make of a call, or NotImplemented.
tell: Callable[..., Any] | None = None

# Types whose objects take nothing over and hold nothing that does: calls of these alone are not looked at closer.
PLAIN: set[type] = {
    Tensor, int, float, bool, complex, str, type(None), slice, type(...), Size, DType, device, MemoryFormat, np.ndarray, np.float64, np.int64,
}  # fmt: skip


class _Disabled:
    """`torch._C._disabled_torch_function_impl`, which a class takes for its __torch_function__ to say that it takes nothing over. No function, which an
    instance would bind."""

    __name__ = __qualname__ = "_disabled_torch_function_impl"

    @wrapper
    def __call__(self, func: Callable[..., Any], types: Any = (), args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


disabled_torch_function = _Disabled()


class _DisabledDispatch:
    """`torch._C._disabled_torch_dispatch_impl`: what Tensor has for its __torch_dispatch__."""

    __name__ = __qualname__ = "_disabled_torch_dispatch_impl"

    def __call__(self, func: Callable[..., Any], types: Any = (), args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


disabled_torch_dispatch = _DisabledDispatch()


def dispatches(cls: type) -> bool:
    """Whether a class of tensors has a __torch_dispatch__ of its own, which is asked below autograd (see tritensor/torch_dispatch)."""
    found: Any = getattr(cls, "__torch_dispatch__", None)
    return found is not None and found is not disabled_torch_dispatch


def takes_over(x: Any) -> bool:
    """Whether an object's class has a __torch_function__ of its own: it is asked instead of the functions that it is given to."""
    cls: Any = type(x)
    if cls in PLAIN:
        return False
    if (real := cls.__dict__.get("becomes")) is not None:  # a view that has yet to find its way in the graph (see aliasing/views.py)
        return real not in PLAIN and getattr(real, "__torch_function__", None) is not disabled_torch_function
    found = getattr(cls, "__torch_function__", None)
    return found is not None and found is not disabled_torch_function and not isinstance(x, type)


def find_overriding(values: Iterable[Any], found: list[Any] | None = None, tensors: bool = False) -> list[Any]:
    """The arguments that take a call over, one of each class, also of those inside lists and tuples: in the order that they are asked in, a subclass before
    its superclasses, else from left to right. With `tensors` a plain Tensor is one of them."""
    found = [] if found is None else found
    for x in values:
        cls = type(x)
        if cls in PLAIN and not (tensors and cls is Tensor):
            continue
        if cls is list or cls is tuple:
            find_overriding(x, found, tensors)
        elif (cls is Tensor or takes_over(x)) and not any(type(y) is cls for y in found):
            place = next((i for i, y in enumerate(found) if issubclass(cls, type(y))), len(found))
            found.insert(place, x)
    return found


def class_of(x: Any) -> type:
    """The class that a handler sees of an argument."""
    return type(x).__dict__.get("becomes") or type(x)


def ask(func: Callable[..., Any], name: str, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """What the innermost mode, or else the arguments that take over, make of a call of a public function. Raises TypeError where all give NotImplemented."""
    types = tuple([class_of(x) for x in found])
    given = () if kwargs is None else (kwargs,)  # as PyTorch, which leaves out what is not there
    modes = setting.modes
    if modes and setting.level != ALL_DISABLED:
        mode = modes.pop()  # what its handler calls goes to the next one
        try:
            result = mode.__torch_function__(func, types, args, *given)
        finally:
            modes.append(mode)
        if result is not NotImplemented:
            return result
    for x, cls in zip(found, types, strict=True):
        handler: Any = x.__torch_function__ if cls is type(x) else cls.__torch_function__  # type: ignore[attr-defined]
        result = handler(func, types, args, *given)
        if result is not NotImplemented:
            return result
    asked = ", ".join([*(["a mode"] if modes else []), *(c.__qualname__ for c in types)]) or "nobody: no argument has one"
    raise TypeError(
        f"no implementation found for '{name}': Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented, of {asked}; "
        "let one of them answer, or call Tensor.__torch_function__ for what it does not know"
    )


def awaken(args: Any, kwargs: Mapping[str, Any] | None = None) -> bool:
    """Called where a call is about to be refused: where an argument's class overrides and nobody knew of it, functions ask from now on. True then: the call
    is to be made again."""
    if setting.installed or not find_overriding((*args, *(kwargs or {}).values())):
        return False
    install()
    return True


def install() -> None:
    """Let every public function ask."""
    provider("tensor.overriding.interception").install()


arguments.awaken = awaken  # type: ignore[assignment]
subclass_watchers: list[Callable[[type[Tensor]], None]] = []  # told of each new class of tensors


def _notice_subclass(cls: type[Tensor], **settings: Any) -> None:
    super(Tensor, cls).__init_subclass__(**settings)
    for watch in subclass_watchers:
        watch(cls)
    if dispatches(cls):
        provider("torch_dispatch.interpreter")  # which puts itself in place
        if not any(["__torch_function__" in vars(c) for c in cls.__mro__[: cls.__mro__.index(Tensor)]]):
            cls.__torch_function__ = disabled_torch_function  # type: ignore[attr-defined]  # one handler is enough, as in PyTorch
    handler = getattr(cls, "__torch_function__", None)
    if (
        not setting.installed
        and not cls.__module__.startswith("tritensor.")
        and (handler is not disabled_torch_function or dispatches(cls))
    ):
        install()


Tensor.__init_subclass__ = classmethod(_notice_subclass)  # type: ignore[method-assign, assignment]


class _Level:
    """A context manager in which less is taken over."""

    level = ENABLED

    def __enter__(self) -> None:
        self.__dict__.setdefault("before", []).append(setting.level)
        setting.level = self.level if self.level == ENABLED else max(self.level, setting.level)

    def __exit__(self, *exc: object) -> None:
        setting.level = self.__dict__["before"].pop()


class DisableTorchFunctionSubclass(_Level):
    """`torch._C.DisableTorchFunctionSubclass`: in it the classes of arguments take nothing over, modes do."""

    level = SUBCLASSES_DISABLED


class DisableTorchFunction(_Level):
    """`torch._C.DisableTorchFunction`: in it nothing is taken over."""

    level = ALL_DISABLED


class EnableTorchFunction(_Level):
    """`torch.overrides._enable_torch_function`: in it calls are taken over again."""


@wrapper
def default_torch_function(cls: type, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    """Tensor.__torch_function__, what a subclass does that defines none, and may call for what it does not treat itself: the function is called as if all
    arguments were Tensors, and Tensors among its results become instances of the class, memory and graph shared.

    NotImplemented where another argument's class is no superclass of this one.
    """
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in nowrap_functions() else convert(result, cls)


def nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results stay what they are: they are tensors of somebody else."""
    fields: Any = Tensor
    return {fields._base.__get__, fields.grad.__get__}


def convert(result: Any, cls: type) -> Any:
    """A result with the Tensors in it, also in lists and tuples, as instances of cls."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, list | tuple) and type(result) is not Size:
        made: Any = [convert(r, cls) for r in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    return result


Tensor.__torch_function__ = classmethod(default_torch_function)  # type: ignore[attr-defined]
Tensor.__torch_dispatch__ = disabled_torch_dispatch  # type: ignore[attr-defined]


def meet(cls: Any) -> None:
    """Called where a tensor becomes an instance of a class: a class of our own with a handler of its own lets functions ask from its first instance on."""
    if not setting.installed and getattr(cls.__torch_function__, "__func__", default_torch_function) is not default_torch_function:
        install()
