"""Cholesky: a = L L^H of positive definite matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.factorizations.matrices import NUMBERS, adjoint, in_c_order, refuse_matrix, refuse_shape, solve_batch_or_each
from tritensor.kernels.factorizations.triangular import solve_triangular_cpu
from tritensor.kernels.parts.cpu import triangles
from tritensor.kernels.parts.gemm import blas
from tritensor.ops.table import Sample, Spec, op, ops, refuse_mixed


def _factor(a: np.ndarray) -> np.ndarray:
    """numpy's factor. LinAlgError where a pivot is NaN, too, of which numpy's LAPACK says nothing."""
    y = np.linalg.cholesky(a)
    if np.isnan(np.diagonal(y, 0, -2, -1)).any():
        raise np.linalg.LinAlgError
    return y


def _failed_minor(a: np.ndarray) -> int:
    """The order of the first leading minor that is not positive definite, by halving."""
    good, bad = 0, a.shape[-1]
    # the leading minors of a positive definite matrix are positive definite, so that halving finds the first which is not
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _factor(a[:middle, :middle])
            good = middle
        except np.linalg.LinAlgError:
            bad = middle
    return bad


# a = y y^H, y lower; with upper a = y^H y
def _cholesky(a: np.ndarray, *, upper: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The factor of one triangle of a (the other is not read), and the order of the first minor that is not positive definite (0: none)."""
    lower = a.swapaxes(-1, -2).conj() if upper else a
    y, info = np.full_like(lower, np.nan), np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(*info.shape):
        least = [np.linalg.eigvalsh(lower[at][:k, :k])[0] for k in range(1, a.shape[-1] + 1)]  # of each leading minor
        info[at] = next((k for k, value in enumerate(least, 1) if not value > 0), 0)
        if info[at] == 0:
            y[at] = np.linalg.cholesky(lower[at])
    return (y.swapaxes(-1, -2).conj() if upper else y), info


def _cholesky_cpu(a: np.ndarray, *, upper: bool = False) -> tuple[np.ndarray, np.ndarray]:
    lower, info = solve_batch_or_each(_factor, _failed_minor, a.swapaxes(-1, -2).conj() if upper else a)
    return (np.ascontiguousarray(lower.swapaxes(-1, -2).conj()) if upper else lower), info


def _shape(a: Any, *, upper: bool = False) -> tuple[Spec, Spec]:
    refuse_matrix("cholesky", a, square=True)
    return Spec(tuple(a.shape), a.dtype), Spec(tuple(a.shape[:-2]), np.dtype(np.int32))


def _rule(g: Any, y: Any, upper: bool) -> Any:
    """L^-H S L^-1 / 2, S of the lower triangle of L^H g and that of its adjoint above. Murray, "Differentiation of the Cholesky decomposition" (2016)."""
    lower, g = (adjoint(y), adjoint(g[0])) if upper else (y, g[0])
    inner = ops.matmul(adjoint(lower), g)
    middle = ops.mul(ops.add(ops.tril(inner, diagonal=0), adjoint(ops.tril(inner, diagonal=-1))), 0.5)
    half = ops.solve_triangular(adjoint(lower), middle, upper=True)
    return adjoint(ops.solve_triangular(adjoint(lower), adjoint(half), upper=True))


def _cpu_backward(g: Any, y: np.ndarray, upper: bool) -> np.ndarray:
    t, g = (y, g[0].swapaxes(-1, -2)) if upper else (y.swapaxes(-1, -2), g[0])
    inner = blas(t, g)
    middle = (triangles.lower(inner) + triangles.lower(inner, -1).swapaxes(-1, -2)) / 2
    inverse = solve_triangular_cpu(t, np.broadcast_to(np.eye(t.shape[-1], dtype=t.dtype), t.shape), upper=True)
    return blas(inverse, blas(middle, inverse.swapaxes(-1, -2)))


def _samples(rng: np.random.Generator) -> list[Sample]:
    # One triangle is read and the gradient is that among symmetric matrices: single elements have no differences to hold it to;
    # tests/kernels/factorizations asks of x x^H + 1.
    def a(*size: int) -> np.ndarray:
        x = rng.standard_normal(size)
        return np.asarray(x @ x.swapaxes(-1, -2) + np.eye(size[-1]))

    lower = a(3, 3), a(2, 1, 2, 2), np.zeros((0, 0)), np.stack([np.eye(3), np.diag([1.0, -1, 1])])
    return in_c_order(rng.uniform(1, 2, (2, 1, 1))) + in_c_order(*lower, smooth=False) + in_c_order(a(2, 4, 4), smooth=False, upper=True)


op(
    "cholesky", _cholesky, cpu=_cholesky_cpu, shape=_shape, rule=_rule,
    cpu_backward=_cpu_backward, outputs=("y", "info"), samples=_samples, host=True, holomorphic=False,
    dtypes=NUMBERS, doc="The triangular factor of positive definite matrices.",
)  # fmt: skip


# (l l^H) x = b, l lower; with upper (l^H l) x = b
def _cholesky_solve(b: np.ndarray, factor: np.ndarray, *, upper: bool) -> np.ndarray:
    """x by two substitutions; one triangle of l is read."""
    lower = np.triu(factor).swapaxes(-1, -2).conj() if upper else np.tril(factor)
    return np.linalg.solve(lower.swapaxes(-1, -2).conj(), np.linalg.solve(lower, b))


def _cholesky_solve_cpu(b: np.ndarray, factor: np.ndarray, *, upper: bool) -> np.ndarray:
    lower = factor.swapaxes(-1, -2).conj() if upper else factor
    return solve_triangular_cpu(lower.swapaxes(-1, -2).conj(), solve_triangular_cpu(lower, b, upper=False), upper=True)


def _solve_shape(b: Any, factor: Any, *, upper: bool) -> Spec:
    refuse_matrix("cholesky_solve", factor, square=True, label="L")
    refuse_shape("cholesky_solve", b, label="B")
    refuse_mixed("cholesky_solve", ("B", b), ("L", factor))
    if factor.shape[:-1] != b.shape[:-1]:
        raise ShapeError(
            f"cholesky_solve: B {tuple(b.shape)}, L {tuple(factor.shape)}: B must have L's {factor.shape[-1]} rows, and its batch"
        )
    return Spec(tuple(b.shape), b.dtype)


def _solve_rule_b(g: Any, factor: Any, upper: bool) -> Any:
    return ops.cholesky_solve(g, factor, upper=upper)


def _solve_rule_l(g: Any, factor: Any, x: Any, upper: bool) -> Any:
    """-(h + h^H) l, h = (l l^H)^-1 g x^H: that of every element of l, as if the other triangle of zeros were read, which is PyTorch's."""
    h = ops.matmul(ops.cholesky_solve(g, factor, upper=upper), adjoint(x))
    both = ops.neg(ops.add(h, adjoint(h)))
    return ops.matmul(factor, both) if upper else ops.matmul(both, factor)


def _solve_backward(
    g: np.ndarray, factor: np.ndarray, x: np.ndarray, upper: bool, needs: tuple[bool, ...]
) -> tuple[np.ndarray, np.ndarray | None]:
    gb = _cholesky_solve_cpu(g, factor, upper=upper)
    if not needs[1]:
        return gb, None
    h = blas(gb, x.swapaxes(-1, -2))
    both = np.negative(h + h.swapaxes(-1, -2))
    return gb, blas(factor, both) if upper else blas(both, factor)


def _solve_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    lower = np.tril(x((2, 4, 4))) + 3 * np.eye(4)
    upper = (x((4, 1)), lower[0].T), (x((0, 2)), np.zeros((0, 0)))
    found = in_c_order((x((2, 1, 2)), rng.uniform(1, 2, (2, 1, 1))), upper=False) + in_c_order(
        (x((2, 4, 2)), lower), smooth=False, upper=False
    )
    return found + in_c_order(*upper, smooth=False, upper=True)


op(
    "cholesky_solve", _cholesky_solve, cpu=_cholesky_solve_cpu, shape=_solve_shape, rule=(_solve_rule_b, _solve_rule_l),
    cpu_backward=_solve_backward, outputs=("x",), samples=_solve_samples, host=True, holomorphic=False, dtypes=NUMBERS, doc="x with l l^H x = b.",
)  # fmt: skip
