"""The folder of a checkpoint: a file of tensors for each rank, in the safetensors form, and one of metadata, written last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from tritensor.distributed.checkpoint.metadata import Metadata, dump_metadata, parse_metadata
from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.io.atomic import atomic_write, remove_orphans
from tritensor.io.safetensors import load_file, save_file
from tritensor.tensor.core import Tensor

METADATA = "metadata.json"


class FileSystemWriter:
    """A folder that all ranks see. A checkpoint that is there stays whole until the new one is.

    Args:
        path: the folder; save's checkpoint_id takes its place where both are given.
        overwrite: whether a checkpoint that is there may be replaced.
        allow_pickle: values that JSON does not say all of are pickled into the metadata; without it they raise. Who loads them has to allow it, too.
        single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, cache_staged_state_dict: PyTorch's, and taken as they are there:
            each rank writes one file, from the tensors' own memory, and has it flushed to the disk.
    """

    def __init__(
        self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True, *, allow_pickle: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.overwrite, self.allow_pickle = Path(path), overwrite, allow_pickle

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Write to another folder from now on."""
        self.path = self.path if checkpoint_id is None else Path(checkpoint_id)

    def begin(self) -> None:
        """Make the folder. Raises CheckpointError where a checkpoint is there that must not be replaced."""
        # Only metadata makes a folder a checkpoint: parts without it are what a killed save has left.
        if not self.overwrite and (self.path / METADATA).exists():
            raise CheckpointError(f"{self.path}: a checkpoint is there, and overwrite=False; give another folder")
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Write a rank's tensors."""
        save_file(tensors, self.path / name)

    def finish(self, metadata: Metadata) -> None:
        """All ranks have written: write the metadata, and remove what it no longer names, and what killed processes left."""
        with atomic_write(self.path / METADATA) as file:
            file.write(dump_metadata(metadata))
        kept = metadata.files()
        # After the metadata is in its place: a process killed before still has the old checkpoint whole.
        for old in self.path.glob("part-*.safetensors"):
            if old.name not in kept:
                old.unlink()
        remove_orphans(self.path)


class FileSystemReader:
    """A folder that FileSystemWriter wrote.

    Args:
        path: the folder; load's checkpoint_id takes its place where both are given.
        allow_pickle: pickled values are read, which runs what they say: for a checkpoint that you trust. Without it they raise.
    """

    def __init__(self, path: str | os.PathLike[str], *, allow_pickle: bool = False) -> None:
        self.path, self.allow_pickle = Path(path), allow_pickle
        self._open: dict[str, dict[str, Tensor]] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Read another folder from now on, or the same one anew."""
        self.path = self.path if checkpoint_id is None else Path(checkpoint_id)
        self._open = {}

    def read_metadata(self) -> Metadata:
        """The metadata of the checkpoint. Raises CheckpointError where none was written to its end."""
        path = self.path / METADATA
        try:
            data = path.read_bytes()
        except FileNotFoundError as missing:
            what = "is no folder" if not self.path.is_dir() else f"has no {METADATA}: no checkpoint was written there to its end"
            raise CheckpointError(f"load: {self.path} {what}") from missing
        return parse_metadata(data, str(path))

    def tensor(self, file: str, name: str) -> Tensor:
        """A tensor of a file, whose bytes are read when they are looked at."""
        if file not in self._open:
            if not (self.path / file).exists():
                raise CheckpointError(f"load: {self.path / file} is missing, and {METADATA} names it; the checkpoint is torn")
            self._open[file] = load_file(self.path / file)
        found = self._open[file].get(name)
        if found is None:
            raise CheckpointError(f"load: {self.path / file} does not hold {name}, as {METADATA} says; the checkpoint is torn")
        return found


Storage = TypeVar("Storage", FileSystemWriter, FileSystemReader)


def choose_storage(name: str, kind: type[Storage], what: str, checkpoint_id: Any, given: Storage | None, planner: Any) -> Storage:
    """The writer or reader that is given, or one of the folder `checkpoint_id`. Raises for what is none, and for a planner."""
    # PyTorch's planners rearrange what is written: silently ignoring one would save or load other values than it asks for.
    if planner is not None:
        raise NotImplementedError(f"{name}: planner is not in tritensor; leave it out")
    # One with settings of its own (overwrite, allow_pickle) goes before the folder alone.
    if given is not None:
        if not isinstance(given, kind):
            raise TypeError(f"{name}: {what} is a {type(given).__name__}; give a {kind.__name__}, or checkpoint_id=folder")
        given.reset(checkpoint_id)
        return given
    if checkpoint_id is None:
        raise ArgumentError(f"{name}: neither checkpoint_id, a folder, nor {what} is given; give one of them")
    return kind(checkpoint_id)
