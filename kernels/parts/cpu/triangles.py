"""Triangles of matrices, or of batches of them, on the CPU: those of small ones by masks that are kept."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_FEW = 16384  # elements of a mask that is worth its memory


def _make_mask(rows: int, columns: int, diagonal: int) -> np.ndarray:
    return np.tri(rows, columns, diagonal, bool)


_kept_mask = lru_cache(maxsize=64)(_make_mask)


def _mask(x: np.ndarray, diagonal: int) -> np.ndarray:
    rows, columns = x.shape[-2:]
    return (_kept_mask if rows * columns <= _FEW else _make_mask)(rows, columns, diagonal)


def lower(x: np.ndarray, diagonal: int = 0) -> np.ndarray:
    """x[..., i, j] where j - i <= diagonal, zeros above."""
    return np.where(_mask(x, diagonal), x, x.dtype.type(0))


def upper(x: np.ndarray, diagonal: int = 0) -> np.ndarray:
    """x[..., i, j] where j - i >= diagonal, zeros below."""
    return np.where(_mask(x, diagonal - 1), x.dtype.type(0), x)
