"""What kernels are made of, and no op: shared kernels, scalar mathematics, tiles, launch rules, rows, indices, random words, samples."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """`tritensor.parts.maths`: a file or a room of this folder, imported when it is asked for."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":  # it is there, and misses something itself
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; docs/kernel_parts.md lists what it has") from None
