"""Optional packages: imported by who needs them, with one message where they are not installed."""

from __future__ import annotations

import importlib
from typing import Any


def extra(module: str, who: str, package: str, install: str) -> Any:
    """A module of an optional package: `extra("PIL.Image", "save_image", "Pillow", "tritensor[vision]")`.

    Raises ModuleNotFoundError, which names who needs it and what `pip install` takes, where it is not there.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # it is there, and lacks something itself
        # of its own class, by which programs find out what they can do without
        raise ModuleNotFoundError(f"{who}: needs {package}, which is not installed: pip install '{install}'", name=missing.name) from None
