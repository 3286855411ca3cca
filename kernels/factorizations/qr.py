"""QR: a = Q R with orthonormal columns of Q, and the reflectors that LAPACK keeps it as."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, GradError
from tritensor.kernels.factorizations.matrices import (
    NUMBERS,
    adjoint,
    diagonal_of,
    in_c_order,
    is_complex,
    on_diagonal,
    part,
    refuse_matrix,
)
from tritensor.kernels.factorizations.triangular import solve_triangular_cpu
from tritensor.kernels.parts.cpu import triangles
from tritensor.kernels.parts.gemm import blas
from tritensor.ops.table import Sample, Spec, op, ops

_MODES = ("reduced", "complete", "r")


# a = q r
def _qr(a: np.ndarray, *, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """q (..., m, k) and r (..., k, n), k the smaller of m and n; "complete": k = m; "r": no q."""
    if mode == "r":
        return np.zeros(0, a.dtype), np.asarray(np.linalg.qr(a, "r"))
    q, r = np.linalg.qr(a, mode)
    return q, r  # type: ignore[return-value]


def _shape(a: Any, *, mode: str) -> tuple[Spec, Spec]:
    if mode not in _MODES:
        raise ArgumentError(f"qr: mode {mode!r}; it is 'reduced', 'complete' or 'r'")
    refuse_matrix("qr", a)
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    return Spec((0,) if mode == "r" else (*batch, m, k), a.dtype), Spec((*batch, k, n), a.dtype)


def _refuse_gradient(shape: tuple[int, ...], mode: str) -> None:
    if mode == "r":
        raise GradError("qr: mode 'r' has no gradient, for want of Q; use mode 'reduced'")
    if mode == "complete" and shape[-2] > shape[-1]:
        raise GradError(f"qr: a {tuple(shape)}: mode 'complete' has no gradient where there are more rows than columns; use mode 'reduced'")


def _rule(g: Any, a: Any, q: Any, r: Any, mode: str) -> Any:
    """For m >= n: [gQ + Q sym(triu(gR R^H - Q^H gQ))] R^-H, sym the Hermitian matrix with that upper triangle; of a wide a = [a1 | a2] the columns
    a2 = Q R2 give gQ + a2 gR2^H to a1's. Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum
    experimental design" (2010); Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020)."""
    m, n = a.shape[-2:]
    _refuse_gradient(a.shape, mode)
    gq, gr = (ops.mul(y, 0.0) if x is None else x for x, y in zip(g, (q, r), strict=True))
    if m >= n:
        return _tall(gq, gr, q, r)
    first, rest = slice(0, m), slice(m, None)
    right = part(gr, slice(None), rest)
    left = _tall(
        ops.add(gq, ops.matmul(part(a, slice(None), rest), adjoint(right))), part(gr, slice(None), first), q, part(r, slice(None), first)
    )
    return ops.cat(left, ops.matmul(q, right), dim=a.ndim - 1)


def _tall(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    upper = ops.triu(ops.sub(ops.matmul(gr, adjoint(r)), ops.matmul(adjoint(q), gq)), diagonal=0)
    diagonal = diagonal_of(upper)
    # LAPACK makes R's diagonal real, so that its imaginary part cannot move
    if is_complex(diagonal):  # the diagonal of R is real
        diagonal = ops.cast(ops.real(diagonal), dtype=diagonal._array.dtype)
        upper = ops.add(ops.triu(upper, diagonal=1), on_diagonal(diagonal))
    symmetric = ops.sub(ops.add(upper, adjoint(upper)), on_diagonal(diagonal))
    total = ops.add(gq, ops.matmul(q, symmetric))
    return adjoint(ops.solve_triangular(r, adjoint(total), upper=True))


def _cpu_backward(g: Any, a: np.ndarray, q: np.ndarray, r: np.ndarray, mode: str) -> np.ndarray:
    m, n = a.shape[-2:]
    _refuse_gradient(a.shape, mode)
    gq, gr = (np.zeros_like(y) if x is None else x for x, y in zip(g, (q, r), strict=True))
    if m >= n:
        return _tall_arrays(gq, gr, q, r)
    right = gr[..., m:]
    left = _tall_arrays(gq + blas(a[..., m:], right.swapaxes(-1, -2)), gr[..., :m], q, r[..., :m])
    return np.concatenate([left, blas(q, right)], -1)


def _tall_arrays(gq: np.ndarray, gr: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    inner = blas(gr, r.swapaxes(-1, -2)) - blas(q.swapaxes(-1, -2), gq)
    whole = gq + blas(q, triangles.upper(inner) + triangles.upper(inner, 1).swapaxes(-1, -2))
    return solve_triangular_cpu(r, whole.swapaxes(-1, -2), upper=True).swapaxes(-1, -2)


def _samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    found = in_c_order(x((4, 3)), x((2, 2, 4)), mode="reduced") + in_c_order(x((3, 3)), x((2, 4)), mode="complete")
    return found + in_c_order(np.zeros((3, 0)), np.zeros((2, 0, 3)), smooth=False, mode="reduced")


# The CPU runs the references as they are: LAPACK keeps the type, and plain_cpu's care for that costs as much again as a small matrix's reflectors.
op(
    "qr", _qr, cpu=lambda a, *, mode: _qr(a, mode=mode), shape=_shape, rule=_rule, cpu_backward=_cpu_backward, outputs=("q", "r"), samples=_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="a = q r.",
)  # fmt: skip


# a = H_1 ... H_k R, H_i = 1 - tau_i v_i v_i^H, v_i below the diagonal of y, R above it
def _geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LAPACK's compact QR: R with the reflectors below it, and their factors."""
    h, tau = np.linalg.qr(a, "raw")
    return np.ascontiguousarray(h.swapaxes(-1, -2)), tau


def _geqrf_shape(a: Any) -> tuple[Spec, Spec]:
    refuse_matrix("geqrf", a)
    *batch, m, n = a.shape
    return Spec(tuple(a.shape), a.dtype), Spec((*batch, min(m, n)), a.dtype)


def _geqrf_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    return in_c_order(*map(x, ((4, 3), (2, 3, 5), (3, 3))))


op(
    "geqrf", _geqrf, cpu=lambda a: _geqrf(a), shape=_geqrf_shape, outputs=("y", "tau"), samples=_geqrf_samples, host=True, differentiable=False, dtypes=NUMBERS,
    doc="QR as reflectors.",
)  # fmt: skip
