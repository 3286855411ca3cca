"""Linear systems and inverses: square, triangular, of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.matrices import (
    broadcast_batches,
    drop_column,
    is_vector,
    raise_if_failed,
    require_matrices,
    to_column,
    transpose_matrices,
)
from tritensor.tensor.functions.factorizations.results import InverseEx, SolveEx
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

_SINGULAR = "a matrix is singular: pivot {0}, counted from 1, is zero; use lstsq or pinv"


def _pair_systems(name: str, A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    """A and matrices B of A's rows (columns unless `left`), broadcast to one batch. Raises ShapeError where they do not fit."""
    require_matrices(name, B, "B")
    meets = B.shape[-2 if left else -1]
    if meets != A.shape[-1]:
        raise ShapeError(f"{name}: A {tuple(A.shape)}, B {tuple(B.shape)}: B has {meets} {'rows' if left else 'columns'}, A {A.shape[-1]}")
    return broadcast_batches(name, A, B)


def solve_systems(name: str, A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    """X with A X = B, or X A = B, and for each matrix the first zero pivot."""
    require_matrices(name, A, square=True)
    # Decided before B is checked as a matrix: a batch of vectors looks like one matrix.
    vector = is_vector(A, B)
    if vector and not left:
        raise ShapeError(f"{name}: A {tuple(A.shape)}, B {tuple(B.shape)}: a vector B with left=False; give a matrix of one row")
    if vector:
        B = to_column(B)
    A, B = _pair_systems(name, A, B, left)
    if not left:
        # X A = B is A^T X^T = B^T.
        x, info = ops.solve(transpose_matrices(A), transpose_matrices(B))
        return transpose_matrices(x), info
    x, info = ops.solve(A, B)
    return (drop_column(x) if vector else x), info


@function(namespace="linalg", out=True, also={"input": "A", "other": "B"})
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """(result, info): as solve, and for each matrix the first pivot that is zero, counted from 1, or 0; the result is NaN there."""
    found = return_type("linalg_solve_ex", SolveEx)(*solve_systems("solve_ex", A, B, bool(left)))
    if check_errors:
        raise_if_failed("solve_ex", found.info, _SINGULAR)
    return found


@function(namespace="linalg", out=True, also={"input": "A", "other": "B"})
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B, or X A = B unless `left`; A (..., n, n), B (..., n, k) or a vector for each matrix (..., n); batches broadcast.

    Raises LinAlgError where a matrix is singular, ShapeError, DTypeError for integers and 16-bit floats.

    >>> a = tt.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> tt.linalg.solve(a, tt.tensor([2.0, 4.0]))
    tensor([1., 1.])
    """
    x, info = solve_systems("solve", A, B, bool(left))
    raise_if_failed("solve", info, _SINGULAR)
    return x


def invert(name: str, A: Tensor) -> Tensor:
    """A^-1. Raises LinAlgError where there is none."""
    y, info = ops.inv(A)
    raise_if_failed(name, info, _SINGULAR)
    return y


@function(namespace="linalg", out=True, also={"input": "A"})
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseEx:
    """(inverse, info): as inv, and for each matrix the first pivot that is zero, counted from 1, or 0; the inverse is NaN there."""
    found = return_type("linalg_inv_ex", InverseEx)(*ops.inv(A))
    if check_errors:
        raise_if_failed("inv_ex", found.info, _SINGULAR)
    return found


@function(namespace="linalg", out=True, also={"input": "A"})
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices (..., n, n). Raises LinAlgError where there is none."""
    return invert("inv", A)


@function(out=True)
def inverse(x: Tensor) -> Tensor:
    """The inverse of square matrices, another name of linalg.inv. Raises LinAlgError where there is none."""
    return invert("inverse", x)


def solve_triangle(name: str, A: Tensor, B: Tensor, upper: bool, left: bool, unit: bool) -> Tensor:
    """X with T X = B, or X T = B, T a triangle of A; batches broadcast."""
    require_matrices(name, A, square=True)
    A, B = _pair_systems(name, A, B, left)
    if left:
        return ops.solve_triangular(A, B, upper=upper, unitriangular=unit)
    return transpose_matrices(ops.solve_triangular(transpose_matrices(A), transpose_matrices(B), upper=not upper, unitriangular=unit))


@function(namespace="linalg", out=True, also={"input": "A", "other": "B"})
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with T X = B, or X T = B unless `left`, T the upper or lower triangle of A, with ones on its diagonal if `unitriangular`.

    What lies outside of the triangle is not read; batches broadcast. A zero on the diagonal gives inf or NaN, as a division does.
    """
    return solve_triangle("solve_triangular", A, B, bool(upper), bool(left), bool(unitriangular))


@function(namespace="linalg", out=True, also={"input": "A"})
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A under tensordot over its first `ind` dims: A as a square matrix of those by the others. Raises LinAlgError, ShapeError."""
    if ind <= 0:
        raise ShapeError(f"tensorinv: ind is {ind}; it must be positive")
    shape = tuple(A.shape)
    # A tensor that maps tensors is a matrix of their flattened shapes.
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise ShapeError(f"tensorinv: A {shape} with ind {ind} is {rows} x {columns}; the two products of sizes must be equal")
    return reshape_to(invert("tensorinv", reshape_to(A, (rows, columns))), (*shape[ind:], *shape[:ind]))


@function(namespace="linalg", out=True, also={"input": "A", "other": "B"})
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first. Raises LinAlgError, ShapeError."""
    if dims is not None:
        # numpy's rule: named dims are the unknowns', which stand last.
        last = [normal_dim("tensorsolve", d, A.ndim) for d in ([dims] if isinstance(dims, int) else dims)]
        A = ops.permute(A, dims=(*[d for d in range(A.ndim) if d not in last], *last))
    shape: Any = tuple(A.shape[B.ndim :])
    size = math.prod(shape)
    if math.prod(A.shape[: B.ndim]) != size or B._array.size != size:
        raise ShapeError(
            f"tensorsolve: A {tuple(A.shape)}, B {tuple(B.shape)}: A's first {B.ndim} sizes and the others must have one product, B's"
        )
    x, info = ops.solve(reshape_to(A, (size, size)), reshape_to(B, (size, 1)))
    raise_if_failed("tensorsolve", info, _SINGULAR)
    return reshape_to(x, shape)
