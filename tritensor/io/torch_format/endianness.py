"""Byte order of torch.save's files: the one that a file says, the one assumed where it says nothing."""

from __future__ import annotations

import enum
import sys

import numpy as np

from tritensor.ground.dtypes import DType
from tritensor.ground.errors import CheckpointError
from tritensor.io.torch_format.archive import Archive


class LoadEndianness(enum.Enum):
    """A byte order, for `set_default_load_endianness`."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_assumed: LoadEndianness | None = None


def get_default_load_endianness() -> LoadEndianness | None:
    """The order that is assumed of files which do not tell theirs, those of PyTorch before 2.1; None is little-endian."""
    return _assumed


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Assume an order of files which do not tell theirs. Raises TypeError for what is no LoadEndianness."""
    global _assumed
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness: give a LoadEndianness, or None")
    _assumed = endianness


def needs_swap(archive: Archive) -> bool:
    """Whether an archive's elements are in the other order than this machine's."""
    if "byteorder" in archive.records:
        order = bytes(archive.read("byteorder")[:16])
        if order not in (b"little", b"big"):
            raise CheckpointError(f"{archive.label}: the order of bytes is {order!r}, not little or big; the file is damaged")
        return order.decode() != sys.byteorder
    if _assumed is LoadEndianness.NATIVE:
        return False
    return (sys.byteorder == "big") != (_assumed is LoadEndianness.BIG)


def swap_bytes(memory: np.ndarray, dtype: DType) -> np.ndarray:
    """A copy with the bytes of each element in reverse; of complex numbers those of each part."""
    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    return np.ascontiguousarray(memory.reshape(-1, width)[:, ::-1]).reshape(-1)
