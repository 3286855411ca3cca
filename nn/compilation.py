"""Compilation of a module in place; and the notice of what PyTorch would compile and is here run as Python, given once, however many ask."""

from __future__ import annotations

import warnings
from typing import Any

from tritensor.ground.providers import provider
from tritensor.nn.hooks import Hooks

_given: set[type[Warning]] = set()


def warn_nothing_compiled(name: str, stacklevel: int = 3, category: type[Warning] = UserWarning) -> None:
    """Warn, the first time that anything is to be compiled."""
    if category not in _given:  # once: a model of many modules would say it a hundred times
        _given.add(category)
        said = f"{name}: nothing is compiled; functions and modules run as Python, with the same results"
        warnings.warn(said, category, stacklevel=stacklevel)


def compile(self: Any, *args: Any, **kwargs: Any) -> None:
    """Compile this module's calls in place, hooks among them. Arguments are those of `tritensor.compile`. Copies, and files, are not compiled."""
    made = provider("compilation.compile").compile(type(self)._call_impl, *args, **kwargs)
    if self.__dict__.get("_hooks") is None:
        self.__dict__["_hooks"] = Hooks()
    self._hooks.compiled = made


def _get_compiled(self: Any) -> Any:
    own = self.__dict__.get("_hooks")
    return None if own is None else own.compiled


def _set_compiled(self: Any, made: Any) -> None:
    """What a module's call is from now on: a function of the call's arguments; None: what it was before it was compiled."""
    if self.__dict__.get("_hooks") is None:
        self.__dict__["_hooks"] = Hooks()
    self._hooks.compiled = None if made is None else lambda _, *args, **kwargs: made(*args, **kwargs)


compiled_call = property(_get_compiled, _set_compiled)
