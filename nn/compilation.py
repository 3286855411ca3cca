"""Notice that nothing is compiled where PyTorch would compile: given once, however many functions and modules ask."""

from __future__ import annotations

import warnings
from typing import Any

_given: set[type[Warning]] = set()


def warn_nothing_compiled(name: str, stacklevel: int = 3, category: type[Warning] = UserWarning) -> None:
    """Warn, the first time that anything is to be compiled."""
    if category not in _given:  # once: a model of many modules would say it a hundred times
        _given.add(category)
        said = f"{name}: nothing is compiled; functions and modules run as Python, with the same results"
        warnings.warn(said, category, stacklevel=stacklevel)


def compile(self: Any, *args: Any, **kwargs: Any) -> None:
    """Nothing is compiled: calls run as they did, and one notice says so. Arguments are those of `tritensor.compile`, and change nothing."""
    warn_nothing_compiled("Module.compile")
