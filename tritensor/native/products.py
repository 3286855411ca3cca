"""Products of matrices by numpy's BLAS on the threads that share loops, in place of BLAS's own (see threads.blas_alone)."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from tritensor.native import threads, workers

_THREADED = 1 << 18  # multiplications from which OpenBLAS would use threads of its own
_THREADED_VECTOR = 9216  # the same of a matrix and a vector
_MANY = 1 << 21  # from which sharing them pays
_MANY_FOR_PYTHON = 1 << 25  # the same where a thread has to come back to Python for its part
_WIDE = 16  # rows or columns of a part, at least
_WORDS = ctypes.c_int64 * 6
_LETTERS = {False: ctypes.c_char(b"N"), True: ctypes.c_char(b"T")}
_ONE = {np.dtype(np.float32): ctypes.c_float(1), np.dtype(np.float64): ctypes.c_double(1)}
_ZERO = {np.dtype(np.float32): ctypes.c_float(0), np.dtype(np.float64): ctypes.c_double(0)}


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """np.matmul."""
    if a.ndim < 2 or b.ndim < 2:
        if max(a.size, b.size) < _THREADED_VECTOR or threads.count() < 2 or threads.blas() is None:
            return np.matmul(a, b, out=out)  # type: ignore[no-any-return, call-overload]
        with threads.blas_alone:
            return np.matmul(a, b, out=out)  # type: ignore[no-any-return, call-overload]
    multiplications = a.size * b.shape[-1] * (math.prod(b.shape[:-2]) if a.ndim == 2 else 1)
    threaded = _THREADED_VECTOR if 1 in (a.shape[-2], b.shape[-1]) else _THREADED
    if multiplications < threaded or a.dtype.kind != "f" or threads.count() < 2 or threads.blas() is None:
        return np.matmul(a, b, out=out)  # type: ignore[no-any-return, call-overload]
    with threads.blas_alone:
        if multiplications < _MANY:
            return np.matmul(a, b, out=out)  # type: ignore[no-any-return, call-overload]
        if out is None:
            shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
            out = np.empty(shape, np.result_type(a, b))
        if not _by_blas(a, b, out):
            if multiplications < _MANY_FOR_PYTHON:
                return np.matmul(a, b, out=out)  # type: ignore[no-any-return]
            _in_parts(a, b, out)
    return out


def _by_blas(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """BLAS's own function for parts of the rows or columns of one product; False where it does not take these arrays."""
    found = threads.blas()
    assert found is not None
    function = found.products.get(out.dtype)
    if function is None or not (a.ndim == b.ndim == out.ndim == 2 and a.dtype == b.dtype == out.dtype):
        return False
    lies = [_lies(x) for x in (a, b, out)]
    if lies[0] is None or lies[1] is None or lies[2] is None or lies[2][0]:
        return False
    (across_a, step_a), (across_b, step_b), (_, step_out) = lies  # type: ignore[misc]
    (m, n), k, item = out.shape, a.shape[1], out.itemsize
    at_a, at_b, at_out = (x.__array_interface__["data"][0] for x in (a, b, out))
    by_rows = m >= n
    total = (m if by_rows else n) // _WIDE
    if total < 2:
        return False
    address, one, zero = ctypes.addressof, _ONE[out.dtype], _ZERO[out.dtype]
    kept: list[Any] = []  # numbers that are told by where they are, until the call is over

    def part(low: int, high: int) -> list[int]:
        start, end = low * _WIDE, (m if by_rows else n) if high == total else high * _WIDE
        rows, columns = (end - start, n) if by_rows else (m, end - start)
        kept.append(_WORDS(columns, rows, k, step_b, step_a, step_out))
        words = [address(kept[-1]) + 8 * i for i in range(6)]
        if by_rows:
            from_a, from_b, onto = at_a + start * a.strides[0], at_b, at_out + start * out.strides[0]
        else:
            from_a, from_b, onto = at_a, at_b + start * b.strides[1], at_out + start * item
        # column-major: the transposed product of the transposed matrices
        return [
            address(_LETTERS[across_b]), address(_LETTERS[across_a]), words[0], words[1], words[2], address(one), from_b, words[3], from_a, words[4],
            address(zero), onto, words[5], 1, 1,
        ]  # fmt: skip

    return threads.call(workers.address(function), total, part) is not None


def _lies(x: np.ndarray) -> tuple[bool, int] | None:
    """(whether the rows lie across memory, elements between neighbours in the other direction); None where neither direction is without gaps."""
    (rows, columns), (down, along), item = x.shape, x.strides, x.itemsize
    if columns == 1 or along == item:
        step = down // item if rows > 1 else columns
        return (False, step) if down % item == 0 and step >= max(columns, 1) and (along == item or columns == 1) else None
    if rows == 1 or down == item:
        step = along // item
        return (True, step) if along % item == 0 and step >= max(rows, 1) else None
    return None


def _in_parts(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Parts of the first dimension of many products, or of the rows or columns of one, each by numpy."""
    if out.ndim > 2 and out.shape[0] >= threads.count():

        def some(low: int, high: int) -> None:
            left, right = (x[low:high] if x.ndim == out.ndim and x.shape[0] > 1 else x for x in (a, b))
            np.matmul(left, right, out=out[low:high])

        threads.share(some, out.shape[0])
    elif out.shape[-2] >= out.shape[-1]:
        threads.share(lambda low, high: np.matmul(a[..., low:high, :], b, out=out[..., low:high, :]), out.shape[-2])
    else:
        threads.share(lambda low, high: np.matmul(a, b[..., low:high], out=out[..., low:high]), out.shape[-1])
