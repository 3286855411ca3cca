"""Square systems and inverses, by LAPACK's LU, with a word for each matrix that is singular."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.factorizations import lu
from tritensor.kernels.factorizations.lu import factor_lu, first_zero_pivot, row_order
from tritensor.kernels.factorizations.matrices import NUMBERS, in_c_order, refuse_matrix, refuse_shape, solve_batch_or_each, transposed
from tritensor.kernels.factorizations.triangular import solve_triangular_cpu
from tritensor.kernels.parts.gemm import blas
from tritensor.ops.table import Sample, Spec, op, ops, refuse_mixed

_INT = np.dtype(np.int32)
LARGE = 300
_WIDER = {"f": np.float64, "F": np.complex128, "d": np.longdouble, "D": np.clongdouble}


# A - lambda I of an eigenvalue lambda is singular but for roundings. Where they round its last pivot to 0, an elimination with more digits (or with fused
# multiply-adds, as of PyTorch's LAPACK) still tells it from a matrix that is singular.
def _solve_wide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x with a x = b of one matrix, in twice its digits, or as many as this machine has. Raises LinAlgError where a pivot is zero in them, too."""
    with np.errstate(all="ignore"):
        factors, pivots, info = lu.reference(a.astype(_WIDER[a.dtype.char]))
        if info:
            raise np.linalg.LinAlgError("a pivot is zero")
        x = b[row_order(pivots, len(a))].astype(factors.dtype)
        for i in range(len(a)):
            x[i + 1 :] -= factors[i + 1 :, i, None] * x[i]
        for i in reversed(range(len(a))):
            x[i] /= factors[i, i]
            x[:i] -= factors[:i, i, None] * x[i]
        return x.astype(a.dtype)


def _solve_blocks(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x with a x = b: LAPACK's gesv of small matrices; of large ones our LU and substitutions, which are more of matrix products."""
    # of small matrices one call of gesv costs less than our many of numpy
    if a.shape[-1] < LARGE:
        try:
            return np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            if a.ndim > 2:
                raise
            return _solve_wide(a, b)
    both, pivots, info = factor_lu(a)
    if info.any():
        raise np.linalg.LinAlgError("a pivot is zero")
    y = np.take_along_axis(b, row_order(pivots, a.shape[-1])[..., None], axis=-2)
    return solve_triangular_cpu(both, solve_triangular_cpu(both, y, upper=False, unitriangular=True), upper=True)


def _invert(a: np.ndarray) -> np.ndarray:
    if a.shape[-1] < LARGE:
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            if a.ndim > 2:
                raise
    return _solve_blocks(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))


# x = a^-1 b
def _solve(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x with a x = b, and for each matrix the first zero among its pivots, counted from 1 (0: none)."""
    x, info = np.full_like(b, np.nan), lu.reference(a.astype(_WIDER[a.dtype.char]))[2]
    for at in np.ndindex(*info.shape):
        if info[at] == 0:
            x[at] = _solve_wide(a[at], b[at])
    return x, info


def _solve_cpu(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return solve_batch_or_each(_solve_blocks, first_zero_pivot, a, b)


def _solve_shape(a: Any, b: Any) -> tuple[Spec, Spec]:
    refuse_matrix("solve", a, square=True)
    refuse_shape("solve", b, label="B")
    refuse_mixed("solve", ("A", a), ("B", b))
    if a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"solve: A {tuple(a.shape)}, B {tuple(b.shape)}: B must have A's {a.shape[-1]} rows, and its batch")
    return Spec(tuple(b.shape), b.dtype), Spec(tuple(a.shape[:-2]), _INT)


def _solve_rule_a(g: Any, a: Any, x: Any) -> Any:
    return ops.neg(ops.matmul(_solve_rule_b(g, a), transposed(x)))


def _solve_rule_b(g: Any, a: Any) -> Any:
    return ops.solve(transposed(a), g[0])[0]


def _solve_backward(g: Any, a: np.ndarray, x: np.ndarray, needs: tuple[bool, ...]) -> tuple[np.ndarray | None, np.ndarray]:
    gb = _solve_cpu(a.swapaxes(-1, -2), g[0])[0]
    return (np.negative(blas(gb, x.swapaxes(-1, -2))) if needs[0] else None), gb


def _matrix(rng: np.random.Generator, *size: int) -> np.ndarray:
    return rng.standard_normal(size) / size[-1] + 2 * np.eye(size[-1])


def _solve_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    some = (_matrix(rng, 3, 3), x((3, 2))), (_matrix(rng, 2, 4, 4), x((2, 4, 1))), (_matrix(rng, 2, 1, 2, 2), x((2, 1, 2, 3)))
    none = (np.zeros((0, 0)), np.zeros((0, 2))), (np.zeros((0, 3, 3)), np.zeros((0, 3, 2)))
    return in_c_order(*some, *none) + in_c_order((np.stack([np.eye(2), np.ones((2, 2))]), x((2, 2, 1))), smooth=False)


op(
    "solve", _solve, cpu=_solve_cpu, shape=_solve_shape, rule=(_solve_rule_a, _solve_rule_b),
    cpu_backward=_solve_backward, outputs=("x", "info"), samples=_solve_samples, host=True,
    dtypes=NUMBERS, doc="x with a x = b.",
)  # fmt: skip


# y = a^-1
def _inv(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _solve(a, np.zeros_like(a) + np.eye(a.shape[-1]))


def inverse(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverses, and for each matrix the first zero among its pivots, counted from 1 (0: none)."""
    return solve_batch_or_each(_invert, first_zero_pivot, a)


def _inv_shape(a: Any) -> tuple[Spec, Spec]:
    refuse_matrix("inv", a, square=True)
    return Spec(tuple(a.shape), a.dtype), Spec(tuple(a.shape[:-2]), _INT)


def _inv_rule(g: Any, y: Any) -> Any:
    t = transposed(y)
    return ops.neg(ops.matmul(t, ops.matmul(g[0], t)))


def _inv_backward(g: Any, y: np.ndarray) -> np.ndarray:
    t = y.swapaxes(-1, -2)
    return np.negative(blas(t, blas(g[0], t)))


def _inv_samples(rng: np.random.Generator) -> list[Sample]:
    return in_c_order(_matrix(rng, 3, 3), _matrix(rng, 2, 2, 2), np.zeros((2, 0, 0))) + in_c_order(np.zeros((3, 3)), smooth=False)


op(
    "inv", _inv, cpu=inverse, shape=_inv_shape, rule=_inv_rule,
    cpu_backward=_inv_backward, outputs=("y", "info"), samples=_inv_samples, host=True, dtypes=NUMBERS,
    doc="Inverses of square matrices.",
)  # fmt: skip
