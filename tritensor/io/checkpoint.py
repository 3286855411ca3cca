"""save and load: a state dict, or any nest of dicts, lists, tuples, numbers and strings around tensors, as one safetensors file.

A flat dict of tensors is a plain safetensors file, which every other reader understands; so is a state_dict. What the format cannot
say (an optimizer's numbers, its nesting, integer keys, an OrderedDict and its versions) stands as JSON in
`__metadata__["tritensor"]`; see structure.py. Objects that are no such values stand there as a pickle, which is read only where
weights_only=False asks for it; see objects.py.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from tritensor.device import as_device
from tritensor.errors import CheckpointError
from tritensor.io import objects, safetensors
from tritensor.io.atomic import replacing
from tritensor.io.structure import Packer, unpack
from tritensor.tensor.core import Tensor

_KEY = "tritensor"
_OBJECTS = "tritensor.pickle"


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write tensors, and what stands around them, to a path or a binary file, in the safetensors format.

    Takes tensors on any device, None, bool, int, float, complex, str, bytes, numpy scalars, dtypes, devices, and nests of these in
    dict, OrderedDict, defaultdict (of a built-in type), Counter, list, tuple, named tuple, set, frozenset and Size: all come back in
    the type and order they had, with a state_dict's `_metadata`, and an object that stands in two places, or in itself, does so again.
    Of tensors only the values are written: not requires_grad, not the device, not the rest of a view's base.
    A path is replaced whole or not at all, and keeps its mode; what cannot be replaced (a pipe, a device) is written to.
    Anything else that pickle takes (a whole module, argparse's options, a numpy array) is pickled, tensors apart, and comes back only by
    `load(f, weights_only=False)`: reading a pickle runs what it says, so save values, such as a state_dict, wherever you can.
    Raises TypeError, naming the place, for what cannot be pickled either.
    """
    metadata = None
    if type(obj) is dict and all(_is_plain(k) and isinstance(v, Tensor) for k, v in obj.items()):
        tensors = obj
    else:
        metadata, tensors = _packed(obj)
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
        weights_only: True reads values, and refuses a file with other objects in it, but those of `serialization.add_safe_globals`; False
            revives them all, which runs code from the file: only for files that you trust.

    Raises:
        CheckpointError: the file is torn, foreign, or its contents contradict each other; it holds more than values, and weights_only is True.
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
    if _OBJECTS in metadata:
        try:
            return objects.unpack(metadata[_OBJECTS], tensors, trusted=not weights_only)
        except pickle.UnpicklingError as error:
            raise CheckpointError(
                f"{label}: holds objects that are no plain values, such as {error}, whose reading runs code from the file; if you trust it, "
                "load(f, weights_only=False), or serialization.add_safe_globals([its class]); else save a state_dict"
            ) from None
    if _KEY not in metadata:
        return tensors
    try:
        return unpack(metadata[_KEY], tensors)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{label}: __metadata__[{_KEY!r}] does not describe these tensors ({error}); the file is damaged: save it again"
        ) from None


def _packed(obj: Any) -> tuple[dict[str, str], dict[str, Tensor]]:
    """What the header says of `obj`, and its tensors: values as JSON, or, where something else stands among them, a pickle of the whole."""
    packer = Packer()
    try:
        return {_KEY: packer.pack(obj)}, packer.tensors
    except TypeError as no_value:
        try:
            text, tensors = objects.pack(obj)
        except (TypeError, AttributeError, pickle.PicklingError, RecursionError) as error:
            raise TypeError(f"{no_value}; and pickle cannot take it either ({type(error).__name__})") from error
    return {_OBJECTS: text}, tensors


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
