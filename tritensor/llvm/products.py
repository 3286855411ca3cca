"""Products of matrices by numpy's BLAS on the threads that share loops, in place of BLAS's own (see threads.single_threaded_blas)."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.llvm import threads, workers

_THREADED = 1 << 18  # multiplications from which OpenBLAS would use threads of its own
_THREADED_VECTOR = 9216  # the same of a matrix and a vector
MANY = 1 << 21  # from which sharing them pays
_MANY_FOR_PYTHON = 1 << 25  # the same where a thread has to come back to Python for its part
_FEW_ROWS = 96
_LARGE = 1 << 17  # elements of a matrix
_WIDE = 16  # rows or columns of a part, at least
_WORDS = ctypes.c_int64 * 6
_LETTERS = {False: ctypes.c_char(b"N"), True: ctypes.c_char(b"T")}
_ONE = {np.dtype(np.float32): ctypes.c_float(1), np.dtype(np.float64): ctypes.c_double(1)}
_ZERO = {np.dtype(np.float32): ctypes.c_float(0), np.dtype(np.float64): ctypes.c_double(0)}


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """np.matmul."""
    if _should_turn(a, b):
        across = _multiply_shared(b.T, a.T, None)
        if out is None:
            return np.ascontiguousarray(across.T)
        out[...] = across.T
        return out
    return _multiply_shared(a, b, out)


def _should_turn(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether few rows meet a large transposed matrix, a weight: OpenBLAS is up to three times as fast at b^T a^T, which is then transposed."""
    return (
        a.ndim == b.ndim == 2
        and 1 < len(a) <= _FEW_ROWS
        and b.size >= _LARGE
        and b.shape[1] >= 2 * len(a)
        and a.dtype == b.dtype == np.float32
        and b.strides[0] == 4
        and b.strides[1] > 4
    )


def _multiply_shared(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """np.matmul, by the threads that share loops."""
    matrices = a.ndim > 1 and b.ndim > 1
    if matrices:
        multiplications = a.size * b.shape[-1] * (math.prod(b.shape[:-2]) if a.ndim == 2 else 1)
        threaded = _THREADED_VECTOR if 1 in (a.shape[-2], b.shape[-1]) else _THREADED
    else:
        multiplications, threaded = max(a.size, b.size), _THREADED_VECTOR
    # below it OpenBLAS uses one thread of its own accord
    if multiplications < threaded or a.dtype.kind != "f" or threads.count() < 2:
        return np.matmul(a, b, out=out)  # type: ignore[no-any-return, call-overload]
    with threads.single_threaded_blas:
        if multiplications < MANY or not matrices or threads.free() < 2:
            return np.matmul(a, b, out=out)  # type: ignore[no-any-return, call-overload]
        if out is None:
            shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
            out = np.empty(shape, np.result_type(a, b))
        if not (_multiply_many_by_blas(a, b, out) if out.ndim == 3 else _multiply_by_blas(a, b, out)):
            if multiplications < _MANY_FOR_PYTHON:
                return np.matmul(a, b, out=out)  # type: ignore[no-any-return]
            _multiply_in_parts(a, b, out)
    return out


class _Parts(NamedTuple):
    """How threads share a product of matrices of some shapes that lie in some way: arguments of BLAS's function for each part, with places for where
    the three begin, and how far from there each part's begins. BLAS is told numbers by where they are: `words` keeps them."""

    arguments: list[list[int]]
    far: list[tuple[int, int, int]]
    words: list[Any]


@functools.lru_cache(maxsize=1024)
def _parts_of(sizes: tuple[int, int, int], strides: tuple[tuple[int, int], ...], dtype: np.dtype, threads_: int) -> _Parts | None:
    """The parts of (m, k, n); None where BLAS does not take matrices that lie so, or there are too few rows and columns."""
    (m, k, n), item = sizes, dtype.itemsize
    lies = [_orientation(shape, step, item) for shape, step in zip(((m, k), (k, n), (m, n)), strides, strict=True)]
    if lies[0] is None or lies[1] is None or lies[2] is None or lies[2][0]:
        return None
    # what all threads read again, the other matrix, is not much larger then; rows of results lie together
    by_rows = 2 * m >= n
    long = m if by_rows else n
    # whole groups of rows: BLAS's inner loops do not come to ragged ends within a part
    turns = long // _WIDE
    if turns < 2:
        return None
    found = _Parts([], [], [])
    ends = [turns * i // threads_ * _WIDE for i in range(threads_)] + [long]
    for start, end in itertools.pairwise(ends):
        if start == end:
            continue
        arguments, words = _call(*((end - start, n) if by_rows else (m, end - start)), k, lies, dtype)  # type: ignore[arg-type]
        found.words.append(words)
        found.arguments.append(arguments)
        found.far.append((start * strides[0][0], 0, start * strides[2][0]) if by_rows else (0, start * strides[1][1], start * item))
    return found


ROWS, RIGHT, LEFT, RESULT = 3, 6, 8, 11  # places of a call: where its number of rows is, and where the matrices begin


def _call(rows: int, columns: int, k: int, lies: Sequence[tuple[bool, int]], dtype: np.dtype) -> tuple[list[int], Any]:
    """The arguments of BLAS's function for a product of matrices that lie so, with zeros for where they begin, and the words that they point to."""
    (across_a, step_a), (across_b, step_b), (_, step_out) = lies
    words = _WORDS(columns, rows, k, step_b, step_a, step_out)
    at = [ctypes.addressof(words) + 8 * i for i in range(6)]
    # column-major: the transposed product of the transposed matrices
    return [
        ctypes.addressof(_LETTERS[across_b]), ctypes.addressof(_LETTERS[across_a]), at[0], at[1], at[2], ctypes.addressof(_ONE[dtype]), 0, at[3], 0, at[4],
        ctypes.addressof(_ZERO[dtype]), 0, at[5], 1, 1,
    ], words  # fmt: skip


def call_of(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> tuple[Any, list[int], Any] | None:
    """BLAS's function for a product, its arguments, with zeros for where a and out begin, and what they point to; None where it does not take these arrays."""
    function = _function(a, b, out) if threads.blas() is not None else None
    lies = [_orientation(x.shape, x.strides, x.itemsize) for x in (a, b, out)]  # type: ignore[arg-type]
    if function is None or None in lies or lies[2][0]:  # type: ignore[index]
        return None
    arguments, words = _call(len(a), b.shape[1], b.shape[0], lies, out.dtype)  # type: ignore[arg-type]
    arguments[RIGHT] = b.__array_interface__["data"][0]
    return function, arguments, words


def small_call(matrices: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], dtype: np.dtype) -> tuple[int, list[int], Any] | None:
    """The address of BLAS's function for a product of two matrices, of these shapes and strides in bytes, to a C-ordered one; its arguments, with zeros
    for where the three begin (LEFT, RIGHT, RESULT); and what they point to. None for what numpy multiplies in another way, or on several threads."""
    (one, down), (other, along) = matrices
    found = threads.blas()
    if found is None or len(one) != 2 or len(other) != 2 or 1 in (*one, *other) or 0 in (*one, *other) or one[1] != other[0]:
        return None
    function, (m, k), n = found.products.get(dtype), one, other[1]
    turned = m <= _FEW_ROWS and k * n >= _LARGE and n >= 2 * m
    squared = m == n and down[::-1] == along  # maybe x @ x.T, which numpy computes half of
    lies = [_orientation(shape, steps, dtype.itemsize) for shape, steps in (((m, k), down), ((k, n), along))]  # type: ignore[arg-type]
    if function is None or None in lies or turned or squared or (m * k * n >= _THREADED and threads.count() > 1):
        return None
    arguments, words = _call(m, n, k, [*lies, (False, n)], dtype)  # type: ignore[list-item]
    return workers.address(function), arguments, words


def _multiply_by_blas(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """BLAS's own function for parts of the rows or columns of one product; False where it does not take these arrays."""
    function = _function(a, b, out)
    if function is None or not a.ndim == b.ndim == out.ndim == 2:
        return False
    parts = _parts_of((*a.shape, b.shape[1]), (a.strides, b.strides, out.strides), out.dtype, threads.count())
    if parts is None:
        return False
    at_a, at_b, at_out = (x.__array_interface__["data"][0] for x in (a, b, out))
    given = []
    for arguments, (far_a, far_b, far_out) in zip(parts.arguments, parts.far, strict=True):
        mine = arguments.copy()
        mine[RIGHT], mine[LEFT], mine[RESULT] = at_b + far_b, at_a + far_a, at_out + far_out
        given.append(mine)
    return threads.call_parts(workers.address(function), given) is not None


def _multiply_many_by_blas(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """BLAS's own function for each of many products (several, m, n), some for each thread; False where it does not take these arrays."""
    function, several = _function(a, b, out), len(out)
    if function is None or not a.ndim == b.ndim == 3 or not len(a) == len(b) == several >= threads.count():
        return False
    parts = _parts_of((*a.shape[1:], b.shape[2]), (a.strides[1:], b.strides[1:], out.strides[1:]), out.dtype, 1)
    if parts is None:
        return False
    at_a, at_b, at_out = (x.__array_interface__["data"][0] for x in (a, b, out))
    calls: list[threads.Call] = []
    for i in range(several):
        mine = parts.arguments[0].copy()
        mine[RIGHT], mine[LEFT], mine[RESULT] = at_b + i * b.strides[0], at_a + i * a.strides[0], at_out + i * out.strides[0]
        calls.append((function, mine))
    ends = [several * k // threads.count() for k in range(threads.count() + 1)]
    return threads.try_programs([calls[low:high] for low, high in itertools.pairwise(ends)])


def _function(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Any:
    """BLAS's product of these types, None where there is none."""
    found = threads.blas()
    assert found is not None
    return found.products.get(out.dtype) if a.dtype == b.dtype == out.dtype else None


def _orientation(shape: tuple[int, int], strides: tuple[int, int], item: int) -> tuple[bool, int] | None:
    """(whether the rows lie across memory, elements between neighbours in the other direction); None where neither direction is without gaps."""
    (rows, columns), (down, along) = shape, strides
    if columns == 1 or along == item:
        step = down // item if rows > 1 else columns
        return (False, step) if down % item == 0 and step >= max(columns, 1) else None
    if rows == 1 or down == item:
        step = along // item
        return (True, step) if along % item == 0 and step >= max(rows, 1) else None
    return None


def _multiply_in_parts(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
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
