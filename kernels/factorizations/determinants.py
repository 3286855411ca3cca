"""Determinants, their logarithms, and the cofactors that are the determinant's gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.factorizations.matrices import (
    NUMBERS,
    batched,
    conjugate,
    in_c_order,
    is_complex,
    real_type,
    refuse_matrix,
    transposed,
)
from tritensor.kernels.factorizations.solve import inverse
from tritensor.ops.table import Sample, Spec, op, ops


def _scalars(name: str) -> Any:
    def shape(a: Any) -> Spec:
        refuse_matrix(name, a, square=True)
        return Spec(tuple(a.shape[:-2]), a.dtype)

    return shape


def _factor(v: Any) -> Any:
    """A number for each matrix (...) as a factor of its elements, (..., 1, 1)."""
    return ops.reshape(v, shape=(*v.shape, 1, 1))


# det: y = det a; dy/da = cofactors of a
def _det(a: np.ndarray) -> np.ndarray:
    return np.linalg.det(a)


def _det_cpu(a: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(np.linalg.det(a))


def _samples(rng: np.random.Generator) -> list[Sample]:
    def a(*size: int) -> np.ndarray:
        return rng.standard_normal(size) + np.eye(size[-1])

    return in_c_order(a(3, 3), a(2, 4, 4), a(1, 1), a(2, 3, 2, 2)) + in_c_order(np.zeros((2, 0, 0)), smooth=False)


op(
    "det", _det, cpu=_det_cpu, shape=_scalars("det"), samples=_samples, host=True, dtypes=NUMBERS, doc="Determinants.",
    rule=lambda g, a: ops.mul(_factor(g), ops.cofactors(a)), cpu_backward=lambda g, a: g[..., None, None] * _cofactors_cpu(a),
)  # fmt: skip


# cofactors: y = det(a) a^-T, which is a polynomial of a's elements and exists where the inverse does not
def _cofactors(a: np.ndarray) -> np.ndarray:
    y = np.zeros_like(a)
    for i, j in np.ndindex(*a.shape[-2:]):
        y[..., i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, -2), j, -1))
    return y


def _cofactors_cpu(a: np.ndarray) -> np.ndarray:
    found, info = inverse(a)
    with np.errstate(all="ignore"):
        y = np.linalg.det(a)[..., None, None] * found.swapaxes(-1, -2)
    # singular, or so nearly that the inverse overflows: the polynomial exists all the same
    bad = ~np.isfinite(y).all(axis=(-2, -1)) | (info != 0)
    if bad.any():
        y[bad] = _by_singular_values(a[bad])
    return np.ascontiguousarray(y)


def _by_singular_values(a: np.ndarray) -> np.ndarray:
    """det(U) det(V^H) conj(U D V^H), D the products of all singular values but one."""
    a = batched(a)
    # the steps of svd would not end
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan)
    u, s, v = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.prod(np.where(np.eye(n, dtype=bool), 1, s[:, None, :]), axis=-1)  # (batch, n)
    phase = np.linalg.det(u) * np.linalg.det(v)
    return np.asarray(phase[:, None, None] * ((u * others[:, None, :].astype(u.dtype)) @ v).conj())


def _cofactors_shape(a: Any) -> Spec:
    refuse_matrix("cofactors", a, square=True)
    return Spec(tuple(a.shape), a.dtype)


def _cofactors_rule(g: Any, a: Any, y: Any) -> Any:
    """<g, y> a^-T - y g^T a^-T, of matrices that have an inverse; NaN for others."""
    t = transposed(ops.inv(a)[0])
    inner = ops.sum(ops.mul(g, y), dim=(g.ndim - 2, g.ndim - 1), keepdim=True)
    return ops.sub(ops.mul(inner, t), ops.matmul(y, ops.matmul(transposed(g), t)))


def _cofactor_samples(rng: np.random.Generator) -> list[Sample]:
    flat = rng.standard_normal((3, 2))
    singular = [np.zeros((2, 2)), np.ones((2, 2)), np.diag([2.0, 0, 0, 1]), np.diag([2.0, 3, 0, -1])]
    whole = [rng.standard_normal((3, 3)) / 3 + np.eye(3), rng.standard_normal((2, 4, 4)) / 4 + np.eye(4)]
    return in_c_order(*whole) + in_c_order(*singular, np.asarray(np.rint(flat @ flat.T)), smooth=False)


op(
    "cofactors", _cofactors, cpu=_cofactors_cpu, shape=_cofactors_shape, rule=_cofactors_rule, samples=_cofactor_samples, host=True, dtypes=NUMBERS,
    doc="The matrix of cofactors, det(a) a^-T.",
)  # fmt: skip


# slogdet: det a = sign e^log
def _slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign, log = np.linalg.slogdet(a)
    return sign, log


def _slogdet_cpu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        sign, log = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(log)


def _slogdet_shape(a: Any) -> tuple[Spec, Spec]:
    refuse_matrix("slogdet", a, square=True)
    batch = tuple(a.shape[:-2])
    return Spec(batch, a.dtype), Spec(batch, real_type(a.dtype))


def _slogdet_rule(g: Any, a: Any, sign: Any) -> Any:
    """(g_log + i im(g_sign conj(sign))) a^-H; a real sign does not move."""
    g_sign, g_log = g
    t = conjugate(transposed(ops.inv(a)[0]))
    weight = g_log
    if is_complex(a) and g_sign is not None:
        turned = ops.mul(ops.cast(ops.imag(ops.mul(g_sign, ops.conj(sign))), dtype=a._array.dtype), 1j)
        weight = turned if g_log is None else ops.add(turned, g_log)
    if weight is None:
        return ops.mul(a, 0.0)
    return ops.mul(_factor(weight), t)


def _slogdet_backward(g: Any, a: np.ndarray) -> np.ndarray:
    weight = g[1]
    return np.zeros_like(a) if weight is None else weight[..., None, None] * inverse(a)[0].swapaxes(-1, -2)


op(
    "slogdet", _slogdet, cpu=_slogdet_cpu, shape=_slogdet_shape, rule=_slogdet_rule,
    cpu_backward=_slogdet_backward, outputs=("sign", "logabsdet"), samples=_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="The sign (of complex matrices the phase) of the determinant and the logarithm of its absolute value.",
)  # fmt: skip
