"""Reader of CIFAR's "python" batches, which are pickles, without running anything: lists, dicts, strings, numbers, byte arrays, nothing else."""

from __future__ import annotations

import io
import math
import os
import pickle
from typing import Any, ClassVar

import numpy as np

from tritensor.ground.errors import CheckpointError

_MAX_BYTES = 1 << 29  # bytes of a file; the largest, CIFAR-100's train, has 155 MB


class _ArrayType:
    """Stand-in for numpy's dtype in the file: its name alone."""

    def __init__(self, word: Any = "", *_: Any) -> None:
        self.word = word

    def __setstate__(self, state: Any) -> None:
        """Accept the rest of numpy's state, which says nothing that `u1` does not say."""


class _Array:
    """Stand-in for numpy's array in the file: its state, checked when the values are asked for."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def values(self) -> np.ndarray:
        """The array of bytes. Raises ValueError where the state is of none."""
        _, shape, kind, by_columns, raw = self.state
        raw = raw.encode("latin1") if isinstance(raw, str) else raw  # Python 2 wrote bytes as text
        of_bytes = isinstance(kind, _ArrayType) and kind.word in ("u1", "|u1") and isinstance(raw, bytes)
        sizes = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        if not (of_bytes and sizes and math.prod(shape) == len(raw)):
            raise ValueError(f"an array of type {getattr(kind, 'word', kind)!r} and shape {shape!r}")
        return np.frombuffer(raw, np.uint8).reshape(shape, order="F" if by_columns else "C")


# The names that numpy's arrays have in a pickle, each with its stand-in; encode gives bytes that a newer Python has written for an older one.
_STAND_INS: dict[tuple[str, str], Any] = {("_codecs", "encode"): lambda text, *_: text.encode("latin1")}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    _STAND_INS[_module, "_reconstruct"] = _Array
for _module in ("numpy", "numpy.core", "numpy._core"):
    _STAND_INS[_module, "ndarray"], _STAND_INS[_module, "dtype"] = _Array, _ArrayType
# Ways to objects that these files do not use, and one that allocates what it is told.
_REFUSED = (
    pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.PERSID, pickle.BINPERSID,
    pickle.BYTEARRAY8, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER,
)  # fmt: skip


def _build(reader: Any) -> None:
    """Give a state to the stand-in of an array or its type, and to nothing else."""
    made = reader.stack[-2]
    if not isinstance(made, _Array | _ArrayType):
        raise pickle.UnpicklingError(f"it sets attributes of a {type(made).__name__}, which no batch of CIFAR does")
    pickle._Unpickler.dispatch[pickle.BUILD[0]](reader)


class _Reader(pickle._Unpickler):
    """Python's own reader, the one in Python: opcodes can be taken from it, and its memory is bounded by the file. Classes are _STAND_INS."""

    dispatch: ClassVar[Any] = {
        code: _build if bytes([code]) == pickle.BUILD else read
        for code, read in pickle._Unpickler.dispatch.items()
        if bytes([code]) not in _REFUSED
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of CIFAR does; nothing of it was run")
        return _STAND_INS[module, name]


def read_batch(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The dict of a batch or of its meta file: strings, lists, numbers, and arrays of bytes.

    Raises CheckpointError, which names the file and what is wrong with it, for anything else.
    """
    with open(path, "rb") as file:
        content = file.read(_MAX_BYTES + 1)  # one byte more shows that there are more
    try:
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
        found = _Reader(io.BytesIO(content), encoding="latin1").load()
        if not isinstance(found, dict):
            raise ValueError(f"it holds a {type(found).__name__}, not a dict")
        return {str(k): v.values() if isinstance(v, _Array) else v for k, v in found.items()}
    except Exception as error:  # a damaged pickle fails in any way
        what = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError | pickle.UnpicklingError) else str(error)
        raise CheckpointError(f"{os.fspath(path)}: is no batch of CIFAR ({what}); remove it and download it again") from None
