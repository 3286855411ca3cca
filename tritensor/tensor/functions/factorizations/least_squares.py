"""Pseudo-inverses, and least squares by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import broadcast, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.matrices import (
    adjoint,
    drop_column,
    expand_batch,
    identity,
    number_like,
    real_type,
    require_inexact,
    require_matrices,
    to_column,
)
from tritensor.tensor.functions.factorizations.results import LeastSquares
from tritensor.tensor.functions.factorizations.spectra import parse_tolerances
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type


def pseudo_inverse(name: str, A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    """A^+ over singular values above max(atol, rtol * the largest)."""
    require_matrices(name, A, square=hermitian)
    require_inexact(name, A)
    atol, rtol, batch = parse_tolerances(name, A, atol, rtol)
    return ops.pinv(expand_batch(A, batch), atol.detach(), rtol.detach(), hermitian=hermitian)


@function(namespace="linalg", out=True, also={"input": "A"})
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The pseudo-inverse (..., n, m) of A (..., m, n): singular values at most max(atol, rtol * the largest) count as 0.

    rtol is eps times the larger size where neither is given, 0 where atol is; both may be tensors, a number for each matrix. `rcond` is another name
    of rtol. hermitian: by the eigenvalues of A's lower triangle. The gradient is that at constant rank (Golub and Pereyra 1973).
    """
    return pseudo_inverse("pinv", A, atol, rtol if rcond is None else rcond, bool(hermitian))


@function
def pinverse(x: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of matrices; singular values at most rcond times the largest count as 0."""
    return pseudo_inverse("pinverse", x, 0.0, rcond, False)


_DRIVERS = ("gelsy", "gels", "gelsd", "gelss")


@function(namespace="linalg", also={"input": "A", "b": "B"})
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """(solution, residuals, rank, singular_values): X of least |X| among those with least |A X - B|; A (..., m, n), B (..., m, k) or (..., m).

    Singular values at most rcond (eps times the larger size) times the largest count as 0. "gelsy" and "gels" compute by QR where the rank is surely
    full, else, as the others, by singular values;
    `driver` says what is returned, as LAPACK's do: "gelsy" (the default) and "gels" no singular values, "gels" no rank.
    residuals: sums of squares of A X - B, of more rows than columns at full rank, else empty.
    """
    require_matrices("lstsq", A)
    require_inexact("lstsq", A)
    if driver is not None and driver not in _DRIVERS:
        raise ArgumentError(f"lstsq: driver is {driver!r}; it is one of {', '.join(map(repr, _DRIVERS))}")
    if A._array.dtype != B._array.dtype:
        raise DTypeError(f"lstsq: A is {A.dtype.name}, B {B.dtype.name}; cast one so that both are the same")
    if B.ndim < 1:
        raise ShapeError("lstsq: B has no dimensions; give a vector or a matrix")
    driver = driver or "gelsy"
    # PyTorch's rule: a B of A's shape without its last size is a vector for each matrix.
    vector = A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape)
    b = to_column(B) if vector else B
    require_matrices("lstsq", b, "B")
    m, n = A.shape[-2:]
    if b.shape[-2] != m:
        raise ShapeError(f"lstsq: A {tuple(A.shape)}, B {tuple(B.shape)}: B must have A's {m} rows")
    batch = broadcast("lstsq", tuple(A.shape[:-2]), tuple(b.shape[:-2]), labels=("A's batch", "B's batch"))
    alone, A, b = A, expand_batch(A, batch), expand_batch(b, batch)
    ratio = float(np.finfo(real_type(A)).eps) * max(m, n) if rcond is None else rcond
    x = _solve_full_rank(A, b, ratio) if driver in ("gelsy", "gels") and 0 not in A.shape else None
    if x is not None:
        # QR has no singular values; those drivers return none.
        values = _make_empty(A, real_type(A))
        rank = ops.full(shape=tuple(alone.shape[:-2]), value=min(m, n), dtype=np.dtype(np.int64), device=A.device)
    else:
        x = ops.matmul(ops.pinv(A, number_like(0.0, A), number_like(ratio, A), hermitian=False), b)
        values = ops.svdvals(alone.detach())
        rank = _count_ranks(values, ratio)
    residuals = _sum_residuals(A, b, x, rank, driver)
    return return_type("linalg_lstsq", LeastSquares)(
        drop_column(x) if vector else x,
        residuals,
        rank if driver != "gels" else _make_empty(A, np.dtype(np.int64)),
        values if driver in ("gelsd", "gelss") else _make_empty(A, real_type(A)),
    )


def _solve_full_rank(A: Tensor, b: Tensor, ratio: float) -> Tensor | None:
    """R^-1 Q^H b, or Q R^-H b of a wide A^H = Q R; None where |R| |R^-1| in Frobenius' norm leaves open whether a singular value is small."""
    m, n = A.shape[-2:]
    q, r = ops.qr(A if m >= n else adjoint(A), mode="reduced")
    bare = r.detach()
    both = ops.abs(bare), ops.abs(ops.solve_triangular(bare, expand_batch(identity(bare, min(m, n)), tuple(r.shape[:-2])), upper=True))
    sums = [ops.sum(ops.mul(y, y), dim=(y.ndim - 2, y.ndim - 1), keepdim=False) for y in both]
    sure = ops.lt(ops.sqrt(ops.mul(*sums)), 1 / max(ratio, 1e-300))
    # The product of norms bounds the condition number from above: where it is too large, SVD decides.
    if not bool(ops.all(sure, dim=tuple(range(sure.ndim)), keepdim=False)):
        return None
    if m >= n:
        return ops.solve_triangular(r, ops.matmul(adjoint(q), b), upper=True)
    return ops.matmul(q, ops.solve_triangular(adjoint(r), b, upper=False))


def _make_empty(x: Tensor, dtype: np.dtype) -> Tensor:
    return ops.full(shape=(0,), value=0, dtype=dtype, device=x.device)


def _count_ranks(values: Tensor, ratio: float) -> Tensor:
    # The largest of no singular values does not exist.
    if 0 in values.shape:
        return ops.full(shape=tuple(values.shape[:-1]), value=0, dtype=np.dtype(np.int64), device=values.device)
    least = ops.mul(ops.amax(values, dim=(values.ndim - 1,), keepdim=True), ratio)
    return ops.sum(ops.gt(values, least), dim=(values.ndim - 1,), keepdim=False)


def _sum_residuals(A: Tensor, b: Tensor, x: Tensor, rank: Tensor, driver: str) -> Tensor:
    m, n = A.shape[-2:]
    if m <= n or driver == "gelsy" or (driver != "gels" and not bool(ops.all(ops.eq(rank, n), dim=tuple(range(rank.ndim)), keepdim=False))):
        return ops.abs(reshape_to(x, (x._array.size,))[:0])  # in the graph, as it would be with elements
    off = ops.abs(ops.sub(ops.matmul(A, x), b))
    return ops.sum(ops.mul(off, off), dim=(off.ndim - 2,), keepdim=False)
