"""Singular values, eigenvalues, and what is read off them: rank and condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ops.table import broadcast, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import randn
from tritensor.tensor.functions.factorizations.matrices import adjoint, number_like, real_type, require_inexact, require_matrices
from tritensor.tensor.functions.factorizations.results import SVD, Eigen
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type


def _refuse_driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise ArgumentError(f"{name}: driver={driver!r} chooses among cuSOLVER's; here it is LAPACK's gesdd; leave it out")


@function(namespace="linalg", out=True, also={"input": "A"})
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """(U, S, Vh) with A = U diag(S) Vh, A (..., m, n): singular values S (k,) from the largest, k the smaller of m and n.

    full_matrices: U (m, m) and Vh (n, n), else (m, k) and (k, n). Gradients to the columns beyond k are ignored; where singular values are
    equal those of U and Vh are infinite or NaN. A loss that depends on the phase of complex vectors raises GradError in backward.
    """
    _refuse_driver("svd", driver)
    return return_type("linalg_svd", SVD)(*ops.svd(A, full=bool(full_matrices)))


def singular_values(A: Tensor) -> Tensor:
    """Singular values (..., k) from the largest."""
    # LAPACK does less without the vectors, which only a gradient needs.
    return ops.svd(A, full=False)[1] if is_followed(A) else ops.svdvals(A)


@function(namespace="linalg", out=True, also={"input": "A"})
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values (..., k) from the largest."""
    _refuse_driver("svdvals", driver)
    return singular_values(A)


def _is_upper(name: str, UPLO: str) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise ArgumentError(f"{name}: UPLO is {UPLO!r}; it is 'L' or 'U', the triangle that is read")
    return UPLO in ("U", "u")


@function(namespace="linalg", out=True, also={"input": "A"})
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """(eigenvalues, eigenvectors) of Hermitian matrices (..., n, n): real, from the smallest, and orthonormal in columns. One triangle is read.

    Where eigenvalues are equal, gradients of eigenvectors are infinite or NaN. A loss that depends on the phase of complex vectors raises GradError.
    """
    return return_type("linalg_eigh", Eigen)(*ops.eigh(A, upper=_is_upper("eigh", UPLO)))


def _find_eigenvalues(A: Tensor, upper: bool) -> Tensor:
    return ops.eigh(A, upper=upper)[0] if is_followed(A) else ops.eigvalsh(A, upper=upper)


@function(namespace="linalg", out=True, also={"input": "A"})
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, from the smallest. One triangle is read."""
    return _find_eigenvalues(A, _is_upper("eigvalsh", UPLO))


@function(namespace="linalg", out=True, also={"input": "A"})
def eig(A: Tensor) -> Eigen:
    """(eigenvalues, eigenvectors) of square matrices (..., n, n): complex, in LAPACK's order, vectors of length 1 in columns. On the CPU only."""
    return return_type("linalg_eig", Eigen)(*ops.eig(A))


@function(namespace="linalg", out=True, also={"input": "A"})
def eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of square matrices: complex, in LAPACK's order. On the CPU only."""
    return ops.eig(A)[0] if is_followed(A) else ops.eigvals(A)


# ---------------------------------------------------------------- rank


def parse_tolerances(name: str, A: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """atol and rtol as tensors, and the batch that they and A have together; rtol is eps times the larger size, or 0 where atol is given.

    Raises DTypeError for complex ones, ShapeError where they and the batch do not broadcast.
    """
    for given in (atol, rtol):
        if isinstance(given, Tensor) and given.is_complex():
            raise DTypeError(f"{name}: a tolerance is {given.dtype.name}; it must be real")
    if rtol is None:
        epsilon = float(np.finfo(real_type(A)).eps) * max(A.shape[-2:])
        # A tensor of tolerances decides for each matrix, without a wait.
        if isinstance(atol, Tensor):
            rtol = ops.where(ops.gt(atol, 0.0), 0.0, epsilon)
        else:
            rtol = 0.0 if atol else epsilon
    atol, rtol = number_like(0.0 if atol is None else atol, A), number_like(rtol, A)
    return atol, rtol, broadcast(name, tuple(A.shape[:-2]), tuple(atol.shape), tuple(rtol.shape), labels=("the batch", "atol", "rtol"))


@function(namespace="linalg", out=True, also={"input": "A"})
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values are above max(atol, rtol * the largest), int64; of Hermitian matrices absolute eigenvalues.

    rtol: eps times the larger of the two sizes where neither is given, 0 where atol is. `tol` is another name of atol.
    """
    require_matrices("matrix_rank", A, square=bool(hermitian))
    require_inexact("matrix_rank", A)
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol, _ = parse_tolerances("matrix_rank", A.detach(), atol, rtol)
    # No largest singular value to compare with: the rank is 0.
    if 0 in A.shape[-2:]:
        return ops.full(shape=tuple(A.shape[:-2]), value=0, dtype=np.dtype(np.int64), device=A.device)
    values = ops.abs(ops.eigvalsh(A.detach(), upper=False)) if hermitian else ops.svdvals(A.detach())
    largest = ops.amax(values, dim=(values.ndim - 1,), keepdim=False)
    least = ops.maximum(atol, ops.mul(rtol, largest))
    return ops.sum(ops.gt(values, reshape_to(least, (*least.shape, 1))), dim=(values.ndim - 1,), keepdim=False)


# ---------------------------------------------------------------- low rank, by random projections


def _draw_projection(x: Tensor, q: int) -> Tensor:
    """q columns of normal numbers that x multiplies, in its type."""
    shape, dtype = (x.shape[-1], q), dtypes.of(real_type(x))
    if not x.is_complex():
        return randn(*shape, dtype=dtype, device=x.device)
    # Both parts drawn one after the other, as randn draws complex numbers.
    return ops.complex(randn(*shape, dtype=dtype, device=x.device), randn(*shape, dtype=dtype, device=x.device))


def approximate_svd(name: str, A: Tensor, q: int | None, niter: int, M: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V of the best approximation of A - M of rank q that a random projection finds.

    Halko, Martinsson, Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1.
    """
    require_matrices(name, A)
    q = 6 if q is None else int(q)
    if M is not None:
        A = ops.sub(A, ops.expand(M, shape=tuple(A.shape)))
    m, n = A.shape[-2:]
    # svd_lowrank lets q exceed the sizes in PyTorch, pca_lowrank does not.
    if q < 0 or (q > min(m, n) and name == "pca_lowrank"):
        raise ArgumentError(f"{name}: q is {q} for A {tuple(A.shape)}; it must be between 0 and {min(m, n)}")
    if niter < 0:
        raise ArgumentError(f"{name}: niter is {niter}; it must be 0 or more")
    # Projections are of the shorter side, which makes the small SVD smaller.
    wide = m < n
    work = adjoint(A) if wide else A
    transposed = adjoint(work)
    start = _draw_projection(work, q)
    basis = ops.qr(ops.matmul(work, start), mode="reduced")[0]
    # Orthonormalised after each product: powers of A would lose the small directions to rounding.
    for _ in range(niter):
        basis = ops.qr(ops.matmul(transposed, basis), mode="reduced")[0]
        basis = ops.qr(ops.matmul(work, basis), mode="reduced")[0]
    u, s, vh = ops.svd(ops.matmul(adjoint(basis), work), full=False)
    u, v = ops.matmul(basis, u), adjoint(vh)
    return (v, s, u) if wide else (u, s, v)


@function(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with U diag(S) V^H near A (near A - M), of rank q: a random projection, improved by `niter` power steps (Halko et al. 2009)."""
    return approximate_svd("svd_lowrank", A, q, 2 if niter is None else niter, M)


@function(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the q principal components of A (..., samples, features), columns centred first; by svd_lowrank. q is at most 6 if not given."""
    require_matrices("pca_lowrank", A)
    q = min(6, *A.shape[-2:]) if q is None else q
    if center:
        A = ops.sub(A, ops.div(ops.sum(A, dim=(A.ndim - 2,), keepdim=True), float(max(A.shape[-2], 1))))
    return approximate_svd("pca_lowrank", A, q, niter, None)
