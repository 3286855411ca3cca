"""Reader of the IDX format of MNIST and its kin: a magic number, sizes, then the values, all big-endian; gzipped or not.

Layout: two bytes 0, one for the type of the values, one for the number of dimensions; the sizes, 4 bytes each; the values in C order.
Source: the page of the MNIST database (LeCun, Cortes, Burges).
"""

from __future__ import annotations

import math
import os

import numpy as np

from tritensor.ground.errors import CheckpointError
from tritensor.io.archives import read_decompressed

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_MAX_DIMS = 8
_MAX_BYTES = 1 << 31  # bytes; the largest file of the family, EMNIST's byclass, has 548 MB


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The array that an IDX file holds, in this machine's byte order.

    Raises CheckpointError, which names the file, for one that is damaged, cut off, or of another format.
    """
    content = read_decompressed(path, _MAX_BYTES)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise CheckpointError(f"{os.fspath(path)}: opens with {content[:4]!r}, which no IDX file does; remove it and download it again")
    dtype, dims = np.dtype(_TYPES[content[2]]), content[3]
    start = 4 + 4 * dims
    shape = tuple(int(n) for n in np.frombuffer(content[4:start], ">u4")) if len(content) >= start else ()
    if len(shape) != dims or len(content) - start != math.prod(shape) * dtype.itemsize:
        raise CheckpointError(
            f"{os.fspath(path)}: {len(content):,} bytes cannot hold {dims} sizes and {dtype.name} {shape}; the file is cut off or damaged: "
            "remove it and download it again"
        )
    if dims > _MAX_DIMS or 0 in shape:  # 0 would let any other size pass the check above
        raise CheckpointError(
            f"{os.fspath(path)}: holds {dims} dimensions of sizes {shape[:8]}, which no data set has; remove it and download it again"
        )
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))  # a copy, which can be written to
