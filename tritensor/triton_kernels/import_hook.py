"""Import hook on Triton: once it is imported, by whomever, its kernels take our tensors."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any


def _after_triton() -> None:
    from tritensor.cuda.jit import unread
    from tritensor.triton_kernels import autotuning, driver, interpreted, subscript, testing

    subscript.install()
    autotuning.install()
    testing.install()
    driver.install()
    if "triton.runtime.interpreter" in sys.modules:
        interpreted.install()
    unread.read_all()


def _after_interpreter() -> None:
    from tritensor.triton_kernels import interpreted, subscript

    subscript.install_interpreted()
    if getattr(sys.modules["triton"].__spec__, "_initializing", False) is False:
        interpreted.install()


_WAITING: dict[str, Callable[[], None]] = {"triton": _after_triton, "triton.runtime.interpreter": _after_interpreter}


class _Loader:
    """A module's loader, and what is to be done when it has run."""

    def __init__(self, loader: Any, then: Callable[[], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader  # the module shows its own loader
        self._loader.exec_module(module)
        self._then()


class _Finder(threading.local):
    """Lets the others find Triton, and its interpreter, and is told when they have run. Each thread asks for itself."""

    _asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _WAITING or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, _WAITING[name])  # type: ignore[assignment]
        return spec


def install() -> None:
    """Change Triton now where it is imported, else when it will be."""
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    for name, then in _WAITING.items():
        if name in sys.modules:
            then()
