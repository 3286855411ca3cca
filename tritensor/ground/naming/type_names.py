"""Names of types: PyTorch's where a script's `import torch` is answered, the library's own elsewhere, and always the own ones in pickles."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

_Type = TypeVar("_Type", bound=type)


class Names(NamedTuple):
    """Module and name of a type, here and in PyTorch."""

    module: str
    name: str
    their_module: str
    their_name: str


_names: dict[type, Names] = {}
_in_use = {"torch": False}


def named(their_module: str, their_name: str = "") -> Callable[[_Type], _Type]:
    """A decorator: the type is called so where `import torch` is answered: in its repr, and by `__module__`, `__name__` and `__qualname__`."""

    def register(cls: _Type) -> _Type:
        add(cls, their_module, their_name or cls.__name__)
        return cls

    return register


def add(cls: type, their_module: str, their_name: str) -> None:
    """What `named` does, of a type that exists. A type that is known keeps the names that it has."""
    if cls not in _names:
        cls.__annotations__ = {}  # typing.get_type_hints reads a class's words in the module that its name tells, where they mean nothing
        _names[cls] = Names(cls.__module__, cls.__qualname__, their_module, their_name)
        if _in_use["torch"]:
            _call(cls, their_module, their_name)


def use_their_names(wanted: bool) -> bool:
    """Call the types as PyTorch does, or by their own names; returns what was before."""
    before, _in_use["torch"] = _in_use["torch"], wanted
    if wanted is not before:
        for cls, n in _names.items():
            _call(cls, *((n.their_module, n.their_name) if wanted else (n.module, n.name)))
    return before


def _call(cls: type, module: str, name: str) -> None:
    cls.__module__, cls.__name__, cls.__qualname__ = module, name.rpartition(".")[2], name


class OwnName:
    """A type inside a pickle: it is written by this library's name for it, and read back as the type."""

    __slots__ = ("cls",)

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __call__(self, *args: Any) -> Any:
        return self.cls(*args)

    def __reduce__(self) -> Any:
        names = _names[self.cls]
        return find, (names.module, names.name)


def own_name(cls: Any) -> Any:
    """What a `__reduce__` gives for a type: the type, in an OwnName where it goes by PyTorch's name at the moment."""
    return OwnName(cls) if _in_use["torch"] and cls in _names else cls


def own_constant(cls: type, name: str) -> Any:
    """What a `__reduce__` gives for an object that stands in the module of its type under a name."""
    return (find, (_names[cls].module, name)) if _in_use["torch"] else name


def find(module: str, name: str) -> Any:
    """What a module of this library calls by a name."""
    return getattr(importlib.import_module(module), name)


def new_instance(cls: Any) -> Any:
    """An object without its `__init__`: its state follows in the pickle."""
    cls = cls.cls if type(cls) is OwnName else cls  # copy.copy hands it over as it is
    return cls.__new__(cls)
