"""PyTorch's older names of factorizations, which give other parts than those of linalg."""

from __future__ import annotations

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.cholesky import _FAILED as _NOT_POSITIVE
from tritensor.tensor.functions.factorizations.lu import solve_factored as lu_solved
from tritensor.tensor.functions.factorizations.lu import unpack_factors
from tritensor.tensor.functions.factorizations.matrices import adjoint, broadcast_batches, raise_if_failed, require_matrices
from tritensor.tensor.functions.factorizations.results import PLU, QR, LUFactorEx, OldSVD, SignLog, TriangularSolve
from tritensor.tensor.functions.factorizations.solving import solve_triangle
from tritensor.tensor.functions.factorizations.spectra import singular_values
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type


@function(out=True)
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices, the upper one if `upper`; see linalg.cholesky."""
    y, info = ops.cholesky(x, upper=bool(upper))
    raise_if_failed("cholesky", info, _NOT_POSITIVE)
    return y


@function(out=True)
def qr(x: Tensor, some: bool = True) -> QR:
    """(Q, R) with x = Q R; see linalg.qr, whose mode is "reduced" if `some`, else "complete"."""
    return return_type("qr", QR)(*ops.qr(x, mode="reduced" if some else "complete"))


@function(out=True)
def svd(x: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """(U, S, V) with x = U diag(S) V^H, V and not V^H; U and V have all columns unless `some`, and are zero unless `compute_uv`."""
    if compute_uv:
        u, s, vh = ops.svd(x, full=not some)
        return return_type("svd", OldSVD)(u, s, adjoint(vh))
    s = singular_values(x)
    m, n = x.shape[-2:]

    def zeros(k: int) -> Tensor:
        return ops.full(shape=(*x.shape[:-2], k, k), value=0, dtype=x.array.dtype, device=x.device)

    return return_type("svd", OldSVD)(zeros(m), s, zeros(n))


@function(out=True, also={"A": "x"})
def slogdet(x: Tensor) -> SignLog:
    """(sign, logabsdet) with det = sign e^logabsdet; see linalg.slogdet."""
    return return_type("slogdet", SignLog)(*ops.slogdet(x))


@function(out=True, also={"A": "x"})
def lu(x: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """(LU, pivots), or with info if `get_infos`; see linalg.lu_factor_ex."""
    if not pivot:
        raise ArgumentError("lu: pivot=False; LU without exchanges of rows loses digits and is not there; leave pivot out")
    found = LUFactorEx(*ops.lu_factor(x))
    return found if get_infos else tuple(found[:2])


@function(method=False, out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:
    """(P, L, U) of what lu_factor gave; empty tensors for those that are not unpacked."""
    if unpack_pivots and tuple(LU_pivots.shape[:-1]) != tuple(LU_data.shape[:-2]):
        raise ShapeError(f"lu_unpack: LU_data {tuple(LU_data.shape)}, LU_pivots {tuple(LU_pivots.shape)}: the batches differ")
    return unpack_factors("lu_unpack", LU_data, LU_pivots, bool(unpack_data), bool(unpack_pivots))


@function(out=True, also={"input": "b"})
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = b, A given by its LU; see linalg.lu_solve."""
    return lu_solved("lu_solve", LU_data, LU_pivots, b, True, False)


@function(out=True, also={"input": "b"})
def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> TriangularSolve:
    """(solution, cloned_coefficient): X with T X = b, T a triangle of A, T^T in its place if `transpose`; and a copy of A."""
    require_matrices("triangular_solve", b, "b")
    require_matrices("triangular_solve", A, "A", square=True)
    A, b = broadcast_batches("triangular_solve", A, b, ("A", "b"))
    if transpose:
        turned = A.transpose(-2, -1)
        return return_type("triangular_solve", TriangularSolve)(
            solve_triangle("triangular_solve", turned, b, not upper, True, bool(unitriangular)), ops.copy(A)
        )
    return return_type("triangular_solve", TriangularSolve)(
        solve_triangle("triangular_solve", A, b, bool(upper), True, bool(unitriangular)), ops.copy(A)
    )
