"""Settings of PyTorch's compilers, which scripts make before they call torch.compile: known by name, remembered, and without effect here."""

from __future__ import annotations

import contextlib
import difflib
import sys
import types
from collections.abc import Iterator
from typing import Any


class Settings(types.ModuleType):
    """A module of settings; a name with a point in it, `triton.cudagraphs`, is one of a module below. Raises AttributeError for a name that it has not."""

    def __init__(self, path: str, defaults: dict[str, Any]) -> None:
        super().__init__(f"tritensor.{path}", f"torch.{path}: settings of PyTorch's compiler; they are remembered and change nothing.")
        sys.modules[self.__name__] = self  # `import torch._inductor.config` finds it
        below: dict[str, dict[str, Any]] = {}
        for name, value in defaults.items():
            group, _, last = name.partition(".")
            if last:
                below.setdefault(group, {})[last] = value
            else:
                self.__dict__[name] = value
        self.__dict__.update({group: Settings(f"{path}.{group}", values) for group, values in below.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:  # a misspelt setting would be remembered and change nothing, unseen
            raise AttributeError(self._unknown(name))
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, [n for n in self.__dict__ if not n.startswith("_")], 1)
        said = f"did you mean {near[0]}?" if near else "it would change nothing here: drop it"
        return f"{self.__name__.removeprefix('tritensor.')} has no setting {name!r}; {said}"

    @contextlib.contextmanager
    def patch(self, changes: str | dict[str, Any] | None = None, value: Any = None, **more: Any) -> Iterator[None]:
        """Within the `with`, or the decorated function, settings have other values: a name and a value, a dict, or keywords."""
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        before = [(*self._place(name), new) for name, new in wanted.items()]
        kept = [getattr(place, last) for place, last, _ in before]
        for place, last, new in before:
            setattr(place, last, new)
        try:
            yield
        finally:
            for (place, last, _), old in zip(before, kept, strict=True):
                setattr(place, last, old)

    def _place(self, name: str) -> tuple[Settings, str]:
        """The module that holds a setting, and its name there."""
        group, _, last = name.partition(".")
        if not last:
            return self, name
        below = getattr(self, group)
        if not isinstance(below, Settings):
            raise AttributeError(f"{self.__name__.removeprefix('tritensor.')}.{group} holds no settings; {name} is not one")
        return below, last
