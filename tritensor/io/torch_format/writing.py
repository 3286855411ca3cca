"""Writers of torch.save's formats: the zip archive of PyTorch 1.6 and later, byte for byte in its layout, and the stream of pickles before it."""

from __future__ import annotations

import hashlib
import os
import pickle
import struct
import sys
import zlib
from typing import Any, BinaryIO

from tritensor.ground.errors import DTypeError
from tritensor.io.torch_format.archive import END, END64, ENTRY, FULL16, FULL32, LOCAL, LOCATOR
from tritensor.io.torch_format.pickling import pickle_object, pickle_object_with
from tritensor.io.torch_format.reading import MAGIC_NUMBER, PROTOCOL_VERSION
from tritensor.io.torch_format.written_storages import Storage

ALIGNMENT = 64  # of each record's bytes
_CHUNK = 1 << 24
_crc32 = True


def get_crc32_options() -> bool:
    """Whether save computes the checksum of each record."""
    return _crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether save computes the checksum of each record. Without it unzip complains; load and torch.load do not look at it."""
    global _crc32
    _crc32 = bool(compute_crc32)


class TorchFile:
    """A file to be written: its object, pickled, its storages, and `nbytes`, the most that it takes."""

    def __init__(self, obj: Any, name: str, protocol: int, zipped: bool, byteorder: bool, foreign: Any = None) -> None:
        if type(protocol) is not int or not 2 <= protocol <= pickle.HIGHEST_PROTOCOL:
            raise ValueError(f"save: pickle_protocol is {protocol!r}; give 2 (what every PyTorch reads) to {pickle.HIGHEST_PROTOCOL}")
        self.name, self.protocol, self.zipped, self.byteorder = name, protocol, zipped, byteorder
        if foreign is None:
            self.pickle, self.storages = pickle_object(obj, protocol, _storage_id if zipped else _legacy_storage_id)
        else:
            self.pickle, self.storages = pickle_object_with(foreign, obj, protocol), []
        self.nbytes = len(self.pickle) + sum(s.nbytes + 256 for s in self.storages) + 4096

    def write(self, file: BinaryIO) -> None:
        """Write the file. One storage at a time: what is on a GPU needs room for the largest on the host."""
        if self.zipped:
            self._write_archive(file)
        else:
            self._write_stream(file)

    def _write_archive(self, file: BinaryIO) -> None:
        out = ArchiveWriter(file, self.name)
        out.add("data.pkl", memoryview(self.pickle))
        out.add(".format_version", memoryview(b"1"))
        out.add(".storage_alignment", memoryview(str(ALIGNMENT).encode()))
        if self.byteorder:
            out.add("byteorder", memoryview(sys.byteorder.encode()))
        for storage in self.storages:
            out.add(f"data/{storage.key}", storage.data())
        out.finish()

    def _write_stream(self, file: BinaryIO) -> None:
        machine = {
            "protocol_version": PROTOCOL_VERSION,
            "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4},
        }
        for value in (MAGIC_NUMBER, PROTOCOL_VERSION, machine):
            file.write(pickle.dumps(value, self.protocol))
        file.write(self.pickle)
        by_key = {str(s.key): s for s in self.storages}
        file.write(pickle.dumps(sorted(by_key), self.protocol))
        for key in sorted(by_key):
            file.write(by_key[key].numel.to_bytes(8, "little"))
            _write_bytes(file, by_key[key].data())


def _storage_id(key: str, kind: Any, storage: Storage) -> tuple[Any, ...]:
    elements = storage.nbytes if kind.name == "UntypedStorage" else storage.numel  # of one without type they are bytes
    return ("storage", kind, key, storage.location, elements)


def _legacy_storage_id(key: str, kind: Any, storage: Storage) -> tuple[Any, ...]:
    if kind.name == "UntypedStorage":
        raise DTypeError(
            f"save: {storage.dtype.name} has no place in PyTorch's format before 1.6, which PyTorch itself could not read back; leave out "
            "_use_new_zipfile_serialization=False"
        )
    return (*_storage_id(key, kind, storage), None)


def _write_bytes(file: BinaryIO, data: memoryview) -> int:
    """Write bytes, chunk after chunk; returns their checksum."""
    crc = 0
    for at in range(0, len(data), _CHUNK):
        chunk = data[at : at + _CHUNK]
        file.write(chunk)
        if _crc32:
            crc = zlib.crc32(chunk, crc)
    return crc


def archive_name(file: Any) -> str:
    """The folder that records stand in: the file's name without its suffix, as PyTorch has it."""
    name = os.path.basename(os.fspath(file)) if isinstance(file, str | os.PathLike) else ""
    stem = str(name).rpartition(".")[0] or str(name)
    return stem if stem and stem.isprintable() and stem not in (".", "..") and "\\" not in stem else "archive"


class ArchiveWriter:
    """Writes records without compression, each at a multiple of 64 bytes, then their directory; sizes stand behind the bytes."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.folder = file, name + "/"
        self.at = 0
        self.directory: list[bytes] = []
        self.identity = hashlib.sha256()

    def _put(self, data: bytes) -> None:
        self.file.write(data)
        self.at += len(data)

    def add(self, name: str, data: memoryview) -> None:
        """Write one record."""
        full, size, header = (self.folder + name).encode(), len(data), self.at
        wide = b""
        if size >= FULL32:
            wide += struct.pack("<2Q", size, size)
        if header >= FULL32:
            wide += struct.pack("<Q", header)
        if wide:
            wide = struct.pack("<2H", 1, len(wide)) + wide
        begin = header + 30 + len(full) + len(wide) + 4
        padding = -begin % ALIGNMENT
        extra = wide + struct.pack("<2s1H", b"FB", padding) + b"Z" * padding
        flags = 0x0808 if size else 0x0800  # names in UTF-8; sizes behind the bytes
        self._put(LOCAL.pack(b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(full), len(extra)) + full + extra)
        crc = _write_bytes(self.file, data)
        self.at += size
        if size:  # behind the bytes, since the checksum is known only then: a storage is read once
            self._put(struct.pack("<4sL2Q" if wide else "<4s3L", b"PK\x07\x08", crc, size, size))
        numbers = crc, min(size, FULL32), min(size, FULL32), len(full), len(wide), 0, 0, 0, 0, min(header, FULL32)
        entry = ENTRY.pack(b"PK\x01\x02", 0, 0, flags, 0, 0, 0, *numbers)
        self.directory.append(entry + full + wide)
        self.identity.update(full + crc.to_bytes(4, "little") + size.to_bytes(8, "little"))

    def finish(self) -> None:
        """Write what follows the storages: the version, the file's own number, the directory."""
        self.add("version", memoryview(b"3\n"))
        # PyTorch's number tells two files apart: here a digest, so that the same object makes the same bytes
        number = f"{int.from_bytes(self.identity.digest(), 'little') % 10**40:040d}"
        self.add(".data/serialization_id", memoryview(number.encode()))
        self.end()

    def end(self) -> None:
        """Write the directory and its end records."""
        offset, entries = self.at, b"".join(self.directory)
        self._put(entries)
        count, end64 = len(self.directory), self.at
        self._put(END64.pack(b"PK\x06\x06", 44, 0x031E, 45, 0, 0, count, count, len(entries), offset))
        self._put(LOCATOR.pack(b"PK\x06\x07", 0, end64, 1))
        numbers = min(count, FULL16), min(count, FULL16), min(len(entries), FULL32), min(offset, FULL32)
        self._put(END.pack(b"PK\x05\x06", 0, 0, *numbers, 0))
