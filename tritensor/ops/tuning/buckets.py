"""Buckets of shapes: the numbers that a launch's config is chosen by, rounded up to powers of two, as they stand in a tuned file."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes


def bucket_of(key: tuple[Any, ...]) -> str:
    """A config key as text: 1000 and 1024 are one bucket, "1024"; 0 and 1 are two.

    Whole numbers above 0 are rounded up to a power of two, so that a tile which holds the longest row of a bucket holds them all, and a row of
    one element, which kernels treat apart, has a bucket of its own. Flags, words and tuples stand as they are; an element type stands in the
    entry's own field (`dtype_of`) and is left out here.
    """
    return " ".join([_part(k) for k in key if not isinstance(k, np.dtype)])


def _part(k: Any) -> str:
    if isinstance(k, tuple):
        return "(" + " ".join([_part(v) for v in k]) + ")"
    # before int: True would be the bucket of 1
    if isinstance(k, (bool, np.bool_)):
        return "yes" if k else "no"
    if isinstance(k, (int, np.integer)):
        n = int(k)
        return str(1 << (n - 1).bit_length() if n > 0 else n)
    return str(k)


def dtype_of(key: tuple[Any, ...]) -> str:
    """The name of the first element type in a config key; "any" where there is none."""
    for k in key:
        if isinstance(k, np.dtype):
            return dtypes.of(k).name
    return "any"
