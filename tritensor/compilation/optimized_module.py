"""OptimizedModule: a module whose calls are compiled, which hands all else on to it."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from tritensor.compilation.backends import is_eager
from tritensor.compilation.calls import in_region, opaque
from tritensor.compilation.settings import Settings
from tritensor.nn.module import Module


class OptimizedModule(Module):
    """What `compile` gives for a module, which stays as it is: `_orig_mod`, and the first part of the keys of state_dict().

    Attributes are read from and written to the module; hooks that are registered here are called around its call, and the module's own inside of it.
    settings: what compile was given; None where the module runs with its ops as they are called.
    """

    _own = frozenset(("_orig_mod", "forward", "_settings", "__dict__"))

    def __init__(self, mod: Module, settings: Settings | None = None) -> None:
        object.__setattr__(self, "_orig_mod", mod)  # asked for before Module.__init__ has made a place for it
        super().__init__()
        self.__dict__.pop("_orig_mod")
        self.__dict__.pop("training")  # that of the module
        self._settings = settings
        self._orig_mod = mod
        self._prepare()

    def _prepare(self) -> None:
        mod = self._orig_mod
        call: Any = mod.__call__
        if self._settings is None:
            self.forward = opaque(call)  # type: ignore[method-assign]
        else:
            self.forward = in_region(call, self._settings.name or type(mod).__name__, is_eager(self._settings.backend))  # type: ignore[method-assign]

    @property
    def _torchdynamo_orig_callable(self) -> Module:
        return self._orig_mod  # type: ignore[no-any-return]

    @property
    def _torchdynamo_wrapper_id(self) -> int:
        return id(self)

    @property
    def training(self) -> bool:  # type: ignore[override]
        return bool(self._orig_mod.training)

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def __len__(self) -> int:
        mod = self._orig_mod
        if isinstance(mod, Sized):
            return len(mod)
        raise TypeError(f"{type(mod).__name__} does not support len()")

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in self._own:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if hasattr(type(self), name) or name in self._own:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        names = dir(self._orig_mod)
        return [*names, *(n for n in super().__dir__() if n not in names)]

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod, self._settings)
