"""Singular values and vectors, and the pseudo-inverse that they give."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import GradError, ShapeError
from tritensor.kernels.factorizations.matrices import (
    NUMBERS,
    adjoint,
    array_gaps,
    columns,
    converging,
    diagonal_array,
    diagonal_of,
    identity,
    in_c_order,
    is_complex,
    off_diagonal,
    on_diagonal,
    part,
    real_type,
    refuse_matrix,
    rows,
)
from tritensor.kernels.parts.gemm import blas
from tritensor.ops.lazy_array import settle
from tritensor.ops.table import Sample, Spec, op, ops
from tritensor.ops.table.shape_rules import broadcast


# a = u diag(s) vh
def _svd(a: np.ndarray, *, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u (..., m, k), s (..., k) from the largest, vh (..., k, n), k the smaller of m and n; full: u (m, m) and vh (n, n)."""
    u, s, v = np.linalg.svd(a, full_matrices=full)
    return u, s, v


_svd_cpu = converging("svd", _svd)


def _svd_shape(a: Any, *, full: bool) -> tuple[Spec, Spec, Spec]:
    refuse_matrix("svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    return Spec((*batch, m, m if full else k), a.dtype), Spec((*batch, k), real_type(a.dtype)), Spec((*batch, n if full else k, n), a.dtype)


def _skew(x: Any) -> Any:
    return ops.sub(x, adjoint(x))


def _svd_rule(g: Any, u: Any, s: Any, v: Any) -> Any:
    """U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gS)] V^H with what of gU and gV lies outside the spans, E_ij = s_j^2 - s_i^2.

    Townsend, "Differentiating the singular value decomposition" (2016); Wan and Zhang, "Automatic differentiation for complex valued SVD"
    (2019). Columns beyond the singular values (full) are any basis of the rest: their gradients are not read.
    """
    gu, gs, gv = g
    k = s.shape[-1]
    first, every = slice(0, k), slice(None)
    u, v = part(u, every, first), part(v, first, every)
    gu, gv = None if gu is None else part(gu, every, first), None if gv is None else part(gv, first, every)
    # singular values alone have a gradient where they coincide, too: no gaps are divided by
    if gu is None and gv is None:
        return ops.matmul(ops.mul(u, columns(gs)), v)
    squares = ops.mul(s, s)
    gaps = ops.add(ops.sub(columns(squares), rows(squares)), identity(k, s))
    of_u = None if gu is None else _skew(ops.matmul(adjoint(u), gu))
    of_v = None if gv is None else _skew(ops.matmul(v, adjoint(gv)))
    core = on_diagonal(gs) if gs is not None else None
    if is_complex(u):
        _refuse_phase(of_u, of_v)
        if of_u is not None:
            core = _plus(core, on_diagonal(ops.div(diagonal_of(of_u), ops.mul(s, 2.0))))
    if of_u is not None:
        core = _plus(core, ops.mul(ops.div(off_diagonal(of_u), gaps), columns(s)))
    if of_v is not None:
        core = _plus(core, ops.mul(ops.div(off_diagonal(of_v), gaps), rows(s)))
    y = ops.matmul(u, ops.matmul(core, v))
    # tall: what of gU lies outside the span of U's columns
    if gu is not None and u.shape[-2] > k:
        scaled = ops.div(gu, columns(s))
        y = ops.add(y, ops.matmul(ops.sub(scaled, ops.matmul(u, ops.matmul(adjoint(u), scaled))), v))
    if gv is not None and v.shape[-1] > k:
        scaled = ops.div(gv, rows(s))
        y = ops.add(y, ops.matmul(u, ops.sub(scaled, ops.matmul(ops.matmul(scaled, adjoint(v)), v))))
    return y


def _svd_backward(g: Any, u: np.ndarray, s: np.ndarray, v: np.ndarray) -> np.ndarray:
    gu, gs, gv = g
    k = s.shape[-1]
    u, v = u[..., :k], v[..., :k, :]
    as_columns, as_rows = s[..., None, :], s[..., None]
    if gu is None and gv is None:
        return blas(u * gs[..., None, :], v)
    gaps, core = array_gaps(s * s), np.zeros((*s.shape, k), s.dtype)
    if gs is not None:
        diagonal_array(core)[...] = gs
    if gu is not None:
        inner = blas(u.swapaxes(-1, -2), gu := gu[..., :k])
        core += (inner - inner.swapaxes(-1, -2)) / gaps * as_columns
    if gv is not None:
        inner = blas(v, (gv := gv[..., :k, :]).swapaxes(-1, -2))
        core += (inner - inner.swapaxes(-1, -2)) / gaps * as_rows
    y = blas(u, blas(core, v))
    if gu is not None and u.shape[-2] > k:
        scaled = gu / as_columns
        y += blas(scaled - blas(u, blas(u.swapaxes(-1, -2), scaled)), v)
    if gv is not None and v.shape[-1] > k:
        scaled = gv / as_rows
        y += blas(u, scaled - blas(blas(scaled, v.swapaxes(-1, -2)), v))
    return y


def _plus(x: Any, y: Any) -> Any:
    return y if x is None else ops.add(x, y)


def _refuse_phase(of_u: Any, of_v: Any) -> None:
    """Complex singular vectors are given up to a common phase; what depends on it has no gradient."""
    total: Any = 0.0
    for x in (of_u, of_v):
        if x is not None and isinstance(array := settle(x._array), np.ndarray):  # inside a transform there are no numbers to look at
            total = total + np.imag(array.diagonal(0, -2, -1))
    if np.size(total) and not np.allclose(total, 0.0, atol=1e-2):
        raise GradError(
            "svd: the loss depends on the phase of complex singular vectors, which is not defined; make it of U diag(f(S)) Vh or of absolute values"
        )


def _svd_samples(rng: np.random.Generator) -> list[Sample]:
    # gradients of the first vectors of `full` alone; of complex ones, whose phase is any, tests/kernels/factorizations asks
    x = rng.standard_normal
    shapes = ((3, 3), (4, 2), (2, 2, 3), (0, 3), (2, 0, 0))
    return [Sample(x(shape), full=full, in_c_order=True, smooth=not full and 0 not in shape) for shape in shapes for full in (False, True)]


op(
    "svd", _svd, cpu=_svd_cpu, shape=_svd_shape, rule=_svd_rule, cpu_backward=_svd_backward, outputs=("u", "s", "v"), samples=_svd_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="a = u diag(s) v, singular values from the largest.",
)  # fmt: skip


def _svdvals(a: np.ndarray) -> np.ndarray:
    """Singular values from the largest."""
    return np.linalg.svd(a, compute_uv=False)


def _svdvals_shape(a: Any) -> Spec:
    refuse_matrix("svdvals", a)
    return Spec((*a.shape[:-2], min(a.shape[-2:])), real_type(a.dtype))


def _svdvals_rule(g: Any, a: Any) -> Any:
    """U diag(g) V^H."""
    u, _, v = ops.svd(a, full=False)
    return ops.matmul(ops.mul(u, columns(g)), v)


def _svdvals_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    u, s, v = _svd_cpu(a, full=False)
    return _svd_backward((None, g, None), u, s, v)


def _svdvals_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    return in_c_order(*map(x, ((3, 3), (4, 2), (2, 2, 3)))) + in_c_order(x((0, 3)), x((2, 0, 0)), smooth=False)


op(
    "svdvals", _svdvals, cpu=converging("svdvals", _svdvals), shape=_svdvals_shape, rule=_svdvals_rule,
    cpu_backward=_svdvals_backward, outputs=("s",), samples=_svdvals_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="Singular values.",
)  # fmt: skip


# y = V diag(1 / s) U^H over singular values above max(atol, rtol * the largest)
def _pinv(a: np.ndarray, atol: np.ndarray, rtol: np.ndarray, *, hermitian: bool) -> np.ndarray:
    """The pseudo-inverse; of Hermitian matrices through the eigenvalues of the lower triangle."""
    # there is no largest singular value
    if 0 in a.shape[-2:]:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        values, u = np.linalg.eigh(a)
        size, v = np.abs(values), u
    else:
        u, values, vh = np.linalg.svd(a, full_matrices=False)
        size, v = values, vh.swapaxes(-1, -2).conj()
    least = np.maximum(atol, rtol * size.max(axis=-1))[..., None]
    with np.errstate(divide="ignore"):
        inverse = np.where(size > least, 1 / values, 0).astype(values.dtype)
    return np.asarray((v * inverse[..., None, :]) @ u.swapaxes(-1, -2).conj())


def _pinv_shape(a: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Spec:
    refuse_matrix("pinv", a, square=hermitian)
    lead = tuple(a.shape[:-2])
    if broadcast("pinv", lead, tuple(atol.shape), tuple(rtol.shape), labels=("matrices", "atol", "rtol")) != lead:
        raise ShapeError(
            f"pinv: a {tuple(a.shape)}, atol {tuple(atol.shape)}, rtol {tuple(rtol.shape)}: give one number, or one a matrix, {lead}"
        )
    return Spec((*lead, a.shape[-1], a.shape[-2]), a.dtype)


def _pinv_rule(g: Any, a: Any, y: Any) -> Any:
    """-Y^H g Y^H + (1 - a Y) g^H Y Y^H + Y^H Y g^H (1 - Y a).

    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
    """
    yh, gh = adjoint(y), adjoint(g)
    found = ops.neg(ops.matmul(yh, ops.matmul(g, yh)))
    right = ops.matmul(gh, ops.matmul(y, yh))
    left = ops.matmul(ops.matmul(yh, y), gh)
    found = ops.add(found, ops.sub(right, ops.matmul(a, ops.matmul(y, right))))
    return ops.add(found, ops.sub(left, ops.matmul(ops.matmul(left, y), a)))


def _pinv_backward(g: np.ndarray, a: np.ndarray, y: np.ndarray) -> np.ndarray:
    yt, gt = y.swapaxes(-1, -2), g.swapaxes(-1, -2)
    right, left = blas(gt, blas(y, yt)), blas(blas(yt, y), gt)
    return np.asarray(right - blas(a, blas(y, right)) + left - blas(blas(left, y), a) - blas(yt, blas(g, yt)))


def _pinv_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    zero, small = np.zeros(()), np.full((), 1e-3)
    found = in_c_order(*[(a, zero, small) for a in (x((3, 3)), x((2, 4, 2)), x((2, 3)), np.zeros((0, 3)))], hermitian=False)
    thin = (x((4, 2)) @ x((2, 3)), zero, small), (x((2, 3, 3)), np.array([0.1, 0.5]), zero)
    found += in_c_order(*thin, smooth=False, hermitian=False)
    return found + in_c_order((np.array([[2.0, 1], [1, -1]]), zero, small), smooth=False, hermitian=True)


op(
    "pinv", _pinv, cpu=converging("pinv", _pinv), shape=_pinv_shape, rule=(_pinv_rule, None, None),
    cpu_backward=(_pinv_backward, None, None), samples=_pinv_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="The pseudo-inverse of Moore and Penrose.",
)  # fmt: skip
