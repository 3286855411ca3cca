"""Loading an archive of torch.save, and the stream of pickles that it wrote before PyTorch 1.6."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import CheckpointError
from tritensor.io.device_mapping import Placing
from tritensor.io.sources import Source
from tritensor.io.torch_format import allowed_names, endianness, tensors, trusted
from tritensor.io.torch_format.archive import Archive
from tritensor.io.torch_format.opcodes import read
from tritensor.io.torch_format.pickle_errors import Damaged, ForbiddenGlobalError, told

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


class Reading:
    """How one file is read: where its memory goes, and whether its code may run."""

    def __init__(self, source: Source, map_location: Any, weights_only: bool, pickle_module: Any, arguments: dict[str, Any]) -> None:
        self.source, self.label = source, source.label
        self.placing = Placing(map_location, source.label)
        self.weights_only, self.pickle_module, self.arguments = weights_only, pickle_module, arguments
        self.storages: dict[Any, Any] = {}  # vectors of bytes on their devices, by key

    def values(self, data: memoryview, at: int, persistent: Callable[[Any], Any] | None) -> tuple[Any, int]:
        """The value of the pickle at byte `at`, and where it ends."""
        wanted = ""
        if self.weights_only or (self.pickle_module is None and not self.arguments):  # values need no trust
            try:
                _, constructors = allowed_names.known()
                return read(data, self.label, allowed_names.lookup, constructors, persistent, at, self.placing, len(self.source.view))
            except Damaged as error:
                if self.weights_only:
                    raise CheckpointError(f"{self.label}: the pickle in it is damaged or hostile: {error}") from None
            except ForbiddenGlobalError as error:
                if self.weights_only:
                    raise
                wanted = error.wanted
        warn_of_code(self.label, wanted)
        try:
            return trusted.read(data, at, persistent, self.pickle_module, self.arguments, self.placing)
        except (AttributeError, ImportError) as error:
            raise CheckpointError(
                f"{self.label}: wants a class or function that is not there ({error}); define or import it before the file is loaded"
            ) from error
        except (pickle.UnpicklingError, EOFError, Damaged, LookupError, TypeError) as error:
            raise CheckpointError(f"{self.label}: the pickle in it cannot be read ({type(error).__name__}: {error})") from error

    def storage(self, kind: Any, key: Any) -> Any:
        """The storage of a key as one of a type."""
        memory = self.storages[key]
        if kind.dtype is not None and memory.nbytes % kind.dtype.itemsize:
            raise Damaged(f"the storage {key!r} of {memory.nbytes} bytes is none of {kind}")
        return tensors.typed(memory, kind)


def warn_of_code(label: str, wanted: str) -> None:
    """Tell a user who trusts a file what that means."""
    such = f" such as {wanted}" if wanted else ""
    warnings.warn(
        f"load: {label} holds objects{such}, whose reading runs code from the file (weights_only=False); where you can, save a state_dict instead",
        UserWarning,
        stacklevel=2 + _depth(),
    )


def _depth() -> int:
    """Frames of this package above the caller's caller: a warning is for the line that called load."""
    frame, n = sys._getframe(2), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tritensor.io"):
        frame, n = frame.f_back, n + 1
    return n


def _kind(given: Any) -> tensors.StorageType:
    if not isinstance(given, tensors.StorageType):
        raise Damaged(f"a {type(given).__name__} stands where a type of storage should")
    return given


def _text(given: Any) -> str:
    if type(given) is bytes:
        given = given.decode("ascii", "replace")
    if type(given) is not str:
        raise Damaged(f"a {type(given).__name__} stands where a name should")
    return given


def _count(given: Any) -> int:
    if type(given) is not int or not 0 <= given < 2**56:
        raise Damaged(f"{told(given)} is no number of elements")
    return given


def load_archive(r: Reading) -> Any:
    """The object of a zip archive; on the CPU its tensors lie on the file's bytes."""
    archive = Archive(r.source.view, r.label)
    swap = endianness.swapped(archive)

    def persistent(given: Any) -> Any:
        if type(given) is not tuple or len(given) != 5 or _text(given[0]) != "storage":
            raise Damaged("a storage is named by what is no name of one")
        kind, key, location, count = _kind(given[1]), _text(given[2]), _text(given[3]), _count(given[4])
        need = count * (1 if kind.dtype is None else kind.dtype.itemsize)
        if key not in r.storages:
            record = archive.records.get(f"data/{key}")
            if record is None or record.size < need:
                size = "is missing" if record is None else f"has {record.size} bytes"
                raise CheckpointError(
                    f"{r.label}: a storage of {need} bytes is needed and record data/{key} {size}; the file is damaged: copy or save it again"
                )
            memory = np.frombuffer(r.source.view, np.uint8, need, record.begin) if need else np.empty(0, np.uint8)
            width = 1 if kind.dtype is None else kind.dtype.itemsize
            if swap and width > 1:
                memory = endianness.turned(memory, kind.dtype)
            elif not (memory if kind.dtype is None else memory.view(kind.dtype.numpy)).flags.aligned:
                memory = memory.copy()  # another program's archive: its records may begin anywhere
            r.storages[key] = r.placing.bytes(memory, location)
        return r.storage(kind, key)

    pickled = archive.read("data.pkl")
    value, end = r.values(pickled, 0, persistent)
    if end != len(pickled):
        raise CheckpointError(f"{r.label}: {len(pickled) - end} bytes stand behind the pickle in data.pkl; the file is damaged")
    r.source.close()
    return value


def load_legacy(r: Reading) -> Any:
    """The object of a file of pickles: magic number, version, machine, the object, keys of storages; then the storages themselves."""
    data = r.source.view
    plain = Reading(r.source, None, True, None, {})
    magic, at = plain.values(data, 0, None)
    version, at = plain.values(data, at, None)
    info, at = plain.values(data, at, None)
    if (
        type(magic) is not int
        or type(version) is not int
        or (magic, version) != (MAGIC_NUMBER, PROTOCOL_VERSION)
        or not isinstance(info, dict)
    ):
        raise CheckpointError(
            f"{r.label}: magic number and version are not those of torch.save; the file is damaged: copy or save it again"
        )
    waiting = _Waiting(r)
    r.placing.later = []
    value, at = r.values(data, at, waiting.persistent)
    keys, at = plain.values(data, at, None)
    end = waiting.fill(keys, at)
    for compute in r.placing.later:
        compute()
    r.source.close(end)
    return value


class _Waiting:
    """Storages that are named before their bytes come: room for them, never more than the file has, and where it goes when they are there."""

    def __init__(self, r: Reading) -> None:
        self.r = r
        self.kinds: dict[str, tensors.StorageType] = {}
        self.hosts: dict[str, np.ndarray] = {}
        self.told = 0

    def persistent(self, given: Any) -> Any:
        if (
            type(given) is tuple and len(given) == 4 and type(given[0]) is str and given[0] == "module"
        ):  # a class with its source, for the eye
            return given[1]
        if type(given) is not tuple or len(given) != 6 or _text(given[0]) != "storage":
            raise Damaged("a storage is named by what is no name of one")
        r, kind, key, location, count = self.r, _kind(given[1]), _text(given[2]), _text(given[3]), _count(given[4])
        width = 1 if kind.dtype is None else kind.dtype.itemsize
        if key not in r.storages:
            self.told += count * width
            if self.told > len(r.source.view):
                raise CheckpointError(
                    f"{r.label}: its storages are said to have {self.told} bytes, and the whole file has {len(r.source.view)}; it is torn: copy it again"
                )
            self.kinds[key] = kind
            self.hosts[key] = np.empty(count * width, np.uint8)
            r.storages[key] = r.placing.bytes(self.hosts[key], location)
        if given[5] is not None:
            self._view(key, given[5], width)
            return r.storage(kind, (key, _text(given[5][0])))
        return r.storage(kind, key)

    def _view(self, key: str, view: Any, width: int) -> None:
        """A window on a storage that has a key of its own, as PyTorch wrote before 0.4."""
        if type(view) is not tuple or len(view) != 3:
            raise Damaged("a view of a storage is none")
        name, first, size = _text(view[0]), _count(view[1]), _count(view[2])
        memory = self.r.storages[key]
        if (first + size) * width > memory.nbytes:
            raise Damaged(f"a view of {size} elements from {first} on leaves its storage of {memory.nbytes} bytes")
        self.r.storages.setdefault((key, name), memory[first * width : (first + size) * width])

    def fill(self, keys: Any, at: int) -> int:
        """Read the storages' bytes, in the order of `keys`, from `at` on; where they end."""
        r, data = self.r, self.r.source.view
        if (
            type(keys) is not list
            or not all(type(key) is str for key in keys)
            or set(keys) != set(self.hosts)
            or len(keys) != len(self.hosts)
        ):
            raise CheckpointError(
                f"{r.label}: the storages that tensors need are not those that the file has; it is damaged: copy or save it again"
            )
        for key in keys:
            host, kind = self.hosts[key], self.kinds[key]
            width = 1 if kind.dtype is None else kind.dtype.itemsize
            there = int.from_bytes(data[at : at + 8], "little")
            at += 8
            if at > len(data) or there * width != host.nbytes or at + host.nbytes > len(data):
                raise CheckpointError(
                    f"{r.label}: storage {key} of {host.nbytes} bytes is said to have {there} elements of {width} bytes, and {max(len(data) - at, 0)} "
                    "bytes are left; the file is torn: copy or save it again"
                )
            r.source.fill(host, at)
            at += host.nbytes
            if sys.byteorder == "big" and width > 1:
                host[:] = endianness.turned(host, kind.dtype)
            memory = r.storages[key]
            if not isinstance(memory, np.ndarray):
                memory.storage.write(host, memory.offset)
            elif memory is not host and not np.shares_memory(memory, host):
                memory[:] = host
        return at
