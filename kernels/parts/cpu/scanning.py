"""Scans on the CPU: running sums by small triangular products, running extrema by doubling, linear recurrences by chunks side by side.

numpy's `accumulate` waits for each element's result before it starts the next; what is here works on whole vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.llvm import products

RUN = 16  # elements that one row of a triangular product adds: the error of a sum of so many stays within 8 eps
_FEW = 64  # elements along the dim below which numpy's own accumulate is as fast
_triangles = {t: np.triu(np.ones((RUN, RUN), t)) for t in "fd"}
WIDE = 128  # elements that one step along the dim must at least be worth
BLOCK = 64  # elements of a row that are asked together for a record
FEW = 2048  # elements of which numpy's own accumulate is there before another way has begun
CHUNK = 65536  # elements that are scanned at a time, so that casts happen in the cache


def backwards(x: np.ndarray, axis: int) -> np.ndarray:
    """A view of x with an axis turned about."""
    return x[(*(slice(None),) * axis, slice(None, None, -1))]


def split(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """(elements before the axis, along it, after it)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def running_sums(x: np.ndarray, axis: int) -> np.ndarray | None:
    """Running sums of a C-ordered float32 or float64 array: runs by a triangular product, their totals in float64.
    None where that is no faster, or where there is an infinity or NaN, which a product would spread."""
    before, n, after = split(x.shape, axis)
    # columns side by side fill vectors by themselves; a triangle of few of them does not
    if n < _FEW or (after > 1 and after < RUN) or x.dtype.char not in _triangles:
        return None
    values, out = x.reshape(before, n, after), np.empty((before, n, after), x.dtype)
    rows = max(CHUNK // max(n * after, 1), 1)  # that stay in the cache together
    for r in range(0, before, rows):
        if not _running_sums_of(values[r : r + rows], out[r : r + rows]):
            return None
    return out.reshape(x.shape)


def _running_sums_of(values: np.ndarray, out: np.ndarray) -> bool:
    """Running sums along axis 1 of (before, n, after), to `out`; False where there is an infinity or NaN."""
    before, n, after = values.shape
    runs, whole = n // RUN, n // RUN * RUN
    triangle = _triangles[values.dtype.char]
    parts = out[:, :whole].reshape(before, runs, RUN, after)  # a view, since RUN divides the axis
    given = values[:, :whole].reshape(before, runs, RUN, after)
    if after == 1:
        products.matmul(given[..., 0], triangle, out=parts[..., 0])
    else:
        products.matmul(triangle.T, given, out=parts)
    totals = np.add.accumulate(parts[:, :, -1].astype(np.float64), axis=1)  # (before, runs, after)
    if not np.isfinite(totals[:, -1]).all():
        return False
    parts[:, 1:] += totals[:, :-1, None].astype(values.dtype)
    if whole < n:
        rest = values[:, whole:].astype(np.float64)
        rest[:, 0] += totals[:, -1]
        out[:, whole:] = np.add.accumulate(rest, axis=1)
    return True


def accumulated(ufunc: np.ufunc, x: np.ndarray, axis: int, kept: np.dtype, result: np.dtype) -> np.ndarray:
    """ufunc.accumulate along an axis in the type `kept`, rounded once to `result`; a few rows at a time, so that the cast ones stay in the cache."""
    if x.dtype == kept == result:
        return ufunc.accumulate(x, axis=axis)
    before, n, after = split(x.shape, axis)
    if x.size <= CHUNK:
        return ufunc.accumulate(x.astype(kept, copy=False), axis=axis).astype(result, copy=False)
    values, out = x.reshape(before, n, after), np.empty((before, n, after), result)
    if after >= WIDE:
        for part, to in zip(values, out, strict=True):
            _row_by_row(ufunc, part, to, kept)
    else:
        _in_chunks(ufunc, values, out, kept)
    return out.reshape(x.shape)


def _row_by_row(ufunc: np.ufunc, x: np.ndarray, out: np.ndarray, kept: np.dtype) -> None:
    """Along axis 0 of wide rows: the running row is kept in `kept`."""
    running = x[0].astype(kept)
    out[0] = running
    for row, to in zip(x[1:], out[1:], strict=True):
        ufunc(running, row, out=running)
        to[...] = running


def _in_chunks(ufunc: np.ufunc, x: np.ndarray, out: np.ndarray, kept: np.dtype) -> None:
    """Along axis 1 of (before, n, after): some rows, or a stretch of each row, at a time."""
    before, n, after = x.shape
    rows = max(CHUNK // max(n * after, 1), 1)
    steps = min(n, max(CHUNK // max(rows * after, 1), 1))
    for r in range(0, before, rows):
        carry: Any = None
        for s in range(0, n, steps):
            part = x[r : r + rows, s : s + steps].astype(kept)
            if carry is not None:
                ufunc(part[:, 0], carry, out=part[:, 0])
            ufunc.accumulate(part, axis=1, out=part)
            carry = part[:, -1].copy()
            out[r : r + rows, s : s + steps] = part


def running_extremes(ufunc: np.ufunc, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest (np.maximum) or smallest so far along the last axis of a C-ordered (rows, n), and where it stood last, int64. NaN wins.

    Few elements set a record as a rule, so blocks of BLOCK elements are asked first whether one of theirs might.
    """
    rows, n = x.shape
    blocks = n // BLOCK
    if blocks < 8:
        return _every_record(ufunc, x)
    body = x[:, : blocks * BLOCK].reshape(rows, blocks, BLOCK)
    position = (np.argmax if ufunc is np.maximum else np.argmin)(body, axis=2)  # (rows, blocks); faster than reduce, and finds NaN too
    position += np.arange(rows)[:, None] * n + np.arange(blocks) * BLOCK
    best = x.reshape(-1)[position]
    before = ufunc.accumulate(best, axis=1)[:, :-1]
    active = np.empty((rows, blocks), np.bool_)
    active[:, 0] = True
    (np.less if ufunc is np.maximum else np.greater)(best[:, 1:], before, out=active[:, 1:])
    np.logical_not(active[:, 1:], out=active[:, 1:])
    row, block = np.nonzero(active)
    # where records fall often, to look for them costs more than to scan
    if row.size * 3 > active.size:
        return _every_record(ufunc, x)
    chosen = body[row, block]  # (active, BLOCK)
    last = np.maximum(block - 1, 0)
    start = np.where(block > 0, before[row, np.minimum(last, blocks - 2)], chosen[:, 0])
    positions = (row * n + block * BLOCK)[:, None] + np.arange(BLOCK)
    found = positions[_records(ufunc, chosen, start)]
    if blocks * BLOCK < n:
        rest = x[:, blocks * BLOCK :]
        positions = np.arange(rows)[:, None] * n + np.arange(blocks * BLOCK, n)
        start = ufunc(before[:, -1], best[:, -1])
        found = np.sort(np.concatenate([found, positions[_records(ufunc, rest, start)]]))
    counts = np.diff(found, append=x.size)
    return np.repeat(x.reshape(-1)[found], counts).reshape(x.shape), np.repeat(found % n, counts).reshape(x.shape)


def _records(ufunc: np.ufunc, x: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A mask of the elements that set or equal their row's record, given the one before the row."""
    so_far = ufunc.accumulate(np.concatenate([start[:, None], x], axis=1), axis=1)[:, 1:]
    return (x == so_far) | (x != x)


def _every_record(ufunc: np.ufunc, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = ufunc.accumulate(x, axis=1)
    positions = np.where((x == values) | (x != x), np.arange(x.shape[1], dtype=np.int32 if x.shape[1] < 2**31 else np.int64), 0)
    return values, np.maximum.accumulate(positions, axis=1).astype(np.int64, copy=False)


def running_extremes_by_rows(ufunc: np.ufunc, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same along axis 0 of an (n, width), a row at a time."""
    values, indices = np.empty_like(x), np.zeros(x.shape, np.int64)
    values[0] = x[0]
    for i in range(1, len(x)):
        ufunc(values[i - 1], x[i], out=values[i])
        indices[i] = indices[i - 1]
        indices[i][(x[i] == values[i]) | (x[i] != x[i])] = i
    return values, indices


def recurrence(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """y_i = a_i y_(i-1) + b_i along axis 0 of two (n, width), with y_-1 = 0; overwrites both. Long ones of few columns in chunks side by side."""
    n, width = a.shape
    # a step over a wide row is as much work as numpy's call for it
    if n <= 32 or width >= 512:
        _steps(None, a, b)
        return b
    length = max(math.isqrt(n * width) // 2 // max(width // 32, 1), 16)
    length = min(length, n)
    chunks = -(-n // length)
    spare = chunks * length - n
    if spare:
        a = np.concatenate([a, np.zeros((spare, width), a.dtype)])
        b = np.concatenate([b, np.zeros((spare, width), b.dtype)])
    along = [np.ascontiguousarray(v.reshape(chunks, length, width).transpose(1, 0, 2)).reshape(length, chunks * width) for v in (a, b)]
    _steps(along[0], along[0], along[1])  # the products of a chunk's a, and its own y
    ends = [v[-1].reshape(chunks, width).copy() for v in along]
    carry = recurrence(ends[0], ends[1])[:-1].reshape(1, -1)
    along[1][:, width:] += along[0][:, width:] * carry
    return along[1].reshape(length, chunks, width).transpose(1, 0, 2).reshape(chunks * length, width)[:n]


def _steps(products: np.ndarray | None, a: np.ndarray, b: np.ndarray) -> None:
    """b_i += a_i b_(i-1), row after row; then, where asked, a_i *= a_(i-1)."""
    room = np.empty_like(b[0]) if len(b) else b
    for i in range(1, len(b)):
        np.multiply(a[i], b[i - 1], out=room)
        np.add(b[i], room, out=b[i])
        if products is not None:
            np.multiply(products[i], products[i - 1], out=products[i])
