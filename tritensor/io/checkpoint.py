"""save and load: a state dict, or any nest of dicts, lists, tuples, numbers and strings around tensors, as one safetensors file.

A flat dict of tensors is a plain safetensors file, which every other reader understands; so is a state_dict. What the format cannot
say (an optimizer's numbers, its nesting, integer keys, an OrderedDict and its versions) stands as JSON in
`__metadata__["tritensor"]`; see structure.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from tritensor.device import as_device
from tritensor.errors import CheckpointError
from tritensor.io import safetensors
from tritensor.io.atomic import replacing
from tritensor.io.structure import Packer, unpack
from tritensor.tensor.core import Tensor

_KEY = "tritensor"


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write tensors, and what stands around them, to a path or a binary file, in the safetensors format.

    Takes tensors on any device, None, bool, int, float, complex, str, bytes, numpy scalars, dtypes, devices, and nests of these in
    dict, OrderedDict, defaultdict (of a built-in type), Counter, list, tuple, named tuple, set, frozenset and Size: all come back in
    the type and order they had, with a state_dict's `_metadata`, and an object that stands in two places, or in itself, does so again.
    Of tensors only the values are written: not requires_grad, not the device, not the rest of a view's base.
    A path is replaced whole or not at all, and keeps its mode; what cannot be replaced (a pipe, a device) is written to.
    Raises TypeError, naming the place, for anything else: a checkpoint never holds code.
    """
    metadata = None
    if type(obj) is dict and all(_is_plain(k) and isinstance(v, Tensor) for k, v in obj.items()):
        tensors = obj
    else:
        packer = Packer()
        metadata, tensors = {_KEY: packer.pack(obj)}, packer.tensors
    if isinstance(f, str | os.PathLike):
        with replacing(f) as file:
            safetensors.write(file, tensors, metadata)
    else:
        safetensors.write(f, tensors, metadata)


def load(f: str | os.PathLike[str] | BinaryIO, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote, or any safetensors file (a dict of tensors).

    Args:
        f: a path, which is mapped into memory, or a binary file, which is read.
        map_location: the device for all tensors; None is the CPU, from which all are read. A dict of devices maps the CPU; a function
            `(tensor, "cpu") -> tensor or None` places each.
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
    place = _placing(map_location)
    tensors = {name: place(safetensors.tensor_at(data, entry)) for name, entry in entries.items()}
    if _KEY not in metadata:
        return tensors
    try:
        return unpack(metadata[_KEY], tensors)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{label}: __metadata__[{_KEY!r}] does not describe these tensors ({error}); the file is damaged: save it again"
        ) from None


def _placing(map_location: Any) -> Callable[[Tensor], Tensor]:
    """What puts a tensor, read on the CPU, where it shall be."""
    if callable(map_location):

        def place(t: Tensor) -> Tensor:
            found = map_location(t, "cpu")
            return t if found is None else found

        return place
    where = as_device(map_location.get("cpu") if isinstance(map_location, Mapping) else map_location)
    return lambda t: t if where.type == "cpu" else t.to(where)


def _is_plain(name: Any) -> bool:
    """Whether the format itself can say this name: UTF-8, and not its own."""
    return type(name) is str and name != "__metadata__" and not any("\ud800" <= c <= "\udfff" for c in name)
