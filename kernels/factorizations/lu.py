"""LU with partial pivoting: columns of a batch of small matrices at once, panels and matrix products of large ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.factorizations.matrices import (
    MANY,
    NUMBERS,
    adjoint,
    batched,
    identity,
    in_c_order,
    part,
    refuse_matrix,
    rows,
    runs,
    size_of,
)
from tritensor.kernels.factorizations.triangular import solve_lower
from tritensor.ops.table import Sample, Spec, op, ops

PANEL = 64
LEAF = 8
SMALL = 48  # sizes up to which a whole batch is worked column by column


def _by_columns(a: np.ndarray, pivots: np.ndarray) -> None:
    """LU of a (batch, m, n) in its own memory, rank one by rank one; row k was exchanged with row pivots[:, k]."""
    which = np.arange(len(a))
    for k in range(min(a.shape[1:])):
        at = k + size_of(a[:, k:, k]).argmax(axis=1)
        pivots[:, k] = at
        taken = a[which, at]
        a[which, at] = a[:, k]
        a[:, k] = taken
        pivot = taken[:, k, None]
        below = a[:, k + 1 :, k]
        # as LAPACK: a column of zeros stays as it is, and the elimination goes on
        np.divide(below, pivot, out=below, where=pivot != 0)
        if k + 1 < a.shape[2]:
            a[:, k + 1 :, k + 1 :] -= below[:, :, None] * a[:, k, None, k + 1 :]


def _of_many(a: np.ndarray, pivots: np.ndarray) -> None:
    """The same of many small matrices, some at a time with the batch innermost, so that every step runs along it."""
    m, n = a.shape[1:]
    for run in runs(len(a), 2 * m * n):
        t = np.ascontiguousarray(a[run].transpose(1, 2, 0))  # (m, n, some)
        which = np.arange(t.shape[2])
        for k in range(min(m, n)):
            at = k + size_of(t[k:, k]).argmax(axis=0)
            pivots[run, k] = at
            taken = t[at, :, which].T.copy()  # (n, some)
            t[at, :, which] = t[k].T
            t[k] = taken
            below = t[k + 1 :, k]
            np.divide(below, taken[k], out=below, where=taken[k] != 0)
            for i in range(k + 1, m):
                t[i, k + 1 :] -= t[i, k] * taken[k + 1 :]
        a[run] = t.transpose(2, 0, 1)


def _exchanges(pivots: np.ndarray) -> tuple[list[int], list[int]]:
    """The rows that move when row i is exchanged with row pivots[i], one after the other: their new indices, and their old ones."""
    # exchanges followed through: one gather of rows instead of one exchange after the other
    held: dict[int, int] = {}
    for i, j in enumerate(pivots.tolist()):
        held[i], held[j] = held.get(j, j), held.get(i, i)
    return list(held), list(held.values())


def _panel(t: np.ndarray, pivots: np.ndarray) -> None:
    """LU of one tall matrix, given transposed, in its own memory: its left half, what that takes from the right one, the right half."""
    n = len(t)
    # by halves most of a panel's work becomes matrix products (Toledo, "Locality of reference in LU decomposition with partial pivoting", 1997)
    if n > LEAF:
        half = n // 2
        left, right = t[:half], t[half:]
        _panel(left, pivots[:half])
        to, source = _exchanges(pivots[:half])
        right[:, to] = right[:, source]
        triangle = np.triu(left[:, :half], 1)
        triangle[np.arange(half), np.arange(half)] = 1
        right[:, :half] = right[:, :half] @ np.linalg.inv(triangle)
        right[:, half:] -= right[:, :half] @ left[:, half:]
        _panel(right[:, half:], pivots[half:])
        to, source = _exchanges(pivots[half:])
        left[:, half:][:, to] = left[:, half:][:, source]
        pivots[half:] += half
        return
    for k in range(n):
        at = k + int(size_of(t[k, k:]).argmax())
        pivots[k] = at
        if at != k:
            t[:, [k, at]] = t[:, [at, k]]
        pivot = t[k, k]
        if pivot != 0:
            t[k, k + 1 :] /= pivot
        if k + 1 < n:
            t[k + 1 :, k + 1 :] -= t[k + 1 :, k, None] * t[k, k + 1 :]


def _by_panels(a: np.ndarray, pivots: np.ndarray) -> None:
    """LU of one matrix (m, n) in its own memory: a panel of columns, the rows to its right, then the rest as one product (right-looking)."""
    m, n = a.shape
    for k in range(0, min(m, n), PANEL):
        stop = min(k + PANEL, m, n)
        panel = np.ascontiguousarray(a[k:, k:stop].T)  # (columns, rows): every step runs along a column
        local = np.empty(stop - k, np.int64)
        _panel(panel, local)
        to, source = _exchanges(local)
        below = a[k:]
        below[to] = below[source]
        a[k:, k:stop] = panel.T
        pivots[k:stop] = local + k
        if stop < n:
            a[k:stop, stop:] = solve_lower(a[k:stop, k:stop], a[k:stop, stop:], True)
            if stop < m:
                a[stop:, stop:] -= a[stop:, k:stop] @ a[k:stop, stop:]


def factor_lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and U in one matrix, the rows' exchanges counted from 1 as LAPACK's getrf gives them, and the first zero on U's diagonal (0: none)."""
    m, n = a.shape[-2:]
    k = min(m, n)
    lu = np.array(a, order="C")
    work = batched(lu)
    pivots = np.empty((len(work), k), np.int64)
    with np.errstate(all="ignore"):
        # a panel pays from so many columns on; below, all matrices of the batch take each step together
        if k <= SMALL:
            (_of_many if len(work) >= MANY else _by_columns)(work, pivots)
        else:
            for one, exchanged in zip(work, pivots, strict=True):
                _by_panels(one, exchanged)
    zero = work[:, np.arange(k), np.arange(k)] == 0
    info = np.where(zero.any(axis=1), zero.argmax(axis=1) + 1, 0) if k else np.zeros(len(work))
    return lu, (pivots + 1).astype(np.int32).reshape(*a.shape[:-2], k), info.astype(np.int32).reshape(a.shape[:-2])


def first_zero_pivot(a: np.ndarray) -> int:
    """The first zero on the diagonal of U, counted from 1; n where roundings hide it."""
    return int(factor_lu(a)[2]) or a.shape[-1]


def reference(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P^T a = L U."""
    lu, k = np.array(a), min(a.shape[-2:])
    pivots, info = np.zeros((*a.shape[:-2], k), np.int32), np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(*info.shape):
        pivots[at] = _eliminate(lu[at])
        zeros = np.flatnonzero(np.diagonal(lu[at]) == 0)
        info[at] = zeros[0] + 1 if len(zeros) else 0
    return lu, pivots, info


def _eliminate(a: np.ndarray) -> list[int]:
    """Gauss's elimination of a matrix in its own memory, row by row; the rows that were exchanged, counted from 1."""
    found = []
    for k in range(min(a.shape)):
        at = k + int(np.argmax(size_of(a[k:, k])))
        a[[k, at]] = a[[at, k]]
        if a[k, k] != 0:
            a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        found.append(at + 1)
    return found


def _shape(a: Any) -> tuple[Spec, Spec, Spec]:
    refuse_matrix("lu_factor", a)
    batch = tuple(a.shape[:-2])
    return Spec(tuple(a.shape), a.dtype), Spec((*batch, min(a.shape[-2:])), np.dtype(np.int32)), Spec(batch, np.dtype(np.int32))


def _rule(g: Any, lu: Any, pivots: Any) -> Any:
    """With A = P L U, for square L, U: gA = P L^-H [tril(L^H gL, -1) + triu(gU U^H)] U^-H; a wide U or a tall L is codes apart from its square part.

    Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008), and what
    follows from it for A = P [L U1 | L U2] and A = P [L1; L2] U.
    """
    g = g[0]
    m, n = lu.shape[-2:]
    k = min(m, n)
    first, rest = slice(0, k), slice(k, None)
    square = part(lu, first, first)
    lower = ops.add(ops.tril(square, diagonal=-1), identity(k, lu))
    upper = ops.triu(square, diagonal=0)
    g_lower, g_upper = ops.tril(part(g, first, first), diagonal=-1), ops.triu(part(g, first, first), diagonal=0)
    of_lower, of_upper = ops.matmul(adjoint(lower), g_lower), ops.matmul(g_upper, adjoint(upper))
    # a wide U or a tall L holds rows beyond the square part, whose gradients flow into it
    if n > k:
        of_lower = ops.sub(of_lower, ops.matmul(part(g, first, rest), adjoint(part(lu, first, rest))))
    if m > k:
        of_upper = ops.sub(of_upper, ops.matmul(adjoint(part(lu, rest, first)), part(g, rest, first)))
    middle = ops.add(ops.tril(of_lower, diagonal=-1), ops.triu(of_upper, diagonal=0))
    from_left = ops.solve_triangular(adjoint(lower), middle, upper=True, unitriangular=True)
    core = adjoint(ops.solve_triangular(upper, adjoint(from_left), upper=True))
    if n > k:
        right = ops.solve_triangular(adjoint(lower), part(g, first, rest), upper=True, unitriangular=True)
        core = ops.cat(core, right, dim=core.ndim - 1)
    if m > k:
        below = adjoint(ops.solve_triangular(upper, adjoint(part(g, rest, first)), upper=True))
        core = ops.cat(core, below, dim=core.ndim - 2)
    return _in_given_order(core, pivots)


def _in_given_order(x: Any, pivots: Any) -> Any:
    """P x."""
    order = ops.pivots_to_order(pivots, size=x.shape[-2], inverse=True)
    return ops.gather(x, ops.expand(rows(order), shape=tuple(x.shape)), dim=x.ndim - 2)


def _samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal

    def large(m: int, n: int) -> np.ndarray:
        return np.asarray(x((m, n)) / n + 2 * np.roll(np.eye(m, n), 3, axis=0))

    steep = np.array([[0.1, 2, 3], [4, 0.5, 1], [1, 6, 0.2]])
    small = steep, np.stack([steep, steep.T + np.eye(3)]), x((3, 5)), x((5, 3)), np.zeros((2, 0, 0))
    return in_c_order(*small) + in_c_order(large(60, 52), large(51, 70), np.zeros((2, 2)), smooth=False)


op(
    "lu_factor", reference, cpu=factor_lu, shape=_shape, rule=_rule, outputs=("lu", "pivots", "info"), samples=_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="L and U of P^T a = L U in one matrix, the exchanges of rows, and where U is singular.",
)  # fmt: skip


# p[i, order[i]] = 1 and its transpose: the permutation that exchanges of rows, one after the other, come to
def row_order(pivots: np.ndarray, size: int) -> np.ndarray:
    """The rows of the given matrices in the order that L U has them."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]).astype(np.int64) - 1
    order = np.tile(np.arange(size), (len(flat), 1))
    which = np.arange(len(flat))
    for k in range(flat.shape[1]):
        at = flat[:, k]
        taken = order[which, at]
        order[which, at] = order[:, k]
        order[:, k] = taken
    return order.reshape(*pivots.shape[:-1], size)


def _pivots_to_matrix(pivots: np.ndarray, *, size: int) -> np.ndarray:
    """P of A = P L U from the exchanges of rows."""
    p = np.zeros((*pivots.shape[:-1], size, size), np.float32)
    for at in np.ndindex(*pivots.shape[:-1]):
        p[at] = np.eye(size)
        for k, row in enumerate(pivots[at] - 1):
            p[at][:, [k, row]] = p[at][:, [row, k]]
    return p


def _pivots_to_order(pivots: np.ndarray, *, size: int, inverse: bool = False) -> np.ndarray:
    """Which row of A comes i-th in L U; inverse: where row i of A has gone."""
    return np.argmax(_pivots_to_matrix(pivots, size=size), axis=-1 if inverse else -2)


def _pivots_to_matrix_cpu(pivots: np.ndarray, *, size: int) -> np.ndarray:
    p = np.zeros((*pivots.shape[:-1], size, size), np.float32)
    np.put_along_axis(p, row_order(pivots, size)[..., None, :], 1, axis=-2)
    return p


def _pivots_to_order_cpu(pivots: np.ndarray, *, size: int, inverse: bool = False) -> np.ndarray:
    order = row_order(pivots, size)
    return np.argsort(order, axis=-1) if inverse else order


def _pivots_shape(pivots: Any, size: int) -> None:
    if np.dtype(pivots.dtype) != np.int32:
        raise DTypeError(f"lu_unpack: pivots is {pivots.dtype}; lu_factor gives int32")
    if not pivots.shape or pivots.shape[-1] > size:
        raise ShapeError(f"lu_unpack: pivots {tuple(pivots.shape)} for {size} rows; its last size must be at most that")


def _pivots_to_matrix_shape(pivots: Any, *, size: int) -> Spec:
    _pivots_shape(pivots, size)
    return Spec((*pivots.shape[:-1], size, size), np.dtype(np.float32))


def _pivots_to_order_shape(pivots: Any, *, size: int, inverse: bool = False) -> Spec:
    _pivots_shape(pivots, size)
    return Spec((*pivots.shape[:-1], size), np.dtype(np.int64))


def _pivot_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(np.array([3, 2, 3], np.int32), size=3),
        Sample(np.array([[2, 2], [4, 3]], np.int32), size=4),
        Sample(np.zeros((2, 0), np.int32), size=2),
    ]


op(
    "pivots_to_matrix", _pivots_to_matrix, cpu=_pivots_to_matrix_cpu, shape=_pivots_to_matrix_shape, samples=_pivot_samples, host=True,
    differentiable=False, dtypes=("float32",), doc="The permutation matrix of exchanges of rows.",
)  # fmt: skip
op(
    "pivots_to_order", _pivots_to_order, cpu=_pivots_to_order_cpu, shape=_pivots_to_order_shape, samples=_pivot_samples, host=True,
    differentiable=False, dtypes=("float32",), doc="The order that exchanges of rows come to.",
)  # fmt: skip
