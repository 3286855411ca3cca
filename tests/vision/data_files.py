"""Small files in the formats of published data sets, as their authors' programs write them."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(7)
CODES = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def idx(values: np.ndarray) -> bytes:
    """The IDX form of an array."""
    head = struct.pack(">HBB", 0, CODES[values.dtype.name], values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    return head + values.astype(values.dtype.newbyteorder(">")).tobytes()


def mnist(stem: str = "{half}-{kind}-idx{dims}-ubyte", train: str = "train", test: str = "t10k") -> dict[str, bytes]:
    """Twelve images to train, five to test, gzipped: {name: content}."""
    found = {}
    for half, n in ((train, 12), (test, 5)):
        images, labels = RNG.integers(0, 256, (n, 28, 28), dtype=np.uint8), (np.arange(n) % 10).astype(np.uint8)
        for kind, values in (("images", images), ("labels", labels)):
            found[stem.format(half=half, kind=kind, dims=values.ndim) + ".gz"] = gzip.compress(idx(values))
    return found


def _string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<I", len(text)) + text


def python2_pickle(entries: dict[str, object]) -> bytes:
    """A dict in protocol 2, with numpy arrays of bytes, as Python 2's cPickle wrote CIFAR's batches: opcode by opcode."""

    def value(x: object) -> bytes:
        if isinstance(x, str):
            return _string(x.encode("latin1"))
        if isinstance(x, int):
            return b"J" + struct.pack("<i", x)
        if isinstance(x, list):
            return b"](" + b"".join(map(value, x)) + b"e"
        assert isinstance(x, np.ndarray)
        kind = (
            b"cnumpy\ndtype\n" + _string(b"u1") + b"K\x00K\x01\x87R(K\x03" + _string(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        )
        shape = b"".join(b"M" + struct.pack("<H", n) for n in x.shape) + b"\x86"
        start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + _string(b"b") + b"\x87R"
        return start + b"(K\x01" + shape + kind + b"\x89" + _string(x.tobytes()) + b"tb"

    return b"\x80\x02}(" + b"".join(_string(k.encode()) + value(v) for k, v in entries.items()) + b"u."


def rows(n: int) -> np.ndarray:
    return RNG.integers(0, 256, (n, 3072), dtype=np.uint8)


def write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
