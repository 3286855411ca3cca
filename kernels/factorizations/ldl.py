"""LDL: symmetric and Hermitian matrices that need not be positive definite, by diagonal pivoting, and systems with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.factorizations.matrices import NUMBERS, refuse_matrix, refuse_shape, size_of, symmetric
from tritensor.ops.table import Sample, Spec, op, refuse_mixed

_GROWTH = (1 + 17**0.5) / 8  # Bunch and Kaufman's bound between pivots of one row and of two


def _pivot(a: np.ndarray, k: int, hermitian: bool) -> tuple[int, int, bool]:
    """The row to exchange, how many rows the pivot has, and whether the column is all zero.

    One row where the diagonal is large enough beside its column, or beside what a larger element of the column would cost; else by that element's row.
    """
    n = len(a)
    here = abs(a[k, k].real) if hermitian else size_of(a[k, k])
    below = size_of(a[k + 1 :, k])
    at = k + 1 + int(below.argmax()) if k + 1 < n else k
    largest = below[at - k - 1] if k + 1 < n else 0.0
    # nothing to eliminate with: LAPACK leaves the column and reports it
    if max(here, largest) == 0 or np.isnan(here):
        return k, 1, True
    if here >= _GROWTH * largest:
        return k, 1, False
    row = np.concatenate([size_of(a[at, k:at]), size_of(a[at + 1 :, at])]).max()
    if here >= _GROWTH * largest * (largest / row):
        return k, 1, False
    there = abs(a[at, at].real) if hermitian else size_of(a[at, at])
    return (at, 1, False) if there >= _GROWTH * row else (at, 2, False)


def _exchange(a: np.ndarray, k: int, kk: int, at: int, hermitian: bool) -> None:
    """Rows and columns kk and `at` of the lower triangle exchanged."""
    turn = np.conj if hermitian else np.asarray
    a[at + 1 :, [kk, at]] = a[at + 1 :, [at, kk]]
    between = a[kk + 1 : at, kk].copy()
    a[kk + 1 : at, kk] = turn(a[at, kk + 1 : at])
    a[at, kk + 1 : at] = turn(between)
    if hermitian:
        a[at, kk] = np.conj(a[at, kk])
    a[kk, kk], a[at, at] = a[at, at], a[kk, kk]
    if kk > k:
        a[kk, k], a[at, k] = a[at, k], a[kk, k]


def _eliminate(a: np.ndarray, k: int, step: int, at: int, hermitian: bool) -> None:
    """One pivot of one row or two, in the memory of the lower triangle: the columns of L below it, and what is left of the rest."""
    turn, kk, stop = np.conj if hermitian else np.asarray, k + step - 1, k + step
    if at != kk:
        _exchange(a, k, kk, at, hermitian)
    below = a[stop:, k:stop].copy()
    if step == 1:
        factor = below / a[k, k]
    else:
        factor = below @ np.linalg.inv(np.array([[a[k, k], turn(a[kk, k])], [a[kk, k], a[kk, kk]]]))
    a[stop:, stop:] -= factor @ turn(below).T
    a[stop:, k:stop] = factor


def _factor(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, int]:
    """a (n, n), lower triangle, in its own memory: the pivots counted from 1, negative for those of two rows, and the first zero pivot.

    Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems" (1977), as LAPACK's sytf2 lays it out.
    """
    pivots, info, k = np.zeros(len(a), np.int32), 0, 0
    while k < len(a):
        at, step, zero = _pivot(a, k, hermitian)
        if zero:
            info = info or k + 1
        else:
            _eliminate(a, k, step, at, hermitian)
        if hermitian:  # roundings leave the diagonal an imaginary part
            np.fill_diagonal(a, a.diagonal().real)
        pivots[k : k + step] = at + 1 if step == 1 else -(at + 1)
        k += step
    return pivots, info


# a = P L D L^H P^T, or with T for H; D has blocks of one and two rows
def _ldl_factor(a: np.ndarray, *, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L below the diagonal and D on and below it, the exchanges of rows as LAPACK counts them, and the first zero pivot (0: none)."""
    ld, pivots, info = np.tril(a), np.zeros(a.shape[:-1], np.int32), np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(*info.shape):
        pivots[at], info[at] = _factor(ld[at], hermitian and a.dtype.kind == "c")
    return np.tril(ld), pivots, info


def _factor_shape(a: Any, *, hermitian: bool) -> tuple[Spec, Spec, Spec]:
    refuse_matrix("ldl_factor", a, square=True)
    return Spec(tuple(a.shape), a.dtype), Spec(tuple(a.shape[:-1]), np.dtype(np.int32)), Spec(tuple(a.shape[:-2]), np.dtype(np.int32))


def _steps(pivots: np.ndarray) -> list[tuple[slice, int, int]]:
    """(its rows, the last of them, the row that was exchanged with that) of each pivot."""
    found, k = [], 0
    while k < len(pivots):
        stop = k + (1 if pivots[k] > 0 else 2)
        found.append((slice(k, stop), stop - 1, abs(int(pivots[k])) - 1))
        k = stop
    return found


def _solve(a: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> None:
    """x in b's memory: L y = P^T b, D z = y, L^H x = z, pivot by pivot."""
    turn, steps = np.conj if hermitian else np.asarray, _steps(pivots)
    for rows, last, at in steps:
        if at != last:
            b[[last, at]] = b[[at, last]]
        b[last + 1 :] -= a[last + 1 :, rows] @ b[rows]
        if last == rows.start:
            b[last] /= a[last, last]
        else:
            b[rows] = np.linalg.solve(np.array([[a[last - 1, last - 1], turn(a[last, last - 1])], a[last, rows]]), b[rows])
    for rows, last, at in reversed(steps):
        b[rows] -= turn(a[last + 1 :, rows]).T @ b[last + 1 :]
        if at != last:
            b[[last, at]] = b[[at, last]]


def _ldl_solve(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, hermitian: bool) -> np.ndarray:
    """x with a x = b, a given by what ldl_factor made of it."""
    # solved in a copy's memory, pivot by pivot
    x = np.array(b, order="C")
    for at in np.ndindex(*b.shape[:-2]):
        _solve(ld[at], pivots[at], x[at], hermitian and ld.dtype.kind == "c")
    return x


def _solve_shape(ld: Any, pivots: Any, b: Any, *, hermitian: bool) -> Spec:
    refuse_matrix("ldl_solve", ld, square=True, label="LD")
    refuse_shape("ldl_solve", b, label="B")
    refuse_mixed("ldl_solve", ("LD", ld), ("B", b))
    if np.dtype(pivots.dtype).kind != "i":
        raise DTypeError(f"ldl_solve: pivots is {pivots.dtype}; ldl_factor gives int32")
    if tuple(pivots.shape) != tuple(ld.shape[:-1]) or ld.shape[:-1] != b.shape[:-1]:
        given = f"LD {tuple(ld.shape)}, pivots {tuple(pivots.shape)}, B {tuple(b.shape)}"
        raise ShapeError(f"ldl_solve: {given}: pivots must have LD's rows, B too, and all the same batch")
    return Spec(tuple(b.shape), b.dtype)


def _factor_samples(rng: np.random.Generator) -> list[Sample]:
    found = [symmetric(rng, 3, 3), symmetric(rng, 2, 5, 5), np.array([[0.0, 1], [1, 0]]), np.zeros((2, 2)), np.zeros((0, 0))]
    return [Sample(x, hermitian=h, in_c_order=True) for x in found for h in (False, True)]


def _solve_samples(rng: np.random.Generator) -> list[Sample]:
    found = []
    for a in (symmetric(rng, 4, 4), symmetric(rng, 2, 3, 3), np.array([[0.0, 1], [1, 0]])):
        ld, pivots, _ = _ldl_factor(a, hermitian=False)
        found.append(Sample(ld, pivots, rng.standard_normal((*a.shape[:-1], 2)), hermitian=False, in_c_order=True))
    return found


op(
    "ldl_factor", _ldl_factor, shape=_factor_shape, outputs=("ld", "pivots", "info"), samples=_factor_samples, host=True, differentiable=False,
    dtypes=NUMBERS, doc="L and D of symmetric or Hermitian matrices.",
)  # fmt: skip
op(
    "ldl_solve", _ldl_solve, shape=_solve_shape, outputs=("x",), samples=_solve_samples, host=True, differentiable=False, dtypes=NUMBERS,
    doc="x with a x = b from an LDL factorization.",
)  # fmt: skip
