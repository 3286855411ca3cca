"""Other functions in the place of a library's own while somebody looks, and everything back as it was: what nobody looks at costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tritensor.ground.process import locks

_MISSING: Any = object()
changing = locks.lock()  # two threads that begin or end a profile at once
_active: list[Patches] = []


class Patches:
    """What was put in other places, to be taken back in reverse order. Where other patches lie over ours, theirs are told what will be there without us; where
    somebody else's work does, it is left with ours below, which is off."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []  # owner, name, what was there, what is there now
        self._undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class, module or object; what its own dictionary held comes back."""
        if self not in _active:
            _active.append(self)
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._done.append((owner, name, before, vars(owner)[name]))

    def everywhere(self, replaced: dict[Any, Any]) -> None:
        """Put functions in the place of others in every module of the library that holds them by name."""
        by_id = {id(old): new for old, new in replaced.items()}
        for module_name, module in tuple(sys.modules.items()):
            if module is None or not module_name.startswith("tritensor"):
                continue
            for name, value in tuple(vars(module).items()):
                if id(value) in by_id:
                    self.put(module, name, by_id[id(value)])

    def at_end(self, undo: Callable[[], None]) -> None:
        """Call this when everything else is back."""
        self._undo.append(undo)

    def restore(self) -> None:
        """Put everything back."""
        while self._done:
            owner, name, before, ours = self._done.pop()
            if vars(owner).get(name, _MISSING) is not ours:
                for other in _active:
                    other._without(owner, name, ours, before)
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        while self._undo:
            self._undo.pop()()
        if self in _active:
            _active.remove(self)

    def _without(self, owner: Any, name: str, gone: Any, before: Any) -> None:
        """What was below ours is taken away: below is what it covered."""
        self._done = [(o, n, before if o is owner and n == name and b is gone else b, v) for o, n, b, v in self._done]
