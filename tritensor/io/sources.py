"""Sources of checkpoints: a path mapped into memory or read, an open file, a pipe; and the format that their bytes open like."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from tritensor.ground.errors import CheckpointError

MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # of torch.save before 1.6: an integer, pickled
_OPENINGS = {  # how other files open, and what to do with them
    b"PK\x05\x06": "an empty zip archive",
    b"PK\x07\x08": "a zip archive in parts; join them first",
    b"\x1f\x8b": "compressed with gzip; gunzip it first",
    b"BZh": "compressed with bzip2; bunzip2 it first",
    b"\xfd7zXZ": "compressed with xz; unxz it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unzstd it first",
    b"\x89HDF": "an HDF5 file, as Keras writes; read it with h5py and give its arrays to from_numpy",
    b"\x93NUMPY": "an array of numpy's; from_numpy(numpy.load(file)) reads it",
    b"version https://git-lfs": "a pointer of git-lfs, not the file itself; `git lfs pull` fetches it",
    b"<": "a page of markup, such as a server's message; download the file again",
    b"GGUF": "a GGUF file, as llama.cpp reads",
}


class Source:
    """A checkpoint's bytes: a writable `view` from where it begins; `label`, its name in messages."""

    def __init__(
        self, view: memoryview, label: str, fd: int | None = None, start: int = 0, on_close: Callable[[int], object] | None = None
    ) -> None:
        self.view, self.label = view, label
        self._fd, self._start, self._on_close = fd, start, on_close

    def fill(self, memory: np.ndarray, at: int) -> None:
        """Read bytes from `at` on into a vector; straight from the file where there is one, so that no second copy is in memory."""
        if self._fd is None:
            memory[:] = np.frombuffer(self.view, np.uint8, len(memory), at)
            return
        rest, at = memoryview(memory.data), at + self._start
        while len(rest):
            n = os.preadv(self._fd, [rest], at)
            if n == 0:
                raise CheckpointError(f"{self.label}: became shorter while it was read")
            rest, at = rest[n:], at + n

    def close(self, end: int | None = None) -> None:
        """Release it; an open file of the user's is left behind what was read, at byte `end` of the view."""
        if self._on_close is not None:
            self._on_close(len(self.view) if end is None else end)
            self._fd = None
        self.release()
        self._fd = self._on_close = None

    def release(self) -> None:
        """Close the descriptor; one that belongs to a file of the user's stays open."""
        if self._on_close is None and self._fd is not None:
            os.close(self._fd)
        self._fd = None


def open_source(f: Any, mapped: bool | None = None) -> Source:
    """The source of a path or a binary file. A path is mapped (privately: writing to a tensor does not change the file) unless `mapped` is False.

    Raises FileNotFoundError and the like as open() does, CheckpointError for an empty file, TypeError for what is neither.
    """
    if isinstance(f, str | os.PathLike):
        return _open_path(f, mapped is not False)
    if mapped:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if not hasattr(f, "read"):
        raise TypeError(f"load: a {type(f).__name__} is neither a path nor a binary file with read()")
    label = str(getattr(f, "name", type(f).__name__))
    if isinstance(f, io.TextIOBase):
        raise TypeError(f"load: {label} is open for text; open it with 'rb'")
    return _map_open_file(f, label) or _read_file(f, label)


def _open_path(path: str | os.PathLike[str], mapped: bool) -> Source:
    label = os.fspath(path)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(21, "Is a directory; for a folder of shards use io.load_sharded", label)
        if not stat.S_ISREG(found.st_mode):
            with open(fd, "rb", closefd=False) as file:
                source = _read_stream(file, label)
            os.close(fd)
            return source
        if found.st_size == 0:
            raise CheckpointError(f"{label}: the file is empty; it was cut off while being written: copy or save it again")
        if not mapped:
            memory = np.empty(found.st_size, np.uint8)
            source = Source(memoryview(memory.data), label, fd)
            source.fill(memory, 0)
            return source
        return Source(memoryview(mmap.mmap(fd, 0, access=mmap.ACCESS_COPY)), label, fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise


def _map_open_file(f: Any, label: str) -> Source | None:
    """A plain file that Python has open, mapped from its position; None for another."""
    # a subclass may decompress, or count what is read
    if type(f) not in (io.BufferedReader, io.BufferedRandom, io.FileIO) or not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
        return None
    if not f.readable():
        raise io.UnsupportedOperation(f"load: {label} is not open for reading; open it with 'rb'")
    if type(f) is io.BufferedRandom:  # what was written is in its buffer, and the mapping sees the file
        f.flush()
    at, size = f.tell(), os.fstat(f.fileno()).st_size
    if at >= size:
        raise CheckpointError(f"{label}: stands at its end, byte {at}: nothing is left to read; seek(0) first")
    view = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY))[at:]
    return Source(view, label, f.fileno(), at, lambda end: f.seek(at + end))


def _read_file(f: BinaryIO, label: str) -> Source:
    """A binary file of any kind. One that can seek is in memory once: its size is known."""
    try:
        at = f.tell()
        f.seek(0, os.SEEK_END)
        size = f.tell() - at  # a file of a library's own may return nothing from seek()
        f.seek(at)
    except (OSError, AttributeError):
        return _read_stream(f, label)
    if size <= 0:
        raise CheckpointError(f"{label}: nothing is left to read at byte {at}; seek(0) first, or the file is empty")
    if isinstance(f, io.BytesIO):
        with f.getbuffer() as whole:
            memory = np.array(np.frombuffer(whole, np.uint8, size, at))
        f.seek(at + size)
    else:
        content = f.read()  # without a size: a file may claim one that it has not (/proc, a wrapper that decompresses)
        if not isinstance(content, bytes | bytearray | memoryview):
            raise TypeError(f"load: {label} gives {type(content).__name__}, not bytes; open it with 'rb'")
        memory = np.array(np.frombuffer(content, np.uint8))
    return Source(memoryview(memory.data), label, None, 0, lambda end: f.seek(at + end))


def _read_stream(f: BinaryIO, label: str) -> Source:
    opening = f.read(512)  # looked at first: what is no checkpoint may never end
    while 0 < len(opening) < 512 and (more := f.read(512 - len(opening))):
        opening += more
    if not isinstance(opening, bytes):
        raise TypeError(f"load: {label} gives {type(opening).__name__}, not bytes; open it with 'rb'")
    recognise_format(memoryview(opening), label)
    return Source(memoryview(bytearray(opening + f.read())), label)


def recognise_format(view: memoryview, label: str) -> str:
    """The format that the bytes open like: "safetensors", "zip" or "legacy". Raises CheckpointError, which says what they are instead."""
    opening = bytes(view[:512])
    if opening[:4] == b"PK\x03\x04":
        return "zip"
    if opening[:1] == b"\x80" and MAGIC in opening[:24]:
        return "legacy"
    if opening[8:9] == b"{":
        return "safetensors"
    if opening[257:262] == b"ustar" or opening[:100].rstrip(b"\0") in (b"sys_info", b"pickle", b"storages", b"tensors"):
        raise CheckpointError(
            f"{label}: this is a tar archive, as torch.save wrote before PyTorch 0.1.10; where PyTorch is installed, "
            "torch.save(torch.load(file, weights_only=False), file) writes it anew"
        )
    if opening[:1] == b"\x80" and len(opening) > 1 and opening[1] in (2, 3, 4, 5):
        raise CheckpointError(
            f"{label}: this is a Python pickle, not a checkpoint of save(); reading one runs code from the file, so it is refused: "
            "pickle.load reads it, if you trust it"
        )
    for begins, what in _OPENINGS.items():
        if opening.startswith(begins):
            raise CheckpointError(f"{label}: this is no checkpoint, but {what}")
    if len(opening) < 10:
        raise CheckpointError(f"{label}: {len(opening)} bytes hold no checkpoint; the file is torn or foreign: copy or save it again")
    raise CheckpointError(
        f"{label}: this is no checkpoint: it opens neither like a safetensors file (a header length and '{{') nor like one of torch.save's"
    )
