"""Scatter on the CPU: flat positions of what an index names along one dimension, and ufuncs applied there, in blocks that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tritensor.kernels.parts.indices.error_reports import check_range
from tritensor.ops.array import contiguous_strides

BLOCK = 1 << 14  # elements whose positions and values are in the cache together
FEW = 1 << 11  # elements of which what does not change between calls is kept


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Indices that cut an array of `shape` into blocks of about BLOCK elements: ints for the first dimensions, then a slice."""
    cut, size = len(shape) - 1, shape[-1]
    while cut > 0 and size < BLOCK:
        cut -= 1
        size *= shape[cut]
    step = max(BLOCK * shape[cut] // size, 1) if size else 1
    for outer in np.ndindex(*shape[:cut]) if size else ():
        for first in range(0, shape[cut], step):
            yield *outer, slice(first, min(first + step, shape[cut]))


def position_blocks(name: str, shape: tuple[int, ...], index: np.ndarray, dim: int) -> Iterator[tuple[tuple[Any, ...], np.ndarray]]:
    """(block of index, the flat positions of its elements in a C-ordered array of `shape`), block after block.

    Raises IndexError, in `name`'s words, at the first block that holds an index out of range (negative ones are).
    """
    size = shape[dim]
    if 0 < index.size <= FEW and _inside(index, size):
        yield (...,), few_positions(shape, index, dim).reshape(-1)
        return
    strides = contiguous_strides(shape)
    for block in _blocks(index.shape):
        at = index[block]
        if not _inside(at, size):
            check_range(name, index, size, dim, negative=False)
        if index.ndim > 1 or at.dtype != np.int64:
            at = np.multiply(at, strides[dim], dtype=np.int64, casting="unsafe")
            _move(at, block, strides, dim)
        yield block, at.reshape(-1)


def few_positions(shape: tuple[int, ...], index: np.ndarray, dim: int) -> np.ndarray:
    """The flat positions, in a C-ordered array of `shape`, of the elements of a small index in range."""
    step, bases = _few_bases(shape, index.shape, dim)
    at = np.multiply(index, step, dtype=np.int64, casting="unsafe")
    return at if bases is None else at + bases


@lru_cache(maxsize=128)
def _few_bases(shape: tuple[int, ...], index: tuple[int, ...], dim: int) -> tuple[int, np.ndarray | None]:
    """The step along `dim`, and what the coordinates of an index outside it come to; None where there are no others."""
    strides = contiguous_strides(shape)
    steps = np.array([0 if d == dim else stride for d, stride in enumerate(strides)], np.int64)
    return strides[dim], np.tensordot(steps, np.indices(index), 1) if len(shape) > 1 else None


def _inside(at: np.ndarray, size: int) -> bool:
    """Whether all of a block lies in 0..size-1; in one pass where it can be had: read as unsigned numbers, negative ones are large."""
    if at.dtype == np.int64 and at.flags.c_contiguous:
        return int(np.maximum.reduce(at.view(np.uint64), axis=None)) < size
    return int(np.minimum.reduce(at, axis=None)) >= 0 and int(np.maximum.reduce(at, axis=None)) < size


def _move(at: np.ndarray, block: tuple[Any, ...], strides: tuple[int, ...], dim: int) -> None:
    """Add to positions at a block what its coordinates outside `dim` come to."""
    cut = len(block) - 1
    base = sum(i * stride for d, (i, stride) in enumerate(zip(block[:cut], strides, strict=False)) if d != dim)
    for k, m in enumerate(at.shape):
        if cut + k != dim:
            first = block[cut].start if k == 0 else 0
            at += ((np.arange(first, first + m) * strides[cut + k]) + base).reshape((-1,) + (1,) * (at.ndim - 1 - k))
            base = 0
    if base:
        at += base


def at_least_1d(x: np.ndarray) -> np.ndarray:
    """numpy's atleast_1d, which costs half a microsecond where there is nothing to do."""
    return x if x.ndim else x.reshape(1)


def reached(source: Any, shape: tuple[int, ...], dim: int = -1) -> Any:
    """The part of an array that an index of `shape` reaches; along `dim` all of it."""
    return source if source.shape == shape else source[tuple([slice(None) if d == dim else slice(m) for d, m in enumerate(shape)])]


def put_at(name: str, target: np.ndarray, index: np.ndarray, source: Any, dim: int) -> None:
    """target[.., index[.., j, ..], ..] = source[.., j, ..], or a number; of equal positions the last one stays. target is C-ordered."""
    flat = target.reshape(-1)
    values = reached(source, index.shape) if isinstance(source, np.ndarray) else None
    for block, at in position_blocks(name, target.shape, index, dim):
        flat[at] = source if values is None else values[block].reshape(-1)


def fold_at(name: str, ufunc: np.ufunc, target: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int) -> None:
    """target[.., index[.., j, ..], ..] = ufunc(itself, source[.., j, ..]), one after the other. target is C-ordered.

    ufunc.at costs a few nanoseconds for vectors of one type, ten times as much for others.
    """
    flat, values = target.reshape(-1), reached(source, index.shape)
    for block, at in position_blocks(name, target.shape, index, dim):
        ufunc.at(flat, at, values[block].reshape(-1).astype(target.dtype, copy=False))


def row_keys(index: Any, strides: tuple[int, ...], shape: tuple[int, ...], dim: int) -> Any:
    """The vector of which index is a broadcast along `dim`, so that whole rows of an array of `shape` go together; None for any other."""
    for d, (n, m, stride) in enumerate(zip(shape, index.shape, strides, strict=True)):
        if d != dim and (n != m or (stride != 0 and n != 1)):
            return None
    if 0 in index.shape:
        return None
    return index[tuple([slice(None) if d == dim else 0 for d in range(len(shape))])]
