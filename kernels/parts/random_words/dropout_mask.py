"""Mask of dropout: the words of a stream that drop an element, the scale of the others, and both in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.parts.random_words.philox import CHUNK, numpy_words
from tritensor.random import blocks_used


def threshold(p: float) -> int:
    """Elements whose 32-bit word lies below this are dropped."""
    return round(p * 2**32)


def kept_scale(p: float) -> float:
    """The factor of the elements that are kept."""
    return 1.0 / (1.0 - p) if p < 1 else 1.0  # at 1 nothing is kept to be scaled


def dropped(x: np.ndarray, p: float, seed: int, offset: int) -> np.ndarray:
    """x in which element i, in C order, is 0 where word i of the stream from block `offset` on is below the threshold, and the others are scaled."""
    compute_type: Any = np.float64 if x.dtype == np.float64 else np.float32
    flat = x.reshape(-1)  # in C order, a copy where x is not
    y = np.empty(x.size, x.dtype)
    limit, factor = np.uint64(threshold(p)), compute_type(kept_scale(p))
    # pieces of the cache's size: words are four times as many bytes as half-precision elements
    for first in range(0, x.size, 4 * CHUNK):
        part = slice(first, min(first + 4 * CHUNK, x.size))
        count = part.stop - first
        words = numpy_words(seed, offset + first // 4, 4 * blocks_used(count, 32))[:count]
        drop = words < limit
        value = flat[part].astype(compute_type, copy=False) * factor
        np.copyto(value, 0, where=drop)
        y[part] = value
    return y.reshape(x.shape)
