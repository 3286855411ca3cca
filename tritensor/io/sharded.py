"""Checkpoints in several files and an index, as Hugging Face's libraries have them: model-00001-of-00003.safetensors, ..."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from tritensor.ground.errors import CheckpointError
from tritensor.io.atomic import atomic_write, remove_orphans
from tritensor.io.checkpoint import load
from tritensor.io.safetensors import save_file
from tritensor.tensor.core import Tensor

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_OLD_WEIGHTS, _OLD_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_SHARD = re.compile(r"model(\.\d+)?-\d{5}-of-\d{5}\.safetensors")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def save_sharded(
    state_dict: Mapping[str, Tensor], folder: str | os.PathLike[str], max_shard_size: int | str = "5GB",
    metadata: Mapping[str, str] | None = None,
) -> list[str]:  # fmt: skip
    """Write named tensors into a folder: model.safetensors where they fit into one file, else shards and model.safetensors.index.json.

    A reader sees the old set or the new one whole, whatever happens in between: new shards get names that the old set has not (of as many
    shards, `model.1-00001-of-00003.safetensors`), the index is replaced in one step, and only then are old shards removed.

    Args:
        state_dict: tensors by name, in the order in which they fill the shards.
        folder: is made where it is not there; other files in it stay.
        max_shard_size: bytes of tensors in a file, a number or text such as "5GB" (10^9), "512MiB"; a larger tensor has a file of its own.
        metadata: strings for the `__metadata__` of each file, beside `{"format": "pt"}`.

    Returns the names of the files, the index last. Raises ValueError for a size that is none, TypeError for what is no tensor, OSError for a disk
    that is full.
    """
    limit = _parse_size(max_shard_size)
    for name, t in state_dict.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"save_sharded: {name!r} is a {type(t).__name__}, not a tensor; save() takes other values")
    os.makedirs(folder, exist_ok=True)
    before = _list_shards(folder)
    parts = _split_by_size(state_dict, limit)
    said = {"format": "pt", **(metadata or {})}
    remove_orphans(folder)  # of an interrupted save: shards have new names each time, so that none would take their place
    if len(parts) == 1:
        save_file(parts[0], os.path.join(folder, WEIGHTS), said)
        _remove_files(folder, {INDEX, *before})
        return [WEIGHTS]  # readers look for this file first, so it is complete before the index goes
    names = _shard_names(len(parts), before)
    for name, part in zip(names, parts, strict=True):
        save_file(part, os.path.join(folder, name), said)
    index = {
        "metadata": {"total_size": sum(t.nbytes for t in state_dict.values())},
        "weight_map": {key: name for name, part in zip(names, parts, strict=True) for key in part},
    }
    text = (json.dumps(index, indent=2, sort_keys=True) + "\n").encode()
    with atomic_write(os.path.join(folder, INDEX), len(text)) as file:
        file.write(text)
    _remove_files(folder, {WEIGHTS, *before} - set(names))
    return [*names, INDEX]


def load_sharded(folder: str | os.PathLike[str], map_location: Any = None) -> dict[str, Tensor]:
    """The tensors of a folder by name: of model.safetensors, of the shards of its index, or of pytorch_model.bin and its, in this order.

    Safetensors are mapped into memory; PyTorch's files are read with weights_only=True. `map_location` is that of `load`.
    Raises CheckpointError where a file is missing or damaged, or does not hold what the index says; FileNotFoundError where there is none.
    """
    for one, index in ((WEIGHTS, INDEX), (_OLD_WEIGHTS, _OLD_INDEX)):
        if os.path.exists(path := os.path.join(folder, one)):
            return _load_tensors(path, map_location)
        if os.path.exists(path := os.path.join(folder, index)):
            return _load_shards(folder, path, map_location)
    raise FileNotFoundError(2, f"load_sharded: none of {WEIGHTS}, {INDEX}, {_OLD_WEIGHTS} and {_OLD_INDEX} is there", os.fspath(folder))


def _parse_size(size: int | str) -> int:
    """The bytes that a number, or text as people write it, means."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None or float(found[1]) * unit < 1:
        raise ValueError(f"save_sharded: max_shard_size={size!r} is no size; give bytes, or text such as '5GB' or '512MiB'")
    return int(float(found[1]) * unit)


def _split_by_size(tensors: Mapping[str, Tensor], limit: int) -> list[dict[str, Tensor]]:
    """The tensors of each file, in order, as many as fit."""
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, t in tensors.items():
        if parts[-1] and size + t.nbytes > limit:
            parts.append({})
            size = 0
        parts[-1][name] = t
        size += t.nbytes
    return parts


def _shard_names(count: int, taken: set[str]) -> list[str]:
    """The shards' names, none of them of the set that is there: it must stay whole until the index is replaced."""
    for turn in range(len(taken) + 2):
        stem = "model" + (f".{turn}" if turn else "")
        names = [f"{stem}-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]
        if not taken & set(names):
            break
    return names


def _list_shards(folder: str | os.PathLike[str]) -> set[str]:
    """The shards in a folder that the index names, and those that an interrupted save left."""
    return {name for name in os.listdir(folder) if _SHARD.fullmatch(name)}


def _remove_files(folder: str | os.PathLike[str], names: set[str]) -> None:
    """Remove what the new set has replaced: a single file or the index last, since readers go by them."""
    for name in sorted(names, key=lambda n: n not in (WEIGHTS, INDEX)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))


def _load_tensors(path: str, map_location: Any) -> dict[str, Tensor]:
    found = load(path, map_location)
    if not isinstance(found, dict) or not all(isinstance(t, Tensor) for t in found.values()):
        raise CheckpointError(f"{path}: holds other things than tensors by name; load() reads it")
    return dict(found)


def read_weight_map(path: str) -> dict[str, str]:
    """{tensor: file} of an index of shards. Raises CheckpointError for a file that is none."""
    try:
        with open(path, "rb") as file:
            index = json.loads(file.read())
        where = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(where, dict) or not where or not all(isinstance(name, str) for name in where.values()):
            raise ValueError("it has no weight_map from names to files")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: this is no index of shards ({error}); the file is damaged: copy or save it again") from None
    return where


def _load_shards(folder: str | os.PathLike[str], path: str, map_location: Any) -> dict[str, Tensor]:
    """The tensors that an index names, from the files that it names."""
    where = read_weight_map(path)
    for name in set(where.values()):
        # an index may come from anywhere: it names files of its folder alone
        if name != os.path.basename(name) or name in ("", ".", ".."):
            raise CheckpointError(f"{path}: names the file {name!r}, which is not in this folder; the index is hostile or damaged")
    found: dict[str, Tensor] = {}
    for name in sorted(set(where.values())):
        shard = os.path.join(folder, name)
        if not os.path.exists(shard):
            raise CheckpointError(f"{path}: names {name}, which is not there; the set is incomplete: copy it again")
        tensors = _load_tensors(shard, map_location)
        missing = [key for key, at in where.items() if at == name and key not in tensors]
        if missing:
            raise CheckpointError(
                f"{path}: {name} should hold {missing[0]!r} and {len(missing) - 1} more that it does not; the set is mixed: copy it again"
            )
        found.update({key: tensors[key] for key in where if where[key] == name})
    return {key: found[key] for key in where}
