"""Named tuples of factorizations, with PyTorch's names of their parts."""

from __future__ import annotations

from typing import NamedTuple

from tritensor.tensor.core import Tensor


class SVD(NamedTuple):
    """U, S, Vh of A = U diag(S) Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class OldSVD(NamedTuple):
    """U, S, V of A = U diag(S) V^H, as torch.svd gives them."""

    U: Tensor
    S: Tensor
    V: Tensor


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """Q, R of A = Q R."""

    Q: Tensor
    R: Tensor


class PLU(NamedTuple):
    """P, L, U of A = P L U."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """L and U in one matrix, and the exchanges of rows."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """The same and where U is singular."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LDLFactor(NamedTuple):
    """L and D in one matrix, and the exchanges of rows."""

    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    """The same and where D is singular."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


class CholeskyEx(NamedTuple):
    """The factor, and the order of the first minor that is not positive definite."""

    L: Tensor
    info: Tensor


class InverseEx(NamedTuple):
    """The inverse, and where a pivot is zero."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """The solution, and where a pivot is zero."""

    result: Tensor
    info: Tensor


class SignLog(NamedTuple):
    """sign and logabsdet of det A = sign e^logabsdet."""

    sign: Tensor
    logabsdet: Tensor


class LeastSquares(NamedTuple):
    """What lstsq gives."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class TriangularSolve(NamedTuple):
    """What triangular_solve gives."""

    solution: Tensor
    cloned_coefficient: Tensor


class Reflectors(NamedTuple):
    """What geqrf gives: R with reflectors below it, and their factors."""

    a: Tensor
    tau: Tensor
