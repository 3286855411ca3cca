"""torch.utils.model_zoo, and the folder of torch.hub: nothing is downloaded, and who asks for a file is told what to do."""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

_dir: str | None = None


def _get_torch_home() -> str:
    """The folder that PyTorch keeps what it downloaded in: $TORCH_HOME, else `torch` in $XDG_CACHE_HOME or ~/.cache."""
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")))


def get_dir() -> str:
    """The folder of weights and repositories: what set_dir was given, else `hub` in _get_torch_home()."""
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Let get_dir answer with another folder."""
    global _dir
    _dir = os.path.expanduser(d)


def load_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False, file_name: str | None = None,
    weights_only: bool = False,
) -> NoReturn:  # fmt: skip
    """Raises NotImplementedError, and names the file: it has to be there, and to be loaded with `load`."""
    name = file_name or os.path.basename(url)
    raise NotImplementedError(
        f"model_zoo.load_url: not in tritensor: nothing is downloaded; fetch {url} yourself and give tritensor.load({name!r}) to load_state_dict"
    )


def __getattr__(name: str) -> Any:
    """The progress bar that torch.utils.model_zoo used, where the package is installed."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("tqdm").tqdm
