"""Readers of torch.save's zip archive, and of the stream of pickles that it wrote before PyTorch 1.6."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import CheckpointError
from tritensor.io.device_mapping import StorageMapper
from tritensor.io.sources import Source
from tritensor.io.torch_format import allowed_names, endianness, tensors, trusted
from tritensor.io.torch_format.archive import Archive
from tritensor.io.torch_format.opcodes import read
from tritensor.io.torch_format.pickle_errors import DamagedPickle, ForbiddenGlobalError, describe, reject

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


class Reader:
    """A file being read: the devices that its memory goes to, and whether its code may run."""

    def __init__(self, source: Source, map_location: Any, weights_only: bool, pickle_module: Any, arguments: dict[str, Any]) -> None:
        self.source, self.label = source, source.label
        self.mapper = StorageMapper(map_location, source.label)
        self.weights_only, self.pickle_module, self.arguments = weights_only, pickle_module, arguments
        self.storages: dict[Any, Any] = {}  # vectors of bytes on their devices, by key

    def read_value(self, data: memoryview, at: int, persistent_load: Callable[[Any], Any] | None) -> tuple[Any, int]:
        """The value of the pickle at byte `at`, and where it ends."""
        # Values need no trust, so they are read without running anything even for a user who trusts the file.
        if self.weights_only or (self.pickle_module is None and not self.arguments):
            try:
                _, constructors = allowed_names.name_tables()
                return read(data, self.label, allowed_names.lookup, constructors, persistent_load, at, self.mapper, len(self.source.view))
            except DamagedPickle as error:
                if self.weights_only:
                    raise CheckpointError(f"{self.label}: the pickle in it is damaged or hostile: {error}") from None
            except ForbiddenGlobalError:
                if self.weights_only:
                    raise
        try:
            return trusted.read(data, at, persistent_load, self.pickle_module, self.arguments, self.mapper)
        except (AttributeError, ImportError) as error:
            raise CheckpointError(
                f"{self.label}: wants a class or function that is not there ({error}); define or import it before the file is loaded"
            ) from error
        except (pickle.UnpicklingError, EOFError, DamagedPickle, LookupError, TypeError) as error:
            raise CheckpointError(f"{self.label}: the pickle in it cannot be read ({type(error).__name__}: {error})") from error

    def typed_storage(self, kind: Any, key: Any) -> Any:
        """The storage of that key, as one of a type."""
        memory = self.storages[key]
        if kind.dtype is not None and memory.nbytes % kind.dtype.itemsize:
            raise DamagedPickle(f"the storage {key!r} of {memory.nbytes} bytes is none of {kind}")
        return tensors.as_storage(memory, kind)


def _as_storage_type(given: Any) -> tensors.StorageType:
    return given if isinstance(given, tensors.StorageType) else reject(given, "a type of storage")


def _as_text(given: Any) -> str:
    if type(given) is bytes:
        given = given.decode("ascii", "replace")
    return given if type(given) is str else reject(given, "a name")


def _as_count(given: Any) -> int:
    if type(given) is not int or not 0 <= given < 2**56:
        raise DamagedPickle(f"{describe(given)} is no number of elements")
    return given


def load_archive(r: Reader) -> Any:
    """The object of a zip archive; on the CPU its tensors lie on the file's bytes."""
    archive = Archive(r.source.view, r.label)
    swap = endianness.needs_swap(archive)

    def persistent_load(given: Any) -> Any:
        if type(given) is not tuple or len(given) != 5 or _as_text(given[0]) != "storage":
            raise DamagedPickle("a storage is named by what is no name of one")
        kind, key, location, count = _as_storage_type(given[1]), _as_text(given[2]), _as_text(given[3]), _as_count(given[4])
        need = count * kind.itemsize
        if key not in r.storages:
            record = archive.records.get(f"data/{key}")
            if record is None or record.size < need:
                size = "is missing" if record is None else f"has {record.size} bytes"
                raise CheckpointError(
                    f"{r.label}: a storage of {need} bytes is needed and record data/{key} {size}; the file is damaged: copy or save it again"
                )
            # numpy takes no empty window
            memory = np.frombuffer(r.source.view, np.uint8, need, record.begin) if need else np.empty(0, np.uint8)
            if swap and kind.dtype is not None:
                memory = endianness.swap_bytes(memory, kind.dtype)
            elif not (memory if kind.dtype is None else memory.view(kind.dtype.numpy)).flags.aligned:
                memory = memory.copy()  # another program's archive: its records may begin anywhere
            r.storages[key] = r.mapper.bytes(memory, location)
        return r.typed_storage(kind, key)

    pickled = archive.read("data.pkl")
    value, end = r.read_value(pickled, 0, persistent_load)
    if end != len(pickled):  # a second pickle would be read by nobody but another program
        raise CheckpointError(f"{r.label}: {len(pickled) - end} bytes stand behind the pickle in data.pkl; the file is damaged")
    r.source.close()
    return value


def load_legacy(r: Reader) -> Any:
    """The object of a file of pickles: magic number, version, machine, the object, keys of storages; then the storages' bytes."""
    data = r.source.view
    plain = Reader(r.source, None, True, None, {})
    magic, at = plain.read_value(data, 0, None)
    version, at = plain.read_value(data, at, None)
    info, at = plain.read_value(data, at, None)
    ints = type(magic) is int and type(version) is int
    if not ints or (magic, version) != (MAGIC_NUMBER, PROTOCOL_VERSION) or not isinstance(info, dict):
        raise CheckpointError(
            f"{r.label}: magic number and version are not those of torch.save; the file is damaged: copy or save it again"
        )
    waiting = _DeferredStorages(r)
    r.mapper.deferred = []
    value, at = r.read_value(data, at, waiting.persistent_load)
    keys, at = plain.read_value(data, at, None)
    end = waiting.fill(keys, at)
    for compute in r.mapper.deferred:
        compute()
    r.source.close(end)
    return value


class _DeferredStorages:
    """Storages that are named before their bytes come: memory is set aside for them, never more than the file has, and filled later."""

    def __init__(self, r: Reader) -> None:
        self.r = r
        self.kinds: dict[str, tensors.StorageType] = {}
        self.hosts: dict[str, np.ndarray] = {}
        self.claimed = 0

    def persistent_load(self, given: Any) -> Any:
        # a class with its source, which PyTorch compares with the one at hand to warn of changes
        if type(given) is tuple and len(given) == 4 and type(given[0]) is str and given[0] == "module":
            return given[1]
        if type(given) is not tuple or len(given) != 6 or _as_text(given[0]) != "storage":
            raise DamagedPickle("a storage is named by what is no name of one")
        r, kind, key, location, count = self.r, _as_storage_type(given[1]), _as_text(given[2]), _as_text(given[3]), _as_count(given[4])
        if key not in r.storages:
            self.claimed += count * kind.itemsize
            if self.claimed > len(r.source.view):
                raise CheckpointError(
                    f"{r.label}: its storages are said to have {self.claimed} bytes, and the whole file has {len(r.source.view)}; it is torn: copy it again"
                )
            self.kinds[key] = kind
            self.hosts[key] = np.empty(count * kind.itemsize, np.uint8)
            r.storages[key] = r.mapper.bytes(self.hosts[key], location)
        if given[5] is not None:
            self._view(key, given[5], kind.itemsize)
            return r.typed_storage(kind, (key, _as_text(given[5][0])))
        return r.typed_storage(kind, key)

    def _view(self, key: str, view: Any, width: int) -> None:
        """A window on a storage that has a key of its own, as PyTorch wrote before 0.4."""
        if type(view) is not tuple or len(view) != 3:
            raise DamagedPickle("a view of a storage is none")
        name, first, size = _as_text(view[0]), _as_count(view[1]), _as_count(view[2])
        memory = self.r.storages[key]
        if (first + size) * width > memory.nbytes:
            raise DamagedPickle(f"a view of {size} elements from {first} on leaves its storage of {memory.nbytes} bytes")
        self.r.storages.setdefault((key, name), memory[first * width : (first + size) * width])

    def fill(self, keys: Any, at: int) -> int:
        """Read the storages' bytes, in the order of `keys`, from `at` on; returns where they end."""
        r, data = self.r, self.r.source.view
        if type(keys) is not list or not all(type(key) is str for key in keys) or sorted(keys) != sorted(self.hosts):
            raise CheckpointError(
                f"{r.label}: the storages that tensors need are not those that the file has; it is damaged: copy or save it again"
            )
        for key in keys:
            host, kind = self.hosts[key], self.kinds[key]
            width = kind.itemsize
            there = int.from_bytes(data[at : at + 8], "little")
            at += 8
            if at > len(data) or there * width != host.nbytes or at + host.nbytes > len(data):
                raise CheckpointError(
                    f"{r.label}: storage {key} of {host.nbytes} bytes is said to have {there} elements of {width} bytes, and {max(len(data) - at, 0)} "
                    "bytes are left; the file is torn: copy or save it again"
                )
            r.source.fill(host, at)
            at += host.nbytes
            if sys.byteorder == "big" and kind.dtype is not None:
                host[:] = endianness.swap_bytes(host, kind.dtype)
            memory = r.storages[key]
            if not isinstance(memory, np.ndarray):  # of a GPU
                memory.storage.write(host, memory.offset)
            elif memory is not host and not np.shares_memory(memory, host):  # map_location made a copy
                memory[:] = host
        return at
