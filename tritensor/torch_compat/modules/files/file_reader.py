"""PyTorchFileReader: the records of one of torch.save's archives by name, as programs read them that load a checkpoint piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.io.sources import open_source
from tritensor.io.torch_format.archive import Archive, Record
from tritensor.tensor.core import Tensor


class PyTorchFileReader:
    """The records of an archive, `data.pkl` and `data/0`, ...; `file` is a path or a binary file.

    Raises CheckpointError for what is no such archive, or a damaged one.
    """

    def __init__(self, file: Any) -> None:
        source = open_source(file)  # mapped where it can be: only records that are read come into memory
        self._archive = Archive(source.view, source.label)

    def _find(self, name: str) -> Record:
        try:
            return self._archive.records[name]
        except KeyError:
            raise RuntimeError(f"PyTorchFileReader: {self._archive.label} has no record {name!r}; get_all_records() lists them") from None

    def get_all_records(self) -> list[str]:
        """The records' names."""
        return list(self._archive.records)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of the name."""
        return name in self._archive.records

    def get_record(self, name: str) -> bytes:
        """A record's bytes. Raises RuntimeError where there is none of the name."""
        self._find(name)
        return bytes(self._archive.read(name))

    def get_record_size(self, name: str) -> int:
        """The number of a record's bytes."""
        return self._find(name).size

    def get_record_offset(self, name: str) -> int:
        """The place of a record's first byte in the file."""
        return self._find(name).begin

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A tensor of uint8 over a copy of the first `numel` bytes of a record; `dtype` is UntypedStorage, whose elements are bytes, or uint8."""
        record = self._find(name)
        if record.size < numel:
            raise RuntimeError(f"PyTorchFileReader: the record {name!r} has {record.size} bytes, and {numel} are asked for")
        return Tensor.wrap(np.frombuffer(self._archive.read(name), np.uint8, numel).copy())

    def serialization_id(self) -> str:
        """The number that the writer gave the archive, "" where it gave none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""
