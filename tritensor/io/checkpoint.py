"""save and load: a state dict, or any nest of dicts, lists, tuples, numbers and strings around tensors, as one safetensors file.

A flat dict of tensors (a module's state_dict) is a plain safetensors file, which every other reader understands. What the
format cannot say (an optimizer's numbers, its nesting, integer keys) stands as JSON in `__metadata__["tritensor"]`:

    {"$tensor": name}  {"$dict": [[key, value], ...]}  {"$tuple": [...]}  {"$float": "nan" | "inf" | "-inf"}

lists, strings, numbers, booleans and null as JSON has them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from tritensor.errors import CheckpointError
from tritensor.io import safetensors
from tritensor.io.atomic import replacing
from tritensor.tensor.core import Tensor

_KEY = "tritensor"


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write tensors, and what stands around them, to a path or a binary file, in the safetensors format.

    Takes tensors on any device, None, bool, int, float, str, numpy scalars, and dicts, lists, tuples of these. Only
    values are written: not requires_grad, not the device, not the rest of a view's base; a tensor that appears twice is
    written twice. A path is replaced whole or not at all.
    Raises TypeError, naming the place, for anything else: a checkpoint never holds code.
    """
    tensors: dict[str, Tensor] = {}
    metadata = None
    if isinstance(obj, Mapping) and all(isinstance(k, str) and k != "__metadata__" and isinstance(v, Tensor) for k, v in obj.items()):
        tensors = dict(obj)
    else:
        metadata = {_KEY: json.dumps(_pack(obj, "", tensors), separators=(",", ":"), ensure_ascii=False, allow_nan=False)}
    if isinstance(f, str | os.PathLike):
        with replacing(f) as file:
            safetensors.write(file, tensors, metadata)
    else:
        safetensors.write(f, tensors, metadata)


def load(f: str | os.PathLike[str] | BinaryIO, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote, or any safetensors file (a dict of tensors).

    Args:
        f: a path, which is mapped into memory, or a binary file, which is read.
        map_location: the device for all tensors; None is the CPU.
        weights_only: accepted for scripts that pass it; nothing but values is ever read.

    Raises:
        CheckpointError: the file is torn, foreign, or its contents contradict each other.
        FileNotFoundError: as open() does.
    """
    if isinstance(f, str | os.PathLike):
        label = os.fspath(f)
        entries, metadata, data = safetensors._open(f)
    else:
        label = str(getattr(f, "name", type(f).__name__))
        content = memoryview(bytearray(f.read()))  # a bytearray: tensors on it can be written to
        entries, metadata, start = safetensors.parse(content, label)
        data = content[start:]
    tensors = {name: safetensors.tensor_at(data, entry, map_location) for name, entry in entries.items()}
    if _KEY not in metadata:
        return tensors
    try:
        return _unpack(json.loads(metadata[_KEY]), tensors)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{label}: __metadata__[{_KEY!r}] does not describe these tensors ({error}); the file is damaged: save it again"
        ) from None


def _pack(x: Any, place: str, tensors: dict[str, Tensor]) -> Any:
    """x as JSON; its tensors go to `tensors` under the place where they stand (`state.0.exp_avg`)."""
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return x if math.isfinite(x) else {"$float": str(x)}
    if isinstance(x, Tensor):
        name = place or "tensor"
        while name in tensors or name == "__metadata__":
            name += "_"
        tensors[name] = x
        return {"$tensor": name}
    if isinstance(x, Mapping):
        inside = f"{place}." if place else ""
        return {"$dict": [[_pack_key(k, place), _pack(v, f"{inside}{k}", tensors)] for k, v in x.items()]}
    if isinstance(x, list | tuple):
        inside = f"{place}." if place else ""
        items = [_pack(v, f"{inside}{i}", tensors) for i, v in enumerate(x)]
        return items if isinstance(x, list) else {"$tuple": items}
    raise TypeError(
        f"save: {place or 'the object'} is a {type(x).__name__}; a checkpoint holds tensors, numbers, strings, None, and dicts, lists, tuples of these"
        + ("; save its state_dict()" if hasattr(x, "state_dict") else "")
    )


def _pack_key(key: Any, place: str) -> Any:
    if key is None or isinstance(key, bool | int | str):
        return key
    raise TypeError(f"save: {place or 'the object'} has the key {key!r}; keys are strings or integers")


def _unpack(x: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(x, list):
        return [_unpack(v, tensors) for v in x]
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "$tensor":
        return tensors[value]
    if kind == "$dict":
        return {k: _unpack(v, tensors) for k, v in value}
    if kind == "$tuple":
        return tuple(_unpack(v, tensors) for v in value)
    if kind == "$float":
        return float(value)
    raise ValueError(f"unknown kind {kind!r}")
