"""LU factorizations, what they are made of, and systems that they solve."""

from __future__ import annotations

import numpy as np

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.matrices import (
    adjoint,
    broadcast_batches,
    expand_batch,
    identity,
    raise_if_failed,
    require_matrices,
    submatrix,
)
from tritensor.tensor.functions.factorizations.results import PLU, LUFactor, LUFactorEx
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

_FAILED = "U[{0}, {0}], counted from 1, is zero; lu_solve would divide by it; use lu_factor_ex to factor such matrices"


def _require_pivoting(name: str, pivot: bool) -> None:
    if not pivot:
        raise ArgumentError(f"{name}: pivot=False; LU without exchanges of rows loses digits and is not there; leave pivot out")


@function(namespace="linalg", out=True, also={"input": "A"})
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """(LU, pivots, info): as lu_factor, and for each matrix the first zero on U's diagonal counted from 1, or 0."""
    _require_pivoting("lu_factor_ex", pivot)
    lu, pivots, info = ops.lu_factor(A)
    if check_errors:
        raise_if_failed("lu_factor_ex", info, _FAILED)
    return return_type("linalg_lu_factor_ex", LUFactorEx)(lu, pivots, info)


@function(namespace="linalg", out=True, also={"input": "A"})
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """(LU, pivots) with A = P L U, A (..., m, n): L below the diagonal of LU, its ones not kept, U on and above it; row i was exchanged
    with row pivots[i] - 1. Raises LinAlgError where U is singular."""
    _require_pivoting("lu_factor", pivot)
    lu, pivots, info = ops.lu_factor(A)
    raise_if_failed("lu_factor", info, _FAILED)
    return return_type("linalg_lu_factor", LUFactor)(lu, pivots)


def unpack_factors(name: str, LU: Tensor, pivots: Tensor, data: bool = True, exchanges: bool = True) -> PLU:
    """P, L, U of what lu_factor gave; empty tensors for those that are not wanted."""
    require_matrices(name, LU, "LU_data")
    m, n = LU.shape[-2:]
    k = min(m, n)
    kind = return_type("lu_unpack" if name == "lu_unpack" else "linalg_lu", PLU)
    nothing = ops.full(shape=(0,), value=0, dtype=LU._array.dtype, device=LU.device)
    p = ops.cast(ops.pivots_to_matrix(pivots, size=m), dtype=LU._array.dtype) if exchanges else nothing
    if not data:
        return kind(p, nothing, nothing)
    lower = ops.add(ops.tril(submatrix(LU, columns=slice(0, k)), diagonal=-1), identity(LU, m, k))
    return kind(p, lower, ops.triu(submatrix(LU, slice(0, k)), diagonal=0))


@function(namespace="linalg", out=True, also={"input": "A"})
def lu(A: Tensor, *, pivot: bool = True) -> PLU:
    """(P, L, U) with A = P L U: P (m, m) a permutation, L (m, k) with ones on its diagonal, U (k, n), k the smaller of m and n."""
    _require_pivoting("lu", pivot)
    found, pivots, _ = ops.lu_factor(A)
    return unpack_factors("lu", found, pivots)


def permute_rows(x: Tensor, pivots: Tensor, inverse: bool) -> Tensor:
    """P^T x, or P x, for the permutation P that exchanges of rows come to."""
    order = ops.pivots_to_order(pivots, size=x.shape[-2], inverse=inverse)
    index = ops.reshape(order, shape=(*order.shape, 1))
    return ops.gather(x, ops.expand(index, shape=tuple(x.shape)), dim=x.ndim - 2)


def solve_factored(name: str, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, conjugated: bool) -> Tensor:
    """X with A X = B, A given by its LU; X A = B where not `left`, A^H in A's place where `conjugated`."""
    require_matrices(name, LU, "LU", square=True)
    require_matrices(name, B, "B")
    if not left:
        # X A = B is A^H X^H = B^H.
        return adjoint(solve_factored(name, LU, pivots, adjoint(B), True, not conjugated))
    if LU.shape[-1] != B.shape[-2]:
        raise ShapeError(f"{name}: LU {tuple(LU.shape)}, B {tuple(B.shape)}: B must have LU's {LU.shape[-1]} rows")
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise ShapeError(f"{name}: LU {tuple(LU.shape)}, pivots {tuple(pivots.shape)}: pivots must have LU's shape without its last size")
    # LAPACK's integers; another type means that these are no pivots of lu_factor.
    if pivots._array.dtype != np.int32:
        raise ArgumentError(f"{name}: pivots is {pivots.dtype.name}; lu_factor gives int32")
    LU, B = broadcast_batches(name, LU, B, ("LU", "B"))
    pivots = expand_batch(pivots, tuple(LU.shape[:-2]), 1)
    if conjugated:
        y = ops.solve_triangular(adjoint(LU), B, upper=False)
        return permute_rows(ops.solve_triangular(adjoint(LU), y, upper=True, unitriangular=True), pivots, True)
    y = ops.solve_triangular(LU, permute_rows(B, pivots, False), upper=False, unitriangular=True)
    return ops.solve_triangular(LU, y, upper=True)


@function(namespace="linalg", out=True)
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B (X A = B unless `left`; A^H for A if `adjoint`), A given by what lu_factor made of it; batches broadcast."""
    return solve_factored("lu_solve", LU, pivots, B, bool(left), bool(adjoint))
