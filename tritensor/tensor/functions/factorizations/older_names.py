"""PyTorch's older names of factorizations, which give other parts than those of linalg; and those that PyTorch 1.9 removed, which raise."""

from __future__ import annotations

from typing import Any, NoReturn

from tritensor.ground.errors import ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.cholesky import _NOT_POSITIVE
from tritensor.tensor.functions.factorizations.lu import _require_pivoting, unpack_factors
from tritensor.tensor.functions.factorizations.lu import solve_factored as lu_solved
from tritensor.tensor.functions.factorizations.matrices import (
    adjoint,
    broadcast_batches,
    raise_if_failed,
    require_matrices,
    transpose_matrices,
)
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

    # PyTorch returns zeros in their place, of full size.
    def zeros(k: int) -> Tensor:
        return ops.full(shape=(*x.shape[:-2], k, k), value=0, dtype=x._array.dtype, device=x.device)

    return return_type("svd", OldSVD)(zeros(m), s, zeros(n))


@function(out=True, also={"A": "x"})
def slogdet(x: Tensor) -> SignLog:
    """(sign, logabsdet) with det = sign e^logabsdet; see linalg.slogdet."""
    return return_type("slogdet", SignLog)(*ops.slogdet(x))


@function(out=True, also={"A": "x"})
def lu(x: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """(LU, pivots), or with info if `get_infos`; see linalg.lu_factor_ex."""
    _require_pivoting("lu", pivot)
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
    given = A
    if transpose:  # the transpose of an upper triangle is a lower one
        A, upper = transpose_matrices(A), not upper
    x = solve_triangle("triangular_solve", A, b, bool(upper), True, bool(unitriangular))
    return return_type("triangular_solve", TriangularSolve)(x, ops.copy(given))


# -- removed from PyTorch after 1.9: RuntimeError here as there, with the name of what took their place
def _raise_removed(name: str, instead: str) -> NoReturn:
    raise RuntimeError(f"{name}: PyTorch removed it after version 1.9; use {instead}")


@function
def eig(x: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed: linalg.eig gives complex (eigenvalues, eigenvectors). Raises RuntimeError."""
    _raise_removed("eig", "linalg.eig(A), whose results are complex, or linalg.eigvals(A)")


@function
def symeig(x: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> Any:
    """Removed: linalg.eigh, which reads the lower triangle unless UPLO="U". Raises RuntimeError."""
    _raise_removed(
        "symeig", "linalg.eigh(A, UPLO='U'), or linalg.eigvalsh(A, UPLO='U') without eigenvectors; UPLO='L' reads the lower triangle"
    )


@function(method=False)
def matrix_rank(x: Any, tol: float | None = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Removed: linalg.matrix_rank, whose tol is relative or absolute by name. Raises RuntimeError."""
    _raise_removed("matrix_rank", "linalg.matrix_rank(A, atol=tol, hermitian=symmetric)")


@function(also={"other": "A"})
def lstsq(x: Any, A: Any, *, out: Any = None) -> Any:
    """Removed: linalg.lstsq, whose arguments go the other way round. Raises RuntimeError."""
    _raise_removed("lstsq", "linalg.lstsq(A, B).solution, with A first")


@function(also={"other": "A"})
def solve(x: Any, A: Any, *, out: Any = None) -> Any:
    """Removed: linalg.solve, whose arguments go the other way round. Raises RuntimeError."""
    _raise_removed("solve", "linalg.solve(A, B), with A first")
