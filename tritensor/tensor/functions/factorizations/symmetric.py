"""LDL factorizations of symmetric and Hermitian matrices, and systems that they solve."""

from __future__ import annotations

from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.factorizations.matrices import broadcast_batches, expand_batch, raise_if_failed, require_matrices
from tritensor.tensor.functions.factorizations.results import LDLFactor, LDLFactorEx
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

_FAILED = "D[{0}, {0}], counted from 1, is zero; use ldl_factor_ex to factor such matrices"


@function(namespace="linalg", out=True, also={"input": "A"})
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorEx:
    """(LD, pivots, info): as ldl_factor, and for each matrix the first zero on D's diagonal counted from 1, or 0.

    A derivative raises NoDerivativeError.
    """
    ld, *rest = ops.ldl_factor(A, hermitian=bool(hermitian))
    found = return_type("linalg_ldl_factor_ex", LDLFactorEx)(refuse_derivative("ldl_factor_ex", ld, A), *rest)
    if check_errors:
        raise_if_failed("ldl_factor_ex", found.info, _FAILED)
    return found


@function(namespace="linalg", out=True, also={"input": "A"})
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """(LD, pivots) with A = P L D L^T P^T (L^H if `hermitian`), D of blocks of one and two rows, as LAPACK's sytrf lays them out. The lower
    triangle of A is read. Raises LinAlgError where D is singular; a derivative raises NoDerivativeError."""
    ld, pivots, info = ops.ldl_factor(A, hermitian=bool(hermitian))
    raise_if_failed("ldl_factor", info, _FAILED)
    return return_type("linalg_ldl_factor", LDLFactor)(refuse_derivative("ldl_factor", ld, A), pivots)


@function(namespace="linalg", out=True)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, A given by what ldl_factor made of it; batches broadcast. A derivative raises NoDerivativeError."""
    require_matrices("ldl_solve", LD, "LD", square=True)
    require_matrices("ldl_solve", B, "B")
    if tuple(pivots.shape) == tuple(LD.shape[:-1]):
        LD, B = broadcast_batches("ldl_solve", LD, B, ("LD", "B"))
        pivots = expand_batch(pivots, tuple(LD.shape[:-2]), 1)
    return refuse_derivative("ldl_solve", ops.ldl_solve(LD, pivots, B, hermitian=bool(hermitian)), LD, B)
