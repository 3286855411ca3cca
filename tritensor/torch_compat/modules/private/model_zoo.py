"""torch.utils.model_zoo: the older names of what hub downloads."""

from __future__ import annotations

import importlib
from typing import Any

from tritensor.hub import _get_torch_home as _get_torch_home
from tritensor.hub import download_url_to_file as _download_url_to_file  # noqa: F401
from tritensor.hub import load_state_dict_from_url as load_state_dict_from_url
from tritensor.hub import load_state_dict_from_url as load_url  # noqa: F401


def __getattr__(name: str) -> Any:
    """The progress bar that torch.utils.model_zoo used, where the package is installed."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("tqdm").tqdm
