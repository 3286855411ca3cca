"""Cholesky factors and systems that they solve."""

from __future__ import annotations

from tritensor.ground.errors import ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.matrices import broadcast_batches, identity, raise_if_failed, require_matrices
from tritensor.tensor.functions.factorizations.results import CholeskyEx
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

_FAILED = "not positive definite: its leading minor of order {0} is not; add a multiple of the identity, or use ldl_factor"


@function(namespace="linalg", out=True, also={"input": "A"})
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """(L, info): the Cholesky factor, and for each matrix the order of the first leading minor that is not positive definite, 0 where all are.

    One triangle of A is read. Where info is not 0 the factor is NaN. Raises LinAlgError then, if check_errors.
    """
    y, info = ops.cholesky(A, upper=bool(upper))
    if check_errors:
        raise_if_failed("cholesky_ex", info, _FAILED)
    return return_type("linalg_cholesky_ex", CholeskyEx)(y, info)


@function(namespace="linalg", out=True, also={"input": "A"})
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L, lower triangular, with A = L L^H for positive definite A (..., n, n), or U with A = U^H U. One triangle of A is read.

    Raises LinAlgError for what is not positive definite or has a NaN in that triangle, ShapeError for what is not square, DTypeError for
    integers and 16-bit floats.
    """
    y, info = ops.cholesky(A, upper=bool(upper))
    raise_if_failed("cholesky", info, _FAILED)
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
    if L.array.size:
        last = L.ndim - 2
        zeros = ops.eq(ops.diagonal(L.detach(), offset=0, dim1=last, dim2=last + 1), 0)
        first = ops.add(ops.argmax(zeros, dim=last, keepdim=False), 1)
        info = ops.where(ops.any(zeros, dim=(last,), keepdim=False), first, 0)
        raise_if_failed("cholesky_inverse", info, "L is singular: element {0} of its diagonal, counted from 1, is zero")
    return cholesky_solve(identity(L, L.shape[-1]), L, upper)
