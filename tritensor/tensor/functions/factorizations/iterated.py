"""lobpcg: a few extreme eigenpairs of symmetric matrices by iteration, without the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import randn
from tritensor.tensor.functions.factorizations.matrices import broadcast_batches, require_matrices, transpose_matrices
from tritensor.tensor.functions.factorizations.solving import solve
from tritensor.tensor.functions.shaping.joining import cat, stack
from tritensor.tensor.public_api.publish import function

Product = Callable[[Tensor], Tensor]


def _orthonormalize(s: Tensor, by_b: Product) -> Tensor:
    """A basis of the columns of s (m, c) that is orthonormal in the product of B; columns that depend on others go (Stathopoulos and Wu 2002)."""
    for _ in range(2):  # the second time takes away what rounding has left
        gram = transpose_matrices(s) @ by_b(s)
        scale = gram.diagonal().clamp(min=float(np.finfo(s._array.dtype).tiny)).rsqrt()
        values, vectors = ops.eigh(gram * scale * scale.unsqueeze(1), upper=False)
        kept = values > values[-1] * (s.shape[-1] * 10 * float(np.finfo(s._array.dtype).eps))
        # eigh sorts ascending: the directions that are lost stand first.
        first = int((~kept).sum().item())
        s = (s * scale) @ (vectors[:, first:] * values[first:].rsqrt())
    return s


def _find_ritz_pairs(s: Tensor, by_a: Product, by_b: Product, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The n extreme eigenpairs of A and B in the space of s's columns."""
    basis = _orthonormalize(s, by_b)
    # Rounding makes it unsymmetric: eigh reads one triangle, so both are averaged first.
    small = transpose_matrices(basis) @ by_a(basis)
    values, vectors = ops.eigh((small + transpose_matrices(small)) * 0.5, upper=False)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[:n], basis @ vectors[:, :n]


def _iterate(
    a: Tensor, b: Tensor | None, ik: Tensor | None, x: Tensor, k: int, niter: int, tol: float, largest: bool
) -> tuple[Tensor, Tensor]:
    """Eigenpairs of one matrix: steps in the space of the guesses, their residuals and the last steps (Knyazev 2001)."""

    def by_a(y: Tensor) -> Tensor:
        return a @ y

    def by_b(y: Tensor) -> Tensor:
        return y if b is None else b @ y

    n = x.shape[-1]
    length = x.norm()
    norms = (by_a(x).norm() / length, by_b(x).norm() / length)
    values, x = _find_ritz_pairs(x, by_a, by_b, n, largest)
    step: Tensor | None = None
    done = 0
    while niter < 0 or done < niter:
        residual = by_a(x) - by_b(x) * values
        off = residual.norm(dim=0) / (x.norm(dim=0) * (norms[0] + values.abs() * norms[1]))
        # The guard vectors beyond k need not converge.
        if bool((off[:k] <= tol).all()):
            break
        found = [x, residual if ik is None else ik @ residual, *([] if step is None else [step])]
        values, new = _find_ritz_pairs(cat(found, 1), by_a, by_b, n, largest)
        step, x = new - x @ (transpose_matrices(x) @ by_b(new)), new
        done += 1
    return values[:k], x[:, :k]


def _refine_pairs(a: Tensor, b: Tensor | None, values: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenpairs as functions of A and B: Newton's steps from where they are, on A x = e B x, x' B x = 1. What one step leaves out is of second order in
    a change of the matrices, what two leave out of fourth."""
    m, k = a.shape[-1], values.shape[-1]
    a = (a + transpose_matrices(a)) * 0.5
    x = transpose_matrices(x)  # (k, m)
    zero = ops.full(shape=(k, 1, 1), value=0, dtype=a._array.dtype, device=a.device)
    for _ in range(2):
        # Newton's step is differentiable where the iteration is not: it does not know how it came here.
        bx = x if b is None else x @ transpose_matrices(b)
        shifted = a - values.reshape(k, 1, 1) * (ops.eye(rows=m, columns=m, dtype=a._array.dtype, device=a.device) if b is None else b)
        side = -bx.unsqueeze(2)
        border = cat([cat([shifted, side], 2), cat([transpose_matrices(side), zero], 2)], 1)  # (k, m + 1, m + 1)
        wrong = cat([x @ transpose_matrices(a) - values.unsqueeze(1) * bx, (1 - (x * bx).sum(1, keepdim=True)) * 0.5], 1)
        change = solve(border, -wrong)
        x, values = x + change[:, :m], values + change[:, m]
    return values, transpose_matrices(x)


@function(method=False)
def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None, iK: Tensor | None = None,
    niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None, tracker: Any = None,
    ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(E, X): the k largest (or smallest) eigenvalues of symmetric matrices A (..., m, m), E (..., k), and their vectors, the columns of X (..., m, k).

    With B, positive definite, the pairs of A x = e B x, with x' B x = 1. Differentiable, to any order, where the eigenvalues are single; a gradient
    solves k systems of m + 1 rows.

    Args:
        k: pairs that are wanted; 1, or as many as X has columns.
        X: guesses (..., m, n) to begin with; random ones of `n` columns, k where n is not given.
        iK: a preconditioner (m, m), an approximation of the inverse of A.
        niter: the most steps, 1000 where not given; -1 for as many as it takes.
        tol: how small the residuals must be, relative to A's size; the root of the type's precision where not given.
        largest: the largest ones (where not given), or the smallest.
        method: "ortho" or "basic": both orthonormalise by the singular values of the basis here, as the parameters in ortho_* are left unread.

    Raises ValueError where m < 3 n.
    """
    require_matrices("lobpcg", A, square=True)
    if A.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"lobpcg: A is {A.dtype.name}; it takes float32 and float64, cast it with .to(float64)")
    if method not in (None, "ortho", "basic"):
        raise ArgumentError(f"lobpcg: method {method!r}; it is 'ortho' or 'basic'")
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not called here; leave it out, and use niter= to look at what a few steps give")
    if B is not None:
        A, B = broadcast_batches("lobpcg", A, B, ("A", "B"))
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else int(k)
    n = (k if X is None else X.shape[-1]) if n is None else int(n)
    if m < 3 * n or k < 1 or k > n:
        raise ArgumentError(
            f"lobpcg: A {tuple(A.shape)} with k={k}, n={n}: it needs 1 <= k <= n and at least 3 n rows; use linalg.eigh for small A"
        )
    if X is not None and tuple(X.shape) != (*A.shape[:-1], n):
        raise ShapeError(f"lobpcg: X {tuple(X.shape)} for A {tuple(A.shape)} and n={n}; give {(*A.shape[:-1], n)}")
    if iK is not None and tuple(iK.shape) != (m, m):
        raise ShapeError(f"lobpcg: iK {tuple(iK.shape)} for A {tuple(A.shape)}; give {(m, m)}, which all matrices share")
    steps = 1000 if niter is None else int(niter)
    small = float(np.finfo(A._array.dtype).eps) ** 0.5 if tol is None else float(tol)
    up = True if largest is None else bool(largest)
    guess = randn(*A.shape[:-1], n, dtype=A.dtype, device=A.device) if X is None else X
    found = []
    for place in np.ndindex(*A.shape[:-2]):
        a, b = A[place], None if B is None else B[place]
        with no_grad():
            pair = _iterate(a, b, iK, guess[place], k, steps, small, up)
        # Without a gradient to ask for, the refinement would cost k solves for nothing.
        found.append(_refine_pairs(a, b, *pair) if is_followed(A) or (B is not None and is_followed(B)) else pair)
    if A.ndim == 2:
        return found[0]
    values, vectors = (stack([pair[i] for pair in found]) for i in (0, 1))
    return values.reshape(*A.shape[:-2], k), vectors.reshape(*A.shape[:-1], k)
