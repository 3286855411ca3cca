"""Which format a file is written in: PyTorch's where its name is one of PyTorch's, safetensors otherwise."""

from __future__ import annotations

import os
from typing import Any

TORCH, LEGACY, SAFETENSORS = "torch", "torch-legacy", "safetensors"
_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".tar", ".pkl", ".pickle")  # what PyTorch's users call their files; .pth.tar among them


def chosen(f: Any, format: str | None, zipped: bool | None) -> str:
    """The format of a file: this is the whole rule.

    1. `format` says it: "torch", "torch-legacy" or "safetensors".
    2. `_use_new_zipfile_serialization`: True is PyTorch's archive, False what it wrote before 1.6.
    3. A name that ends with .pt, .pth, .bin, .ckpt, .tar, .pkl or .pickle, of a path or of an open file, is PyTorch's archive.
    4. Another name is safetensors.
    5. What has no name (a BytesIO, a socket) is PyTorch's archive: whoever gets the bytes may be PyTorch, and what a name would decide, nobody else does.

    Raises ValueError for another `format`, and where 1 and 2 disagree.
    """
    if format is not None:
        if format not in (TORCH, LEGACY, SAFETENSORS):
            raise ValueError(
                f"save: format is {format!r}; give {TORCH!r}, {LEGACY!r}, {SAFETENSORS!r} or None, which goes by the file's name"
            )
        if zipped is not None and format != (TORCH if zipped else LEGACY):
            raise ValueError(f"save: format={format!r} and _use_new_zipfile_serialization={zipped} disagree; give one of them")
        return format
    if zipped is not None:
        return TORCH if zipped else LEGACY
    name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", None)
    if not isinstance(name, str | os.PathLike):
        return TORCH
    return TORCH if str(os.fspath(name)).lower().endswith(_ENDINGS) else SAFETENSORS
