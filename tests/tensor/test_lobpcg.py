"""lobpcg: extreme eigenpairs by iteration are those of eigh, with their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import gradcheck, gradgradcheck


def symmetric(m: int, seed: int, dtype: tt.dtype = tt.float64) -> tt.Tensor:
    a = np.random.default_rng(seed).standard_normal((m, m))
    return tt.from_numpy(a + a.T).to(dtype)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("m", "k", "n"), [(9, 1, 1), (30, 3, 5), (60, 5, 5)])
def test_the_pairs_are_those_of_eigh(m: int, k: int, n: int, largest: bool) -> None:
    tt.manual_seed(0)
    a = symmetric(m, m)
    values, vectors = tt.lobpcg(a, k, n=n, largest=largest)
    expected = tt.linalg.eigvalsh(a)
    assert tt.allclose(values, expected.flip(0)[:k] if largest else expected[:k], rtol=1e-10)
    assert float((a @ vectors - vectors * values).abs().max()) < 1e-5
    assert tt.allclose(vectors.T @ vectors, tt.eye(k, dtype=tt.float64), atol=1e-12)


def test_a_pair_of_matrices_a_preconditioner_and_float32() -> None:
    tt.manual_seed(1)
    a, q = symmetric(24, 1), symmetric(24, 2)
    b = q @ q + tt.eye(24, dtype=tt.float64)
    values, vectors = tt.lobpcg(a, 2, b, largest=False)
    assert tt.allclose(values, tt.linalg.eigvalsh(reduced(a, b))[:2], rtol=1e-8)
    assert tt.allclose(vectors.T @ b @ vectors, tt.eye(2, dtype=tt.float64), atol=1e-10)
    p = a @ a + tt.eye(24, dtype=tt.float64)
    found = tt.lobpcg(p, 2, iK=tt.linalg.inv(p), largest=False, niter=30)[0]
    assert tt.allclose(found, tt.linalg.eigvalsh(p)[:2], rtol=1e-10)
    single = tt.lobpcg(a.float(), 1)[0]
    assert single.dtype is tt.float32
    assert tt.allclose(single.double(), tt.linalg.eigvalsh(a)[-1:], rtol=1e-5)


def reduced(a: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
    """L^-1 A L^-T, which has the eigenvalues of A x = e B x."""
    low = tt.linalg.inv(tt.linalg.cholesky(b))
    return low @ a @ low.T


def test_batches_and_guesses() -> None:
    tt.manual_seed(2)
    a = tt.stack([symmetric(12, 3), symmetric(12, 4)])
    values, vectors = tt.lobpcg(a, 2)
    assert (values.shape, vectors.shape) == ((2, 2), (2, 12, 2))
    assert tt.allclose(values, tt.linalg.eigvalsh(a).flip(-1)[:, :2], rtol=1e-10)
    true = tt.linalg.eigh(a[0]).eigenvectors[:, -1:]
    assert tt.allclose(tt.lobpcg(a[0], X=true, niter=0)[0], values[0, :1], rtol=1e-12)
    assert tt.lobpcg(a[0], X=tt.ones(12, 3, dtype=tt.float64) + symmetric(12, 5)[:, :3], k=2, niter=-1)[0].shape == (2,)


def test_gradients_of_both_orders() -> None:
    tt.manual_seed(3)
    a, q, x = symmetric(6, 6).requires_grad_(), symmetric(6, 7), tt.randn(6, 2, dtype=tt.float64)
    b = (q @ q + tt.eye(6, dtype=tt.float64)).requires_grad_()

    def values(a: tt.Tensor) -> tt.Tensor:
        return tt.lobpcg((a + a.T) / 2, 2, X=x, largest=False, tol=1e-12)[0]

    def squares(a: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
        return tt.lobpcg((a + a.T) / 2, 2, (b + b.T) / 2, X=x, tol=1e-12)[1] ** 2  # whatever their signs

    assert gradcheck(values, (a,))
    assert gradcheck(squares, (a, b))
    assert gradgradcheck(values, (a,))
