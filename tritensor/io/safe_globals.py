"""Register of the classes and functions that the user calls safe: `load` may use them in files that it does not trust."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tritensor.ground.providers import provider

_safe: list[Any] = []  # classes and functions, or pairs of one and the name that files have for it
_value_classes: list[type] = []  # classes of this library whose objects are values: they stay, whatever the user adds and clears
_FORBIDDEN_MODULES = ("sys", "os", "posix", "nt")  # modules of which nothing is ever safe


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """`load` may revive these classes, and call these functions, in files that it does not trust (weights_only=True).

    Each is a class or function, or a pair `(class or function, "module.name")` of one and the name under which files have it.
    Raises TypeError or ValueError for a tuple that is no such pair.
    """
    added = list(safe_globals)
    for one in added:
        if isinstance(one, tuple) and len(one) != 2:
            raise ValueError(f"add_safe_globals: {one!r} is no pair of a class and the name that files have for it")
        if isinstance(one, tuple) and not isinstance(one[1], str):
            raise TypeError(f"add_safe_globals: {one!r}: the second of a pair is a name, 'module.name'")
    _safe.extend(added)


def add_value_class(kind: type) -> None:
    """Count objects of a class of this library as values, which every file may hold."""
    _value_classes.append(kind)


def get_safe_globals() -> list[Any]:
    """The classes and functions that `load` may revive beside values."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Allow values alone again."""
    _safe.clear()


class safe_globals:
    """`with safe_globals([Model, Layer]): load(f)`: these may be revived within."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.added = list(safe_globals)

    def __enter__(self) -> None:
        self.before = list(_safe)
        add_safe_globals(self.added)

    def __exit__(self, *_: Any) -> None:
        _safe[:] = self.before


def find_safe(module: str, name: str) -> Any:
    """The safe object of that name, or None. Nothing is imported for it, and no module's `__getattr__` runs."""
    if module.partition(".")[0] in _FORBIDDEN_MODULES:  # whoever allowed os.system by mistake is protected
        return None
    there = find_imported(module, name)
    for safe in (*_value_classes, *_safe):
        it, called = safe if isinstance(safe, tuple) else (safe, None)  # a class may have moved since the file was written
        if called == f"{module}.{name}" or (there is not None and it is there):
            return it
        if (module, name) == (getattr(it, "__module__", None), getattr(it, "__qualname__", None)):
            return it
    return None


def find_imported(module: str, name: str) -> Any:
    """The object of that name in a module that the program has imported, or None. A class's attributes count, a module's `__getattr__` does not."""
    there: Any = sys.modules.get(module)
    for part in name.split("."):
        there = getattr(there, "__dict__", {}).get(part)
    return there


def find_named_tuple(module: str, name: str) -> Any:
    """The class of named tuples of that name in a module that the program has imported, or in return_types; None where there is none."""
    if module in ("torch.return_types", "tritensor.return_types"):
        module = provider("return_types").__name__
    it = find_imported(module, name)
    fields = getattr(it, "_fields", None)
    return it if isinstance(it, type) and issubclass(it, tuple) and type(fields) is tuple else None
