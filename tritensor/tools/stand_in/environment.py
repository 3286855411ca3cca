"""Python environment that runs, as far as the stand-in concerns it: where packages are installed, what stands there and elsewhere under its names."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tritensor.tools.stand_in import packages
from tritensor.torch_compat.answered_package import AnsweredPackage, normalize


class StandInError(RuntimeError):
    """What keeps the stand-in from being written or removed, and the way out."""


class Found(NamedTuple):
    """A distribution of one of the stand-in's names: its version, the folder that it is installed in, the folder of its metadata."""

    version: str
    folder: Path
    metadata: Path

    @property
    def is_ours(self) -> bool:
        return packages.is_stand_in(self.version)


def site_packages() -> Path:
    """The folder that this Python installs packages into."""
    return Path(sysconfig.get_paths()["purelib"])


def distributions(name: str) -> list[Found]:
    """Distributions of a name wherever Python looks, nearest first."""
    found = {}
    for d in importlib.metadata.distributions():
        if isinstance(d, AnsweredPackage) or "Name" not in d.metadata or normalize(d.metadata["Name"]) != name:
            continue
        metadata = Path(getattr(d, "_path", "")).resolve()
        found[metadata] = Found(d.version, metadata.parent, metadata)
    return list(found.values())


def other_packages(name: str) -> list[Path]:
    """Files that `import <name>` would read and that are none of the stand-in's, wherever Python looks; a folder without `__init__.py` counts, too."""
    found = []
    for folder in _search_path():
        spec = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
        if spec is None:
            continue
        if spec.origin is None:  # a namespace: what is left where files were removed by hand
            found += [Path(p) for p in spec.submodule_search_locations or ()]
        elif not is_our_file(Path(spec.origin)):
            found.append(Path(spec.origin))
    return list(dict.fromkeys(found))


def _search_path() -> Iterator[Path]:
    """Where Python looks for packages, the script's own folder left out."""
    for entry in sys.path:
        if entry and Path(entry).resolve() != Path.cwd() and os.path.isdir(entry):
            yield Path(entry)


def is_our_file(file: Path) -> bool:
    """Whether a file was written by the stand-in."""
    try:
        return packages.MARK in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def refuse_unwritable(folder: Path) -> None:
    """Raise where nothing can be installed here: a read-only folder, or a Python that the system's package manager keeps."""
    if sys.prefix == sys.base_prefix and (Path(sysconfig.get_paths()["stdlib"]) / "EXTERNALLY-MANAGED").exists():
        raise StandInError(
            f"{sys.executable} belongs to the system's package manager (PEP 668), and {folder} with it: make an environment of your own, "
            "`python3 -m venv .venv` or `uv venv`, install tritensor there and run its `tritensor stand-in install`"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = " (a user's own folder is used by pip instead; the stand-in goes where the environment is)" if site.ENABLE_USER_SITE else ""
        raise StandInError(
            f"{folder} cannot be written by this user{hint}: make an environment of your own, `python3 -m venv .venv`, or ask its owner"
        )


def refuse_uninstalled() -> None:
    """Raise where tritensor runs and is not installed: pip would look for it wherever a library asks for torch, which asks for it."""
    try:
        importlib.metadata.version("tritensor")
    except importlib.metadata.PackageNotFoundError:
        raise StandInError(
            f"tritensor is imported from {Path(__file__).parents[2]} and is not installed in {site_packages()}: install it there first, "
            "`pip install tritensor`, or `pip install --editable .` in a checkout"
        ) from None
