"""The metadata of a checkpoint, in JSON: for each tensor its type, shape and the files of its parts; for each other value the value."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from tritensor.distributed.checkpoint.boxes import Box
from tritensor.ground.errors import CheckpointError

FORMAT = 1


class Part(NamedTuple):
    """A part of a tensor: where it lies in the whole, the file, and its name there."""

    box: Box
    file: str
    name: str


class Stored(NamedTuple):
    """A tensor: its element type, the shape of the whole, and its parts."""

    dtype: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]


class Metadata(NamedTuple):
    """A checkpoint: `tensors` and `values` by their key, which is the path to them in the state, joined by dots; `steps`, the parts of that path."""

    tensors: dict[str, Stored]
    values: dict[str, Any]
    steps: dict[str, list[Any]] = {}  # noqa: RUF012 - of a NamedTuple, and never written to; none in files of earlier versions

    @property
    def state_dict_metadata(self) -> dict[str, Any]:
        """All entries by key, PyTorch's name for it."""
        return {**self.tensors, **self.values}

    def files(self) -> set[str]:
        """The files that hold parts."""
        return {part.file for stored in self.tensors.values() for part in stored.parts}


def dump_metadata(metadata: Metadata) -> bytes:
    """The metadata as a file."""
    tensors = {
        key: {"dtype": s.dtype, "shape": s.shape, "parts": [[p.box.offset, p.box.shape, p.file, p.name] for p in s.parts]}
        for key, s in metadata.tensors.items()
    }
    return json.dumps({"format": FORMAT, "tensors": tensors, "values": metadata.values, "steps": metadata.steps}, indent=1).encode()


def _check_parts(path: str, key: str, stored: Stored) -> None:
    """Parts lie in the whole, and in files of the same folder. Raises CheckpointError."""
    for part in stored.parts:
        # A name like ../x in a hostile file would have the reader open files outside of the folder.
        if not part.box.fits_in(stored.shape) or os.path.basename(part.file) != part.file:
            raise CheckpointError(
                f"{path}: {key} {stored.shape} has a part {part.box} in {part.file!r}, which is outside of it or of the folder; the file is damaged"
            )


def parse_metadata(data: bytes, path: str) -> Metadata:
    """The metadata of a file. Raises CheckpointError for what is none."""
    try:
        given = json.loads(data)
        # Before anything else is read: a later format may keep other keys, whose absence would be called damage.
        if given["format"] != FORMAT:
            raise CheckpointError(
                f"{path}: format {given['format']}, and this tritensor reads {FORMAT}; load it with the version that wrote it"
            )
        tensors = {
            key: Stored(
                s["dtype"],
                tuple(s["shape"]),
                tuple(Part(Box(tuple(offset), tuple(shape)), file, name) for offset, shape, file, name in s["parts"]),
            )
            for key, s in given["tensors"].items()
        }
        for key, stored in tensors.items():
            _check_parts(path, key, stored)
        return Metadata(tensors, dict(given["values"]), dict(given.get("steps", {})))
    except (ValueError, KeyError, TypeError) as error:
        # It is a ValueError, too, and already says what is wrong.
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path}: is no metadata of a distributed checkpoint ({type(error).__name__}: {error})") from error
