"""Functions that PyTorch 1.9 took away: they raise RuntimeError here as there, and name what took their place."""

from __future__ import annotations

from typing import Any, NoReturn

from tritensor.tensor.public_api.publish import function


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
