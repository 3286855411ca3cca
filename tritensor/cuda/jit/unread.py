"""Triton's names for files of kernels while Triton is not imported: `@triton.jit` keeps the function, and importing Triton makes it a kernel, in place.

Importing Triton takes a process longer than all of tritensor, and on the CPU no kernel is ever compiled. A file of kernels says `import triton` all the same:
its own `__import__` (see `prepare`) gives it these names, which know what is written outside of functions there: `jit`, `constexpr`, and names to be read
later. Anything else imports Triton. Under TRITON_INTERPRET it is imported at once, as the interpreter has functions of another class.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from tritensor.ground.process.locks import importing, rlock

_LATER = {
    "triton": ("language",),
    "triton.language": ("extra",),
    "triton.language.extra": ("libdevice",),
}  # names that are read within kernels alone

_making = rlock()
_functions: list[Unread] = []
_constants: list[Constexpr] = []
_globals: list[dict[str, Any]] = []  # of the files that hold names of this file


class Unread:
    """A function under @triton.jit before Triton is imported; then of the class that Triton makes of it."""

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        self.__dict__.update(
            fn=fn, _options=options, __doc__=fn.__doc__, __name__=fn.__name__, __qualname__=fn.__qualname__, __module__=fn.__module__,
            __globals__=fn.__globals__,
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        import_triton()
        return getattr(self, name)

    def __getitem__(self, grid: Any) -> Any:
        import_triton()
        return self[grid]

    def __call__(self, *args: Any, **options: Any) -> Any:
        import_triton()
        return self(*args, **options)

    def read(self) -> None:
        """Become what Triton makes of the function."""
        from triton import jit

        from tritensor.cuda.jit.deferred import deferred_jit

        with deferred_jit():
            made = jit(self.__dict__["fn"], **self.__dict__["_options"])
        self.__dict__.clear()
        self.__dict__.update(made.__dict__)
        self.__class__ = type(made)


class Constexpr:
    """A number under tl.constexpr before Triton is imported."""

    def __init__(self, value: Any) -> None:
        self.value = value
        with _making:
            if _state.read:
                self.read()
            else:
                _constants.append(self)

    def read(self) -> None:
        """Become Triton's own."""
        from triton.language import constexpr

        self.__class__ = _with_base(type(self), constexpr)  # type: ignore[assignment, arg-type]
        constexpr.__init__(self, self.value)  # type: ignore[arg-type]


@functools.cache
def _with_base(cls: type, constexpr: type) -> type:
    """A class derived from Constexpr as one derived from Triton's: it keeps its methods."""
    own = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    return constexpr if cls is Constexpr else type(cls.__name__, (_with_base(cls.__bases__[0], constexpr),), own)


class Name:
    """A module or object below Triton, by its path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        if name == "path":  # of a copy that is being made
            raise AttributeError(name)
        if name in _LATER.get(self.path, ()):
            return Name(f"{self.path}.{name}")
        if self.path == "triton" and name == "jit":
            return _jit
        if self.path == "triton.language" and name == "constexpr":
            return Constexpr
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        import_triton()
        return getattr(self.real(), name)

    def real(self) -> Any:
        """What stands at the path."""
        above, _, name = self.path.rpartition(".")
        if not above:
            return sys.modules["triton"]
        try:
            return importlib.import_module(self.path)
        except ModuleNotFoundError:
            return getattr(importlib.import_module(above), name)


def _jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """triton.jit, with options or without."""
    if fn is None:
        return lambda fn: _jit(fn, **options)
    with _making:
        made = Unread(fn, options)
        if _state.read:
            made.read()
        else:
            _functions.append(made)
    return made


class _State:
    read = False  # whether Triton has been imported, to its end


_state = _State()


def is_read() -> bool:
    """Whether Triton has been imported to its end."""
    return _state.read


def is_put_off() -> bool:
    """Whether files of kernels do without Triton for now: it is not imported, and does not interpret."""
    return not _state.read and "TRITON_INTERPRET" not in os.environ


def import_triton() -> None:
    """Import Triton; the hook on its import (triton_kernels/import_hook.py) calls `read_all`."""
    with importing():  # no other thread forks meanwhile
        importlib.import_module("triton")
    read_all()


def read_all() -> None:
    """Make kernels of all functions that wait, and put Triton's own names in the place of those of this file. Called when Triton has been imported."""
    with importing(), _making:  # a fork in another thread waits for the end
        if _state.read:
            return
        for constant in _constants:
            constant.read()
        for names in _globals:
            for name, value in tuple(names.items()):
                if type(value) is Name:
                    names[name] = value.real()
            names["__builtins__"] = builtins
        _state.read = True
        for function in _functions:
            function.read()
        for kept in (_constants, _globals, _functions):
            kept.clear()


def follow(names: dict[str, Any]) -> dict[str, Any]:
    """The same names, a copy of a file's: those of this file among them become Triton's own, as the file's do."""
    with _making:
        if not _state.read:
            _globals.append(names)
    return names


def prepare(module: types.ModuleType) -> None:
    """Let a file of kernels that is about to be executed find these names under `import triton`, unless Triton is imported already or interprets."""
    with _making:
        if is_put_off():
            vars(module)["__builtins__"] = _BUILTINS
            _globals.append(vars(module))


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """`__import__` of a file of kernels."""
    if level == 0 and name.partition(".")[0] == "triton" and not _state.read:
        return Name(name if fromlist else "triton")
    return builtins.__import__(name, globals, locals, fromlist, level)


_BUILTINS = {**vars(builtins), "__import__": _import}
