"""Views of numpy memory by shape, strides and offset."""

from __future__ import annotations

import numpy as np


def window(x: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """A view of numpy memory by shape, strides and offset in BYTES; writable where x is (np.broadcast_to's result is not)."""
    # a ninth of as_strided's time
    if x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, offset, strides)
    if x.itemsize == 1 and x.dtype.isbuiltin == 2:  # numpy's as_strided does not know float8
        return window(x.view(np.uint8), shape, strides, offset).view(x.dtype)
    if offset:
        x = np.lib.stride_tricks.as_strided(x, (2,) + x.shape, (offset,) + x.strides)[1]
    return np.lib.stride_tricks.as_strided(x, shape, strides)
