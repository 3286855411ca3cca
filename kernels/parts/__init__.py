"""Parts that kernels are made of, and no op: shared kernels, scalar mathematics, tiles, launch rules, rows, indices, random words, samples."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def lazy_modules(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of this folder and of its rooms: `tritensor.parts.cpu.blocks` imports that file when it is asked for."""

    def look(name: str) -> Any:
        missing = f"module {package!r} has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(missing)
        try:
            return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":  # it is there, and misses something itself
                raise
            raise AttributeError(f"{missing}; docs/kernel_parts.md lists what it has") from None

    return look


__getattr__ = lazy_modules(__name__)
