"""QR factorizations, and products of the reflectors that LAPACK keeps Q as."""

from __future__ import annotations

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.factorizations.matrices import adjoint, identity, require_inexact, require_matrices, submatrix
from tritensor.tensor.functions.factorizations.results import QR, Reflectors
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type


@function(namespace="linalg", out=True, also={"input": "A"})
def qr(A: Tensor, mode: str = "reduced") -> QR:
    """(Q, R) with A = Q R, A (..., m, n), Q's columns orthonormal, R upper triangular.

    mode: "reduced": Q (m, k) and R (k, n), k the smaller of m and n; "complete": Q (m, m) and R (m, n); "r": R of "reduced" and an empty Q. Differentiable
    but for "r", and "complete" of more rows than columns (GradError).
    """
    return return_type("linalg_qr", QR)(*ops.qr(A, mode=mode))


@function(out=True)
def geqrf(x: Tensor) -> Reflectors:
    """(a, tau): QR as LAPACK keeps it, R on and above a's diagonal, the reflectors 1 - tau v v^H below it. A derivative raises NoDerivativeError."""
    return return_type("geqrf", Reflectors)(*[refuse_derivative("geqrf", y, x) for y in ops.geqrf(x)])


def _check_reflectors(name: str, a: Tensor, tau: Tensor) -> None:
    require_matrices(name, a, "input")
    require_inexact(name, a, "input")
    given = f"{name}: input {tuple(a.shape)}, tau {tuple(tau.shape)}"
    if tau.ndim != a.ndim - 1 or tuple(tau.shape[:-1]) != tuple(a.shape[:-2]) or tau.shape[-1] > a.shape[-1]:
        raise ShapeError(f"{given}: tau must be input's batch and at most {a.shape[-1]} factors")
    # A reflector of no rows reflects nothing.
    if tau.shape[-1] > a.shape[-2]:
        raise ShapeError(f"{given}: there cannot be more reflectors than rows")
    if tau._array.dtype != a._array.dtype:
        raise DTypeError(f"{given}: input is {a.dtype.name}, tau {tau.dtype.name}; cast one so that both are the same")


def _to_compact_form(a: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T of H_1 ... H_k = 1 - V T V^H, T = (1 + D S)^-1 D, D = diag(tau), S the strict upper triangle of V^H V.

    Puglisi, "Modification of the Householder method based on the compact WY representation" (1992).
    """
    k = tau.shape[-1]
    v = ops.add(ops.tril(submatrix(a, columns=slice(0, k)), diagonal=-1), identity(a, a.shape[-2], k))
    column = reshape_to(tau, (*tau.shape, 1))
    eye = identity(a, k)
    strict = ops.triu(ops.matmul(adjoint(v), v), diagonal=1)
    return v, ops.solve_triangular(ops.add(ops.mul(strict, column), eye), ops.mul(eye, column), upper=True, unitriangular=True)


@function(namespace="linalg", out=True, also={"input": "A"})
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of H_1 ... H_k, H_i = 1 - tau_i v_i v_i^H, v_i below the diagonal of A (..., m, n), k = tau's size at most n <= m."""
    return multiply_reflectors("householder_product", A, tau)


def multiply_reflectors(name: str, A: Tensor, tau: Tensor) -> Tensor:
    """What householder_product gives, under another name in messages."""
    _check_reflectors(name, A, tau)
    m, n = A.shape[-2:]
    if n > m:
        raise ShapeError(f"{name}: {'A' if name != 'orgqr' else 'input'} {tuple(A.shape)} has more columns than rows; Q has at most {m}")
    v, t = _to_compact_form(A, tau)
    return ops.sub(identity(A, m, n), ops.matmul(v, ops.matmul(t, adjoint(submatrix(v, slice(0, n))))))


@function(out=True, also={"input2": "tau"})
def orgqr(x: Tensor, tau: Tensor) -> Tensor:
    """Another name of linalg.householder_product."""
    return multiply_reflectors("orgqr", x, tau)


@function(out=True, also={"input2": "tau", "input3": "other"})
def ormqr(x: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q other, or other Q unless `left`, for Q = H_1 ... H_k of geqrf's reflectors; Q^H in its place if `transpose`."""
    _check_reflectors("ormqr", x, tau)
    require_matrices("ormqr", other, "other")
    m, meets = x.shape[-2], other.shape[-2 if left else -1]
    given = f"ormqr: input {tuple(x.shape)}, other {tuple(other.shape)}"
    if meets != m or other.ndim != x.ndim or tuple(other.shape[:-2]) != tuple(x.shape[:-2]):
        raise ShapeError(f"{given}: other must have input's batch, and {m} {'rows' if left else 'columns'}")
    if other._array.dtype != x._array.dtype:
        raise DTypeError(f"{given}: input is {x.dtype.name}, other {other.dtype.name}; cast one so that both are the same")
    v, t = _to_compact_form(x, tau)
    if transpose:
        t = adjoint(t)
    if left:
        return ops.sub(other, ops.matmul(v, ops.matmul(t, ops.matmul(adjoint(v), other))))
    return ops.sub(other, ops.matmul(ops.matmul(ops.matmul(other, v), t), adjoint(v)))
