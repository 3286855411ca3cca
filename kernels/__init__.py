"""The ops by family, a folder each. A file's ops are registered when one of them is first asked for: adding a file adds its ops."""

from __future__ import annotations

import importlib
import pkgutil

if __name__ != "tritensor.kernels":  # a program run in the repository may look for a package `kernels` of its own
    raise ImportError(f"{__name__}: the ops of tritensor are imported as tritensor.kernels")

from tritensor.cuda.jit import unread
from tritensor.ground.process.collector import settling
from tritensor.ground.process.locks import importing
from tritensor.kernels.op_index import MODULES
from tritensor.ops.table import registry


def load(module: str) -> None:
    """Import a file of ops; its kernels are read by Triton when they are first used."""
    with importing(), settling():
        if unread.is_put_off():
            importlib.import_module(module)
            return
        from tritensor.cuda.jit.deferred import deferred_jit

        with deferred_jit():
            importlib.import_module(module)


def load_all() -> None:
    """Import every file of ops, those that the index does not hold, too."""
    for file in sorted(m.name for m in pkgutil.walk_packages(__path__, f"{__name__}.")):
        load(file)


registry.loaded_from({name: f"{__name__}.{file}" for file, names in MODULES.items() for name in names.split()}, load, load_all)
