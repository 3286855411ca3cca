"""Orders on the CPU: keys and columns packed into one integer, which numpy sorts with SIMD; first k and ranks by partition."""

from __future__ import annotations

import math

import numpy as np

from tritensor.kernels.sorting.ordered_keys import key_bits, numpy_keys

FEW = 512


def to_rows(x: np.ndarray, dim: int) -> np.ndarray:
    """x as C-ordered rows (m, n) along dim; a 0-d array is one row of one."""
    if x.ndim == 0:
        return x.reshape(1, 1)
    n = x.shape[dim]
    moved = x.swapaxes(dim, -1)
    return np.ascontiguousarray(moved).reshape(math.prod(moved.shape[:-1]), n)


def from_rows(rows: np.ndarray, shape: tuple[int, ...], dim: int) -> np.ndarray:
    """Rows (m, k) along dim again, in C order: an array of `shape` with k in that dim."""
    if not shape:
        return rows.reshape(())
    if dim == len(shape) - 1:
        return rows.reshape(*shape[:-1], rows.shape[1])
    return np.ascontiguousarray(rows.reshape(*shape[:dim], shape[-1], *shape[dim + 1 : -1], rows.shape[1]).swapaxes(dim, -1))


def take_in_rows(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """rows[i, columns[i, j]] of C-ordered rows (m, n)."""
    m, n = rows.shape
    if m == 1:
        return rows.reshape(-1).take(columns[0])[None]
    return rows.reshape(-1).take(columns + (np.arange(m) * n)[:, None])


def _pack(keys: np.ndarray, bits: int) -> tuple[np.ndarray, int] | None:
    """(key, column) as one unsigned number each, and how many bits the column has; None where no number holds both."""
    n = keys.shape[1]
    column_bits = max(n - 1, 1).bit_length()
    low: int = 0
    if bits == 64 and keys.size:
        low, high = int(keys.min()), int(keys.max())
        bits = (high - low).bit_length()
    elif keys.dtype.kind == "i":
        low = -(1 << (bits - 1))
    if bits + column_bits > 64:
        return None
    kind = np.dtype(np.uint32 if bits + column_bits <= 32 else np.uint64)
    wide = keys.astype(kind)  # modulo 2^32 or 2^64, where the difference is right, too
    wide -= kind.type(low % (1 << 8 * kind.itemsize))
    wide <<= kind.type(column_bits)
    wide |= np.arange(n, dtype=kind)
    return wide, column_bits


def _unpack_columns(packed: np.ndarray, column_bits: int) -> np.ndarray:
    packed &= packed.dtype.type((1 << column_bits) - 1)
    return packed.astype(np.int64)


def _order_of_wide(keys: np.ndarray) -> np.ndarray:
    """The stable order of keys that fill 64 bits: any order, in which runs of equal keys are put right."""
    order = np.argsort(keys, axis=1)
    found = take_in_rows(keys, order)
    new = found[:, 1:] != found[:, :-1]
    if new.all():
        return order
    run = np.zeros(keys.shape, np.uint64)
    np.cumsum(new, axis=1, out=run[:, 1:])
    run <<= np.uint64(32)
    run |= order.astype(np.uint64)
    run.sort(axis=1)
    return _unpack_columns(run, 32)


def stable_order(rows: np.ndarray, descending: bool) -> np.ndarray:
    """int64 (m, n): the columns of every row's elements in order, equal ones in the order of their columns."""
    # of few elements numpy's own stable order is there before they have keys
    if rows.size <= FEW and rows.dtype.kind != "V":
        if not descending:
            return rows.argsort(1, "stable")
        return rows.shape[1] - 1 - rows[:, ::-1].argsort(1, "stable")[:, ::-1]
    return _order_of_keys(numpy_keys(rows, descending), key_bits(rows.dtype))


def _order_of_keys(keys: np.ndarray, bits: int) -> np.ndarray:
    packed = _pack(keys, bits)
    if packed is None:
        return _order_of_wide(keys)
    packed[0].sort(axis=1)
    return _unpack_columns(*packed)


def sorted_values(rows: np.ndarray) -> np.ndarray:
    """Every row upwards, without the columns: equal elements cannot be told apart, but for -0.0 and 0.0, and NaNs."""
    if rows.dtype.kind == "V" or rows.dtype == np.float16:
        order = stable_order(rows, False)
        return take_in_rows(rows, order)
    return np.sort(rows, axis=1, kind="stable" if rows.itemsize == 1 else None)  # bytes by radix: for them numpy has no SIMD


def _partition_keys(rows: np.ndarray, descending: bool) -> np.ndarray:
    """Keys of a type that numpy partitions with SIMD."""
    keys = numpy_keys(rows, descending)
    return keys.astype(np.int16) if keys.itemsize == 1 else keys


def first_columns(rows: np.ndarray, k: int, descending: bool) -> np.ndarray:
    """int64 (m, k): the first k columns of `stable_order`."""
    m, n = rows.shape
    if k == 0 or m == 0:
        return np.zeros((m, k), np.int64)
    if 4 * k >= n or n < 64 or rows.size <= FEW:
        return np.ascontiguousarray(stable_order(rows, descending)[:, :k])
    keys = _partition_keys(rows, descending)
    edge = np.partition(keys, k - 1, axis=1)[:, k - 1 : k]
    found = np.flatnonzero(keys <= edge)
    if found.size != m * k:  # some row has more equals of its last one than fit
        if m > 1:
            return _first_of_packed(keys, k, 8 * keys.itemsize)
        equal = keys.reshape(-1)[found] == edge[0]
        found = np.concatenate([found[~equal], found[equal][: k - (found.size - int(equal.sum()))]])
        found.sort()
    columns = found.reshape(m, k)
    columns = columns - (np.arange(m) * n)[:, None] if m > 1 else columns
    chosen = take_in_rows(keys, columns)
    return take_in_rows(columns, _order_of_keys(chosen, 8 * keys.itemsize))  # columns among the chosen, which are in order


def _first_of_packed(keys: np.ndarray, k: int, bits: int) -> np.ndarray:
    packed = _pack(keys, bits)
    if packed is None:
        return np.ascontiguousarray(_order_of_wide(keys)[:, :k])
    part = np.partition(packed[0], k - 1, axis=1)[:, :k]
    part.sort(axis=1)
    return _unpack_columns(part, packed[1])


def column_of_rank(rows: np.ndarray, rank: np.ndarray | int) -> np.ndarray:
    """int64 (m,): column `rank` of `stable_order`, one for all rows or one for each."""
    m, n = rows.shape
    keys = _partition_keys(rows, False)
    each = np.broadcast_to(np.asarray(rank), (m,))
    if isinstance(rank, int):
        edge = np.partition(keys, rank, axis=1)[:, rank : rank + 1]
    else:
        edge = np.sort(keys, axis=1)[np.arange(m), each][:, None]
    equal = keys == edge
    before = each - np.count_nonzero(keys < edge, axis=1)  # so many equal ones come first
    if m == 1:
        return np.flatnonzero(equal)[before]
    if not before.any():
        return np.argmax(equal, axis=1)
    at = np.flatnonzero(equal)
    starts = np.searchsorted(at, np.arange(m) * n)
    return at[starts + before] - np.arange(m) * n
