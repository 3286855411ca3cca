# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def cholesky(A: Tensor, *, upper: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """L, lower triangular, with A = L L^H for positive definite A (..., n, n), or U with A = U^H U. One triangle of A is read."""

def cholesky_ex(A: Tensor, *, upper: _builtins.bool = False, check_errors: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(L, info): the Cholesky factor, and for each matrix the order of the first leading minor that is not positive definite, 0 where all are."""

def cond(A: Tensor, p: _builtins.float | _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number |A| |A^-1| in the matrix norm p: None and 2 the ratio of the largest singular value to the smallest, -2 its inverse,"""

def cross(input: Tensor, other: Tensor, *, dim: _builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The vector product along dim, which has size 3; batches broadcast."""

def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinants of square matrices (..., n, n). Its gradient, the cofactors, exists for singular matrices too."""

def diagonal(A: Tensor, *, offset: _builtins.int = 0, dim1: _builtins.int = -2, dim2: _builtins.int = -1) -> Tensor:
    """The diagonal of two dimensions, the last two, as the last one; `offset` above (positive) or below the main one. A view."""

def eig(A: Tensor, *, out: Tensor | None = None) -> Any:
    """(eigenvalues, eigenvectors) of square matrices (..., n, n): complex, in LAPACK's order, vectors of length 1 in columns. On the CPU only."""

def eigh(A: Tensor, UPLO: _builtins.str = 'L', *, out: Tensor | None = None) -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices (..., n, n): real, from the smallest, and orthonormal in columns. One triangle is read."""

def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of square matrices: complex, in LAPACK's order. On the CPU only."""

def eigvalsh(A: Tensor, UPLO: _builtins.str = 'L', *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices, from the smallest. One triangle is read."""

def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of H_1 ... H_k, H_i = 1 - tau_i v_i v_i^H, v_i below the diagonal of A (..., m, n), k = tau's size at most n <= m."""

def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices (..., n, n). Raises LinAlgError where there is none."""

def inv_ex(A: Tensor, *, check_errors: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(inverse, info): as inv, and for each matrix the first pivot that is zero, counted from 1, or 0; the inverse is NaN there."""

def ldl_factor(A: Tensor, *, hermitian: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(LD, pivots) with A = P L D L^T P^T (L^H if `hermitian`), D of blocks of one and two rows, as LAPACK's sytrf lays them out. The lower"""

def ldl_factor_ex(A: Tensor, *, hermitian: _builtins.bool = False, check_errors: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(LD, pivots, info): as ldl_factor, and for each matrix the first zero on D's diagonal counted from 1, or 0."""

def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """X with A X = B, A given by what ldl_factor made of it; batches broadcast. A derivative raises NoDerivativeError."""

def lstsq(A: Tensor, B: Tensor, rcond: _builtins.float | None = None, *, driver: _builtins.str | None = None) -> Any:
    """(solution, residuals, rank, singular_values): X of least |X| among those with least |A X - B|; A (..., m, n), B (..., m, k) or (..., m)."""

def lu(A: Tensor, *, pivot: _builtins.bool = True, out: Tensor | None = None) -> Any:
    """(P, L, U) with A = P L U: P (m, m) a permutation, L (m, k) with ones on its diagonal, U (k, n), k the smaller of m and n."""

def lu_factor(A: Tensor, *, pivot: _builtins.bool = True, out: Tensor | None = None) -> Any:
    """(LU, pivots) with A = P L U, A (..., m, n): L below the diagonal of LU, its ones not kept, U on and above it; row i was exchanged"""

def lu_factor_ex(A: Tensor, *, pivot: _builtins.bool = True, check_errors: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(LU, pivots, info): as lu_factor, and for each matrix the first zero on U's diagonal counted from 1, or 0."""

def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: _builtins.bool = True, adjoint: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """X with A X = B (X A = B unless `left`; A^H for A if `adjoint`), A given by what lu_factor made of it; batches broadcast."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product with numpy's rules: (..., m, k) @ (..., k, n), batches broadcast, a 1-d operand is a row or a column."""

def matrix_exp(input: Tensor) -> Tensor:
    """The exponential 1 + x + x^2 / 2 + ... of square matrices (..., n, n), by scaling and squaring (Higham 2005)."""

def matrix_norm(A: Tensor, ord: _builtins.float | _builtins.str = 'fro', dim: Sequence[_builtins.int] = (-2, -1), keepdim: _builtins.bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """A norm of the matrices along two dims: "fro" the root of the sum of squares, "nuc" the sum of singular values, inf and -inf the largest and"""

def matrix_power(input: Tensor, n: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x to the power of an int: the identity for 0, powers of the inverse below, by repeated squaring. Raises LinAlgError for a singular x and n < 0."""

def matrix_rank(A: Tensor, tol: Any = None, hermitian: _builtins.bool = False, *, atol: Any = None, rtol: Any = None, out: Tensor | None = None) -> Tensor:
    """How many singular values are above max(atol, rtol * the largest), int64; of Hermitian matrices absolute eigenvalues."""

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices or more, in the order that takes the fewest multiplications; the first may be a row, the last a column, of one dim."""

def norm(input: Tensor, ord: _builtins.float | _builtins.str | None = None, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """A norm of vectors (dim is an int, or x has one dimension) or of matrices (dim is two, or x has two dimensions), by `ord`."""

def pinv(A: Tensor, rcond: Any = None, hermitian: _builtins.bool = False, *, atol: Any = None, rtol: Any = None, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse (..., n, m) of A (..., m, n): singular values at most max(atol, rtol * the largest) count as 0."""

def qr(A: Tensor, mode: _builtins.str = 'reduced', *, out: Tensor | None = None) -> Any:
    """(Q, R) with A = Q R, A (..., m, n), Q's columns orthonormal, R upper triangular."""

def slogdet(A: Tensor, *, out: Tensor | None = None) -> Any:
    """(sign, logabsdet) with det = sign e^logabsdet; of complex matrices the sign is a number of absolute value 1. Of a singular one 0 and -inf."""

def solve(A: Tensor, B: Tensor, *, left: _builtins.bool = True, out: Tensor | None = None) -> Tensor:
    """X with A X = B, or X A = B unless `left`; A (..., n, n), B (..., n, k) or a vector for each matrix (..., n); batches broadcast."""

def solve_ex(A: Tensor, B: Tensor, *, left: _builtins.bool = True, check_errors: _builtins.bool = False, out: Tensor | None = None) -> Any:
    """(result, info): as solve, and for each matrix the first pivot that is zero, counted from 1, or 0; the result is NaN there."""

def solve_triangular(A: Tensor, B: Tensor, *, upper: _builtins.bool, left: _builtins.bool = True, unitriangular: _builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """X with T X = B, or X T = B unless `left`, T the upper or lower triangle of A, with ones on its diagonal if `unitriangular`."""

def svd(A: Tensor, full_matrices: _builtins.bool = True, *, driver: _builtins.str | None = None, out: Tensor | None = None) -> Any:
    """(U, S, Vh) with A = U diag(S) Vh, A (..., m, n): singular values S (k,) from the largest, k the smaller of m and n."""

def svdvals(A: Tensor, *, driver: _builtins.str | None = None, out: Tensor | None = None) -> Tensor:
    """Singular values (..., k) from the largest."""

def tensorinv(A: Tensor, ind: _builtins.int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A under tensordot over its first `ind` dims: A as a square matrix of those by the others. Raises LinAlgError, ShapeError."""

def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[_builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first. Raises LinAlgError, ShapeError."""

def vander(input: Tensor, *, N: _builtins.int | None = None) -> Tensor:
    """Powers 0 to N - 1 (N: x's last size) of the elements of x (..., n) along a new last dim. int64 of integers."""

def vecdot(input: Tensor, y: Tensor, *, dim: _builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """sum of conj(x) y along dim; the other dims broadcast. Raises DTypeError for integers and for two types."""

def vector_norm(input: Tensor, ord: _builtins.float = 2, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _builtins.bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """(sum |x|^ord)^(1/ord) over dims, of x seen as vectors, for every number `ord`: 0 counts what is not zero, inf and -inf are the largest and smallest."""
