"""The safetensors container: named arrays behind a JSON header; written atomically, mapped on reading, checked byte by byte.

Layout: 8 bytes, the header's length n, little-endian; n bytes of JSON, `{"name": {"dtype", "shape", "data_offsets":
[begin, end]}, ..., "__metadata__": {str: str}}`, padded with blanks to a multiple of 8; then the data, little-endian, in
C order, without holes. Specification: the README of the safetensors project. No code is ever run on reading.
"""

from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import reprlib
import stat
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.errors import CheckpointError, DTypeError
from tritensor.io.atomic import atomic_write
from tritensor.ops.array import from_host, to_host
from tritensor.tensor.core import Tensor

NAMES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "F8_E5M2": dtypes.float8_e5m2, "F8_E4M3": dtypes.float8_e4m3fn,
    "U16": dtypes.uint16, "I16": dtypes.int16, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
    "U32": dtypes.uint32, "I32": dtypes.int32, "F32": dtypes.float32,
    "U64": dtypes.uint64, "I64": dtypes.int64, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip
_FORMAT_NAMES = {d.name: name for name, d in NAMES.items()}
_MAX_HEADER = 100_000_000  # bytes: the format's own limit, against files that ask for absurd amounts
Path = str | os.PathLike[str]


class Entry(NamedTuple):
    """An array of the file: its type, shape, and bytes `begin` to `end` of the data."""

    dtype: dtypes.DType
    shape: tuple[int, ...]
    begin: int
    end: int


def save_file(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to `path` in the safetensors format; the file is replaced whole or not at all.

    Any device and any strides; a view writes its own elements and nothing of its base. Raises TypeError for a name
    that is no string or a value that is no tensor, DTypeError for complex128, which the format does not know.
    """
    with atomic_write(path) as file:
        write(file, tensors, metadata)


def load_file(path: Path, device: Any = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, on `device` (default: the CPU).

    On the CPU the file is mapped into memory: what is never read costs nothing, and writing to a tensor does not
    change the file. Raises CheckpointError for a file that is torn or not of this format.
    """
    entries, _, data = _open_file(path)
    return {name: tensor_at(data, entry, device) for name, entry in entries.items()}


def load_metadata(path: Path) -> dict[str, str]:
    """The `__metadata__` of a safetensors file: strings by name, {} where there is none."""
    return _open_file(path)[1]


def write(file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write the container to an open binary file."""
    header: dict[str, Any] = {}
    if metadata:
        for key, value in metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"save_file: metadata {key!r}: {value!r} is not a string for a string; the format holds no other kind")
        header["__metadata__"] = dict(metadata)
    for name, t in tensors.items():
        _check_entry(name, t)
    # The data widest types first, so that every array starts at a multiple of its element's size; the header in the order given.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    ends = dict(zip(order, itertools.accumulate(tensors[name].nbytes for name in order), strict=True))
    for name, t in tensors.items():
        header[name] = {"dtype": _FORMAT_NAMES[t.dtype.name], "shape": list(t.shape), "data_offsets": [ends[name] - t.nbytes, ends[name]]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:  # one at a time: a model on a GPU needs room for its largest tensor on the host, not for all
        file.write(np.require(to_host(tensors[name]._array), requirements="C").reshape(-1).view(np.uint8).data)


def _check_entry(name: Any, t: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"save_file: the name {name!r} is not a string")
    if any("\ud800" <= c <= "\udfff" for c in name):
        raise ValueError(f"save_file: the name {name!r} holds half a character, which UTF-8 cannot say; give the tensor another")
    if name == "__metadata__":
        raise ValueError("save_file: '__metadata__' is the format's own name; give the tensor another")
    if not isinstance(t, Tensor):
        raise TypeError(
            f"save_file: {name!r} is a {type(t).__name__}, not a tensor; tritensor.save also takes numbers, strings, dicts and lists"
        )
    if t.dtype.name not in _FORMAT_NAMES:
        raise DTypeError(f"save_file: {name!r} is {t.dtype.name}, which the format does not know; save .real and .imag, or .to(complex64)")


def tensor_at(data: Any, entry: Entry, device: Any = None) -> Tensor:
    """The tensor of one entry; on the CPU it lies on the data itself."""
    if entry.end == entry.begin:  # numpy takes no empty window
        values = np.empty(entry.shape, entry.dtype.numpy)
    else:
        values = np.frombuffer(data, entry.dtype.numpy, math.prod(entry.shape), entry.begin).reshape(entry.shape)
    if not values.flags.aligned:  # a foreign file may start its data anywhere
        values = values.copy()
    where = as_device(device)
    return Tensor.wrap(values if where.type == "cpu" else from_host(values, where))


def _open_file(path: Path) -> tuple[dict[str, Entry], dict[str, str], Any]:
    """Header and data of a file on the disk, the data a private mapping (copied on write); a pipe is read to its end."""
    label = os.fspath(path)
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            data = _read_pipe(file, label)
        elif found.st_size == 0:  # mmap takes no empty file
            raise CheckpointError(f"{label}: the file is empty; it was cut off while being written: copy or save it again")
        else:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    entries, metadata, start = parse(data, label)
    return entries, metadata, data[start:]


def _read_pipe(file: BinaryIO, label: str) -> memoryview:
    """All that a pipe or a device delivers, as memory that can be written to."""
    opening = file.read(9)  # looked at first: a device such as /dev/zero never ends
    if opening[8:] != b"{":
        _find_header_end(memoryview(opening), label)
    return memoryview(bytearray(opening + file.read()))


def parse(data: memoryview, label: str) -> tuple[dict[str, Entry], dict[str, str], int]:
    """Entries by name, metadata, and where the data starts. Raises CheckpointError, which names what does not hold."""
    start = _find_header_end(data, label)
    try:
        header = json.loads(bytes(data[8:start]).decode("utf-8"), object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError) as error:  # no utf-8, no JSON, a name twice, a number or a nest beyond all measure
        raise CheckpointError(
            f"{label}: the header is not the JSON it should be ({error}); the file is damaged: copy or save it again"
        ) from None
    if not isinstance(header, dict):
        raise CheckpointError(f"{label}: the header is a JSON {type(header).__name__}, not an object; this is no safetensors file")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CheckpointError(f"{label}: __metadata__ must hold strings by name; the file is damaged or foreign")
    entries = {name: _parse_entry(name, given, label) for name, given in header.items()}
    _check_coverage(entries, len(data) - start, label)
    return entries, metadata, start


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)  # json keeps the last of two, another reader the first: which tensor was meant?
    if len(found) != len(pairs):
        seen: set[str] = set()
        twin = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twin!r} stands twice")
    return found


def _find_header_end(data: memoryview, label: str) -> int:
    """The byte after the header, after checks that tell a torn file from a foreign one."""
    opening = bytes(data[:9])
    if opening[:4] == b"PK\x03\x04":
        raise CheckpointError(f"{label}: this is a zip archive, as torch.save writes, not a safetensors file; load(path) reads those")
    if opening[:1] == b"\x80" and len(opening) > 1 and opening[1] in (2, 3, 4, 5) and opening[8:9] != b"{":
        raise CheckpointError(
            f"{label}: this is a Python pickle, not a safetensors file; reading one runs code from the file, so it is refused"
        )
    if len(data) < 10:
        raise CheckpointError(f"{label}: {len(data)} bytes hold no header; the file is torn or foreign: copy or save it again")
    length = int.from_bytes(opening[:8], "little")
    if opening[8:9] != b"{" or length > _MAX_HEADER:
        raise CheckpointError(f"{label}: this is no safetensors file: it does not open with a header length and '{{'")
    if 8 + length > len(data):
        raise CheckpointError(
            f"{label}: the header should have {length} bytes and {len(data) - 8} are there; the file is torn: copy or save it again"
        )
    return 8 + length


def _parse_entry(name: str, given: Any, label: str) -> Entry:
    """One entry of the header, each field checked."""
    if not isinstance(given, dict) or given.keys() != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(
            f"{label}: {name!r} is described by {reprlib.repr(given)}, not by dtype, shape and data_offsets; the file is damaged or foreign"
        )
    dtype, shape, span = given["dtype"], given["shape"], given["data_offsets"]
    if not isinstance(dtype, str) or dtype not in NAMES:
        raise CheckpointError(
            f"{label}: {name!r} is of type {reprlib.repr(dtype)}, which tensors here cannot hold; they hold {', '.join(NAMES)}"
        )
    if (
        not _is_counts(shape)
        or not _is_counts(span)
        or len(span) != 2
        or span[0] > span[1]
        or len(shape) > 64
        or math.prod(n or 1 for n in shape) > 2**56  # products beyond would be slow, or wrong in numpy
    ):
        raise CheckpointError(
            f"{label}: {name!r} has shape {reprlib.repr(shape)} at bytes {reprlib.repr(span)}; these are no sizes: the file is damaged"
        )
    need = math.prod(shape) * NAMES[dtype].itemsize
    if span[1] - span[0] != need:
        raise CheckpointError(
            f"{label}: {name!r}, {dtype} {shape}, takes {need} bytes; its offsets {span} hold {span[1] - span[0]}: the file is damaged"
        )
    return Entry(NAMES[dtype], tuple(shape), span[0], span[1])


def _is_counts(x: Any) -> bool:
    return isinstance(x, list) and all(type(n) is int and n >= 0 for n in x)


def _check_coverage(entries: dict[str, Entry], available: int, label: str) -> None:
    """Raise CheckpointError unless the arrays lie one after another and fill the data: no overlap, hole, cut or rest."""
    at, before = 0, "the start"
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != at:
            what = "overlap" if entry.begin < at else "leave a hole"
            raise CheckpointError(
                f"{label}: {before} ends at byte {at} and {name!r} begins at {entry.begin}: they {what}; the file is damaged"
            )
        at, before = entry.end, repr(name)
    if at > available:
        raise CheckpointError(
            f"{label}: the header tells of {at} bytes of data and {available} are there; the file is torn: copy or save it again"
        )
    if at < available:
        raise CheckpointError(f"{label}: {available - at} bytes stand behind the last array; the file is damaged: copy or save it again")
