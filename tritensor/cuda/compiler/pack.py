"""Compiled kernels in a file: the form of one (a cubin with what a launch must know), and the pack, one file of many with an index."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tritensor.ground.errors import LaunchError

SUFFIX = ".ttpack"


class Cubin(NamedTuple):
    """Machine code for one kernel and one GPU generation, with what a launcher must know. Sizes and alignments are in bytes.

    `image` is the cubin, `name` the kernel's symbol in it. `shared` is dynamic shared memory per block; `global_scratch_size` and
    `profile_scratch_size` are device memory per block that the last two parameters point to. `num_ctas` blocks form a cluster,
    `cooperative` and `pdl` (programmatic dependent launch) are launch attributes. `tensordesc` holds a dict per tensor
    descriptor argument: swizzle, elem_size, elem_type, block_size, fp4_padded. `tmem_size` counts columns of tensor memory.
    """

    name: str
    image: bytes
    arch: int
    shared: int
    num_warps: int
    num_ctas: int = 1
    global_scratch_size: int = 0
    global_scratch_align: int = 1
    profile_scratch_size: int = 0
    profile_scratch_align: int = 1
    cooperative: bool = False
    pdl: bool = False
    tmem_size: int = 0
    tensordesc: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, compiled: Any, arch: int) -> Cubin:
        """What Triton's CompiledKernel (3.6 to 3.9) says."""
        m = compiled.metadata

        def number(name: str, least: int = 0) -> int:
            return max(int(getattr(m, name, None) or 0), least)

        return cls(
            m.name, compiled.asm["cubin"], arch, number("shared"), number("num_warps", 1), number("num_ctas", 1),
            number("global_scratch_size"), number("global_scratch_align", 1), number("profile_scratch_size"),
            number("profile_scratch_align", 1), bool(getattr(m, "launch_cooperative_grid", False)), bool(getattr(m, "launch_pdl", False)),
            number("tmem_size"), tuple(getattr(m, "tensordesc_meta", None) or ()),
        )  # fmt: skip


# One kernel: magic, its key, bytes of metadata and image, metadata (JSON), image, and a checksum over all of it.
_MAGIC = b"TTCUBIN1"
_HEAD = struct.Struct("<8s32sII")
_CHECKSUM = struct.Struct("<I")


def encode(key: bytes, cubin: Cubin) -> bytes:
    """A cubin as the bytes that the disk cache and packs hold."""
    facts = cubin._asdict()
    image = facts.pop("image")
    text = json.dumps(facts).encode()
    body = _HEAD.pack(_MAGIC, key, len(text), len(image)) + text + image
    return body + _CHECKSUM.pack(zlib.crc32(body))


def decode(key: bytes, blob: bytes) -> Cubin:
    """The cubin in `blob`; raises ValueError saying what is wrong when it is torn, foreign, or another kernel's."""
    if len(blob) < _HEAD.size + _CHECKSUM.size:
        raise ValueError(f"it ends after {len(blob)} bytes")
    magic, held, text, image = _HEAD.unpack_from(blob)
    if magic != _MAGIC:
        raise ValueError(f"it starts with {magic!r} and not with {_MAGIC!r}")
    wanted = _HEAD.size + text + image + _CHECKSUM.size
    if len(blob) != wanted:
        raise ValueError(f"it has {len(blob)} bytes of {wanted}")
    # the view copies no image: a cubin may be megabytes
    if _CHECKSUM.unpack_from(blob, wanted - _CHECKSUM.size)[0] != zlib.crc32(memoryview(blob)[: -_CHECKSUM.size]):
        raise ValueError("its checksum is wrong")
    if held != key:
        raise ValueError("it holds another kernel")
    facts = json.loads(blob[_HEAD.size : _HEAD.size + text])
    facts["tensordesc"] = tuple(facts["tensordesc"])
    start = _HEAD.size + text
    return Cubin(image=blob[start : start + image], **facts)


# A pack: magic, where the index is, a JSON line about it, the kernels, and the index sorted by key.
_PACK_MAGIC = b"TTPACK1\n"
_PACK_HEAD = struct.Struct("<8sQII")  # magic, offset of the index, rows, checksum of the index
_ROW = struct.Struct("<32s16sQQ")  # key, meaning (the key without the sources), offset, bytes


class Pack:
    """A memory-mapped file of compiled kernels, found by key in the sorted index; nothing is parsed until a kernel is taken.

    Raises LaunchError when the file is not there, is no pack, or is torn.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            why = "the file is empty" if isinstance(error, ValueError) else error.strerror or str(error)
            raise LaunchError(f"pack {self.path}: {why}; `tritensor precompile --out {self.path}` makes one") from None
        # first, so that a foreign file is named as one, and not as a torn pack
        if self._map[:8] != _PACK_MAGIC:
            raise self._bad(f"starts with {self._map[:8]!r}: no pack of compiled kernels, or one of another format")
        if len(self._map) < _PACK_HEAD.size:
            raise self._bad(f"ends after {len(self._map)} bytes")
        _, self._index, self.count, checksum = _PACK_HEAD.unpack_from(self._map)
        if len(self._map) != self._index + self.count * _ROW.size:
            raise self._bad(f"has {len(self._map)} bytes of {self._index + self.count * _ROW.size}")
        if zlib.crc32(memoryview(self._map)[self._index :]) != checksum:
            raise self._bad("has an index whose checksum is wrong")
        line = self._map.find(b"\n", _PACK_HEAD.size)
        self.about: dict[str, Any] = json.loads(self._map[_PACK_HEAD.size : line])

    def _bad(self, what: str) -> LaunchError:
        return LaunchError(f"pack {self.path}: {what}; remove it and make it again with `tritensor precompile --out {self.path}`")

    def _row(self, i: int) -> tuple[bytes, bytes, int, int]:
        return _ROW.unpack_from(self._map, self._index + i * _ROW.size)  # type: ignore[return-value]

    def get(self, key: bytes) -> bytes | None:
        """The encoded kernel of a key, or None."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            found, _, offset, size = self._row(middle)
            if found == key:
                return self._map[offset : offset + size]
            low, high = (middle + 1, high) if found < key else (low, middle)
        return None

    def means(self, meaning: bytes) -> bool:
        """Whether it has a kernel of this name, types, constants and architecture, whatever its source was."""
        return any(self._row(i)[1] == meaning for i in range(self.count))

    def rows(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """(key, meaning, encoded kernel) of all kernels."""
        for i in range(self.count):
            key, meaning, offset, size = self._row(i)
            yield key, meaning, self._map[offset : offset + size]

    def close(self) -> None:
        """Unmap the file."""
        self._map.close()


def write_pack(path: Path, about: dict[str, Any], rows: Iterable[tuple[bytes, bytes, bytes]]) -> int:
    """Write (key, meaning, encoded kernel) rows to a pack, atomically; returns its size in bytes. Raises OSError."""
    line = json.dumps(about).encode() + b"\n"
    offset = _PACK_HEAD.size + len(line)
    blobs, index = [], []
    for key, meaning, blob in sorted(rows):
        index.append(_ROW.pack(key, meaning, offset, len(blob)))
        blobs.append(blob)
        offset += len(blob)
    table = b"".join(index)
    head = _PACK_HEAD.pack(_PACK_MAGIC, offset, len(index), zlib.crc32(table))
    write_whole(path, b"".join((head, line, *blobs, table)))
    return offset + len(table)


def write_whole(path: Path, data: bytes) -> None:
    """Make `path` hold `data`: readers see all of it or what was there before. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    token = hashlib.sha256(os.urandom(16)).hexdigest()[:12]
    beside = path.with_name(f".{path.name}.{os.getpid()}.{token}")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
