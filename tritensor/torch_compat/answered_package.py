"""A package that tritensor answers, as `importlib.metadata` sees one: a name and a version, no files."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def normalize(name: str) -> str:
    """A distribution's name as it is compared: PEP 503."""
    return re.sub("[-_.]+", "-", name).lower()


class AnsweredPackage(importlib.metadata.Distribution):
    """What stands for an installed torch: its metadata are a name, a version and the packages that it brings."""

    def __init__(self, name: str, version: str, packages: Sequence[str]) -> None:
        self._texts = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "top_level.txt": "\n".join(packages)}

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        """Where a file of it would lie: beside tritensor's own; none does."""
        return Path(__file__).parents[2] / path
