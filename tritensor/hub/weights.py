"""Weights in safetensors, whole or in shards, as one state dict."""

from __future__ import annotations

import os
from typing import Any

from tritensor.ground.errors import CheckpointError
from tritensor.hub.repository import Files
from tritensor.io.safetensors import load_file
from tritensor.io.sharded import INDEX, read_weight_map


def state_dict_of(files: Files, device: Any = None) -> dict[str, Any]:
    """The tensors of a model's files by name, on `device` (default: the CPU, mapped into memory).

    Raises CheckpointError for a damaged file, and for shards that do not hold what the index says.
    """
    if files.weights[0] != INDEX:
        return load_file(os.path.join(files.folder, files.weights[0]), device)
    listed = read_weight_map(os.path.join(files.folder, INDEX))
    found: dict[str, Any] = {}
    for name in files.weights[1:]:
        tensors = load_file(os.path.join(files.folder, name), device)
        expected = {key for key, file in listed.items() if file == name}
        if expected != tensors.keys():
            odd = sorted(expected ^ tensors.keys())
            raise CheckpointError(
                f"hub: {os.path.join(files.folder, name)} and {INDEX} do not agree on {', '.join(odd[:5])}; one of them is of another model"
            )
        found.update(tensors)
    return {key: found[key] for key in listed}
