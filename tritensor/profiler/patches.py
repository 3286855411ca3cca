"""Patches of the library's functions while a profile is on, all taken back afterwards: without a profile nothing is paid."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tritensor.ground.process import locks

_MISSING: Any = object()
changing = locks.lock()  # two threads that begin or end a profile at once
_active: list[Patches] = []


class Patches:
    """Attributes that were replaced, to be put back in reverse order."""

    # Where other patches lie over one of these, they are told what will be below them; where another program's work does, it stays, with
    # the patch below it, which is off.

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []  # owner, name, value before, value now
        self._undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class, module or object; restore() puts back what its own dictionary held."""
        if self not in _active:  # only those with something in place are asked by others
            _active.append(self)
        before = vars(owner).get(name, _MISSING)  # not getattr: an inherited attribute is to be inherited again
        setattr(owner, name, value)
        self._done.append((owner, name, before, vars(owner)[name]))

    def replace_everywhere(self, replaced: dict[Any, Any]) -> None:
        """Replace functions in every module of the library that holds them by name."""
        by_id = {id(old): new for old, new in replaced.items()}
        for module_name, module in tuple(sys.modules.items()):  # `from x import f` has copied the function into the importer
            if module is None or not module_name.startswith("tritensor"):
                continue
            for name, value in tuple(vars(module).items()):
                if id(value) in by_id:
                    self.put(module, name, by_id[id(value)])

    def at_end(self, undo: Callable[[], None]) -> None:
        """Call this once everything is put back."""
        self._undo.append(undo)

    def restore(self) -> None:
        """Put everything back."""
        while self._done:
            owner, name, before, mine = self._done.pop()
            if vars(owner).get(name, _MISSING) is not mine:
                for other in _active:
                    other._uncover(owner, name, mine, before)
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        while self._undo:
            self._undo.pop()()
        if self in _active:
            _active.remove(self)

    def _uncover(self, owner: Any, name: str, gone: Any, before: Any) -> None:
        """Note that the value below one of these patches is gone: below is what that one covered."""
        self._done = [(o, n, before if o is owner and n == name and b is gone else b, v) for o, n, b, v in self._done]
