"""Systems with a triangular matrix: substitution in blocks, the blocks' inverses first, so that most of the work is matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.factorizations.matrices import MANY, NUMBERS, batched, refuse_matrix, refuse_shape, refuse_type, runs, transposed
from tritensor.kernels.parts.cpu import triangles
from tritensor.kernels.parts.gemm import blas
from tritensor.ops.table import Sample, Spec, op, ops, refuse_mixed

BLOCK = 32
ROWS = 3  # that numpy works through one by one as fast as LAPACK is called


def _substitute(a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    """x with L x = b for lower triangles a (..., n, n), row after row, all matrices of the batch and all columns at once."""
    # of small matrices a numpy call on one row costs more than its arithmetic: the batch goes innermost
    if math.prod(a.shape[:-2]) >= MANY and a.shape[-1]:
        return _of_many(a, b, unit)
    if ROWS < a.shape[-1] <= BLOCK:
        try:
            return _by_lapack(a, b, unit)
        except np.linalg.LinAlgError:  # of a zero on the diagonal, by which the steps below divide
            pass
    x = np.array(b, order="C")
    for i in range(a.shape[-1]):
        if i:
            x[..., i : i + 1, :] -= a[..., i : i + 1, :i] @ x[..., :i, :]
        if not unit:
            x[..., i, :] /= a[..., i, i, None]
    return x


def _by_lapack(a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    """The same by one call of gesv: turned about, L is an upper triangle, of which an elimination exchanges no rows and changes nothing."""
    triangle = triangles.lower(a, -1) + np.eye(a.shape[-1], dtype=a.dtype) if unit else triangles.lower(a)
    return np.ascontiguousarray(np.linalg.solve(triangle[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :])


def _of_many(a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    """The same of many small matrices, some at a time with the batch innermost, so that every step runs along it."""
    x = np.empty(b.shape, b.dtype)
    flat_a, flat_b, flat_x = batched(a), batched(b), batched(x)
    for rows in runs(len(flat_a), a.shape[-1] * (a.shape[-1] + b.shape[-1])):
        t = np.ascontiguousarray(flat_a[rows].transpose(1, 2, 0))  # (n, n, some)
        y = np.ascontiguousarray(flat_b[rows].transpose(1, 2, 0))  # (n, columns, some)
        for i in range(len(t)):
            if not unit:
                y[i] /= t[i, i]
            for j in range(i + 1, len(t)):
                y[j] -= t[j, i] * y[i]
        flat_x[rows] = y.transpose(2, 0, 1)
    return x


def solve_lower(a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    """x with L x = b, L the lower triangles of a (..., n, n), b (..., n, columns)."""
    n = a.shape[-1]
    # one block: its inverse would cost more than the substitution
    if n <= BLOCK or b.shape[-1] == 0:
        return _substitute(a, b, unit)
    whole = n // BLOCK
    starts = [i * BLOCK for i in range(whole)]
    blocks = np.stack([a[..., s : s + BLOCK, s : s + BLOCK] for s in starts], axis=-3)
    inverses = _substitute(blocks, np.broadcast_to(np.eye(BLOCK, dtype=a.dtype), blocks.shape), unit)  # (..., whole, BLOCK, BLOCK)
    x = np.empty(b.shape, b.dtype)
    for i, s in enumerate(starts):
        left = b[..., s : s + BLOCK, :]
        if s:
            left = left - a[..., s : s + BLOCK, :s] @ x[..., :s, :]
        x[..., s : s + BLOCK, :] = inverses[..., i, :, :] @ left
    if (s := whole * BLOCK) < n:
        x[..., s:, :] = _substitute(a[..., s:, s:], b[..., s:, :] - a[..., s:, :s] @ x[..., :s, :], unit)
    return x


# T x = b, T the upper or lower triangle of a, with ones on its diagonal where unitriangular says so
def _solve_triangular(a: np.ndarray, b: np.ndarray, *, upper: bool, unitriangular: bool = False) -> np.ndarray:
    """x with T x = b; what lies in the other triangle of a is not read."""
    x, n = np.zeros_like(b), a.shape[-1]
    for i in range(n - 1, -1, -1) if upper else range(n):
        others = slice(i + 1, n) if upper else slice(0, i)
        rest = b[..., i : i + 1, :] - a[..., i : i + 1, others] @ x[..., others, :]
        x[..., i : i + 1, :] = rest if unitriangular else rest / a[..., i : i + 1, i : i + 1]
    return x


def solve_triangular_cpu(a: np.ndarray, b: np.ndarray, *, upper: bool, unitriangular: bool = False) -> np.ndarray:
    with np.errstate(all="ignore"):
        if not upper:
            return solve_lower(a, b, unitriangular)
        return np.ascontiguousarray(solve_lower(a[..., ::-1, ::-1], b[..., ::-1, :], unitriangular)[..., ::-1, :])


def _shape(a: Any, b: Any, *, upper: bool, unitriangular: bool = False) -> Spec:
    refuse_matrix("solve_triangular", a, square=True)
    refuse_shape("solve_triangular", b, label="B")
    refuse_type("solve_triangular", b, "B")
    refuse_mixed("solve_triangular", ("A", a), ("B", b))
    if a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"solve_triangular: A {tuple(a.shape)}, B {tuple(b.shape)}: B must have A's {a.shape[-1]} rows, and its batch")
    return Spec(tuple(b.shape), b.dtype)


def _rule_a(g: Any, a: Any, x: Any, upper: bool, unitriangular: bool) -> Any:
    """-T^-T g x^T, what of it lies in the triangle."""
    gb = _rule_b(g, a, upper, unitriangular)
    full = ops.neg(ops.matmul(gb, transposed(x)))
    return ops.triu(full, diagonal=int(unitriangular)) if upper else ops.tril(full, diagonal=-int(unitriangular))


def _rule_b(g: Any, a: Any, upper: bool, unitriangular: bool) -> Any:
    """T^-T g."""
    return ops.solve_triangular(transposed(a), g, upper=not upper, unitriangular=unitriangular)


def _cpu_backward(
    g: np.ndarray, a: np.ndarray, x: np.ndarray, upper: bool, unitriangular: bool, needs: tuple[bool, ...]
) -> tuple[np.ndarray | None, np.ndarray]:
    gb = solve_triangular_cpu(a.swapaxes(-1, -2), g, upper=not upper, unitriangular=unitriangular)
    if not needs[0]:
        return None, gb
    full, off = np.negative(blas(gb, x.swapaxes(-1, -2))), int(unitriangular)
    return (triangles.upper(full, off) if upper else triangles.lower(full, -off)), gb


def _samples(rng: np.random.Generator) -> list[Sample]:
    def a(*size: int) -> np.ndarray:
        return rng.uniform(-1, 1, size) / size[-1] + 1.5 * np.eye(size[-1])

    return [
        Sample(a(3, 3), rng.standard_normal((3, 2)), upper=False),
        Sample(a(3, 3), rng.standard_normal((3, 2)), upper=True),
        Sample(a(2, 4, 4), rng.standard_normal((2, 4, 1)), upper=True, unitriangular=True),
        Sample(a(35, 35), rng.standard_normal((35, 2)), upper=False, in_c_order=True, smooth=False),
        Sample(a(70, 70), rng.standard_normal((70, 3)), upper=True, unitriangular=True, in_c_order=True, smooth=False),
        Sample(np.zeros((0, 0)), np.zeros((0, 2)), upper=True),
    ]


op(
    "solve_triangular", _solve_triangular, cpu=solve_triangular_cpu, shape=_shape, rule=(_rule_a, _rule_b), cpu_backward=_cpu_backward,
    outputs=("x",), samples=_samples, host=True, dtypes=NUMBERS, doc="x with T x = b for a triangle T of a.",
)  # fmt: skip
