"""Factors of symmetric and Hermitian matrices, and systems that they solve: Cholesky of positive definite ones, LDL of others."""

from __future__ import annotations

from tritensor.ground.errors import ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.factorizations.matrices import broadcast_batches, expand_batch, identity, raise_if_failed, require_matrices
from tritensor.tensor.functions.factorizations.results import CholeskyEx, LDLFactor, LDLFactorEx
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

_NOT_POSITIVE = "not positive definite: its leading minor of order {0} is not; add a multiple of the identity, or use ldl_factor"
_SINGULAR_D = "D[{0}, {0}], counted from 1, is zero; use ldl_factor_ex to factor such matrices"


@function(namespace="linalg", out=True, also={"input": "A"})
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """(L, info): the Cholesky factor, and for each matrix the order of the first leading minor that is not positive definite, 0 where all are.

    One triangle of A is read. Where info is not 0 the factor is NaN. Raises LinAlgError then, if check_errors.
    """
    y, info = ops.cholesky(A, upper=bool(upper))
    if check_errors:
        raise_if_failed("cholesky_ex", info, _NOT_POSITIVE)
    return return_type("linalg_cholesky_ex", CholeskyEx)(y, info)


@function(namespace="linalg", out=True, also={"input": "A"})
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L, lower triangular, with A = L L^H for positive definite A (..., n, n), or U with A = U^H U. One triangle of A is read.

    Raises LinAlgError for what is not positive definite or has a NaN in that triangle, ShapeError for what is not square, DTypeError for
    integers and 16-bit floats.
    """
    y, info = ops.cholesky(A, upper=bool(upper))
    raise_if_failed("cholesky", info, _NOT_POSITIVE)
    return y


def _broadcast_systems(name: str, B: Tensor, L: Tensor) -> tuple[Tensor, Tensor]:
    require_matrices(name, B, "B")
    require_matrices(name, L, "L", square=True)
    if L.shape[-1] != B.shape[-2]:
        raise ShapeError(f"{name}: B {tuple(B.shape)}, L {tuple(L.shape)}: B must have L's {L.shape[-1]} rows")
    return broadcast_batches(name, B, L, ("B", "L"))


@function(out=True, also={"input": "B", "input2": "L"})
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = B, for the Cholesky factor L of A (its upper one if `upper`); batches broadcast."""
    B, L = _broadcast_systems("cholesky_solve", B, L)
    return ops.cholesky_solve(B, L, upper=bool(upper))


@function(out=True, also={"input": "L"})
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor L (its upper one if `upper`). Raises LinAlgError where L has a 0 on its diagonal."""
    require_matrices("cholesky_inverse", L, "L", square=True)
    # LAPACK's potri reports a zero on the diagonal; the triangular solves below would give inf.
    if L._array.size:
        last = L.ndim - 2
        zeros = ops.eq(ops.diagonal(L.detach(), offset=0, dim1=last, dim2=last + 1), 0)
        first = ops.add(ops.argmax(zeros, dim=last, keepdim=False), 1)
        info = ops.where(ops.any(zeros, dim=(last,), keepdim=False), first, 0)
        raise_if_failed("cholesky_inverse", info, "L is singular: element {0} of its diagonal, counted from 1, is zero")
    return cholesky_solve(identity(L, L.shape[-1]), L, upper)


# -- LDL
@function(namespace="linalg", out=True, also={"input": "A"})
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorEx:
    """(LD, pivots, info): as ldl_factor, and for each matrix the first zero on D's diagonal counted from 1, or 0.

    A derivative raises NoDerivativeError.
    """
    ld, *rest = ops.ldl_factor(A, hermitian=bool(hermitian))
    found = return_type("linalg_ldl_factor_ex", LDLFactorEx)(refuse_derivative("ldl_factor_ex", ld, A), *rest)
    if check_errors:
        raise_if_failed("ldl_factor_ex", found.info, _SINGULAR_D)
    return found


@function(namespace="linalg", out=True, also={"input": "A"})
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """(LD, pivots) with A = P L D L^T P^T (L^H if `hermitian`), D of blocks of one and two rows, as LAPACK's sytrf lays them out. The lower
    triangle of A is read. Raises LinAlgError where D is singular; a derivative raises NoDerivativeError."""
    ld, pivots, info = ops.ldl_factor(A, hermitian=bool(hermitian))
    raise_if_failed("ldl_factor", info, _SINGULAR_D)
    return return_type("linalg_ldl_factor", LDLFactor)(refuse_derivative("ldl_factor", ld, A), pivots)


@function(namespace="linalg", out=True)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, A given by what ldl_factor made of it; batches broadcast. A derivative raises NoDerivativeError."""
    require_matrices("ldl_solve", LD, "LD", square=True)
    require_matrices("ldl_solve", B, "B")
    # Pivots of another shape are left to the op, which names the mismatch.
    if tuple(pivots.shape) == tuple(LD.shape[:-1]):
        LD, B = broadcast_batches("ldl_solve", LD, B, ("LD", "B"))
        pivots = expand_batch(pivots, tuple(LD.shape[:-2]), 1)
    return refuse_derivative("ldl_solve", ops.ldl_solve(LD, pivots, B, hermitian=bool(hermitian)), LD, B)
