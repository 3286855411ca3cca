"""The folder that downloaded models and their locks are kept in."""

from __future__ import annotations

import os

_chosen: dict[str, str | None] = {"folder": None}


def _get_torch_home() -> str:
    """The folder above get_dir: $TRITENSOR_HOME, else $TORCH_HOME, else `tritensor` in $XDG_CACHE_HOME or ~/.cache."""
    given = os.environ.get("TRITENSOR_HOME") or os.environ.get("TORCH_HOME")
    return os.path.expanduser(given or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "tritensor"))


def get_dir() -> str:
    """The folder of weights and repositories: what set_dir was given, else `hub` in $TRITENSOR_HOME, $TORCH_HOME or ~/.cache/tritensor."""
    chosen = _chosen["folder"]
    return os.path.join(_get_torch_home(), "hub") if chosen is None else chosen


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep weights and repositories in another folder, in this process."""
    _chosen["folder"] = os.path.expanduser(d)
