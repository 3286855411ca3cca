"""Where checkpoints lie: a folder with a file of tensors for each rank, in the safetensors form, and one of metadata, written last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tritensor.distributed.checkpoint.metadata import Metadata, parsed, written
from tritensor.errors import CheckpointError
from tritensor.io.atomic import replacing
from tritensor.io.safetensors import load_file, save_file
from tritensor.tensor.core import Tensor

METADATA = "metadata.json"


class FileSystemWriter:
    """A folder that all ranks see. A checkpoint that is there stays whole until the new one is."""

    def __init__(
        self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True,
    ) -> None:  # fmt: skip
        self.path, self.overwrite = Path(path), overwrite

    def begin(self) -> None:
        """Make the folder. Raises CheckpointError where a checkpoint is there that must not be replaced."""
        if not self.overwrite and (self.path / METADATA).exists():
            raise CheckpointError(f"{self.path}: a checkpoint is there, and overwrite=False; give another folder")
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Write a rank's tensors."""
        save_file(tensors, self.path / name)

    def finish(self, metadata: Metadata) -> None:
        """All ranks have written: write the metadata, and remove what it no longer names."""
        with replacing(self.path / METADATA) as file:
            file.write(written(metadata))
        kept = metadata.files()
        for old in self.path.glob("part-*.safetensors"):
            if old.name not in kept:
                old.unlink()


class FileSystemReader:
    """A folder that FileSystemWriter wrote."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._open: dict[str, dict[str, Tensor]] = {}

    def read_metadata(self) -> Metadata:
        """What the checkpoint holds. Raises CheckpointError where none was written to its end."""
        path = self.path / METADATA
        try:
            data = path.read_bytes()
        except FileNotFoundError as missing:
            what = "is no folder" if not self.path.is_dir() else f"has no {METADATA}: no checkpoint was written there to its end"
            raise CheckpointError(f"load: {self.path} {what}") from missing
        return parsed(data, str(path))

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
