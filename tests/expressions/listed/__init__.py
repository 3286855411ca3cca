"""The expressions by family, a file each: T is the library, F its functional; "ours ~ theirs" where numpy's spelling is asked and PyTorch has another.

A file lists EXPRESSIONS, and in MEANT what is otherwise than in PyTorch on purpose: why. In an expression x, y are 2 x 3 (y positive), v has 3,
m is 3 x 3, b 2 x 3 x 3, p 1 x 2 x 5 x 5, all float64 and tracked; s holds special values; i, j are whole and 2 x 3 (j positive), k is bool,
u uint8, z is complex, 2 x 3, tracked and always on the CPU, e has no elements, o one and no dimensions, n indices, f float32; written(t, index, value) is a copy of t after the write.
"""

from __future__ import annotations

import importlib
import pkgutil

_modules = {m.name: importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)}
FAMILIES: dict[str, list[str]] = {name: list(dict.fromkeys(module.EXPRESSIONS)) for name, module in _modules.items()}
ON_CPU = {name for name, module in _modules.items() if getattr(module, "ON_CPU", False)}  # families about what only the CPU has
MEANT: dict[str, str] = {e: why for module in _modules.values() for e, why in getattr(module, "MEANT", {}).items()}
