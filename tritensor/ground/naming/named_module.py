"""NamedModule: the base of modules of types of our own, which pickle by their name as cloudpickle does with Python's own modules."""

from __future__ import annotations

import importlib
import types
from typing import Any


class NamedModule(types.ModuleType):
    """A module that a pickle holds by its name: it is imported where the pickle is read. ray, joblib and dask send functions so, with what these name."""

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)
