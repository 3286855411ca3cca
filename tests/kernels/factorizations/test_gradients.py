"""Gradients of factorizations where single elements have none to be held to: of Hermitian matrices, and of vectors up to a sign or phase."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.ground.errors import GradError

L = tt.linalg
rng = np.random.default_rng(11)


def matrix(*shape: int, kind: str = "float64") -> tt.Tensor:
    x = rng.standard_normal(shape)
    return tt.from_numpy(x + 1j * rng.standard_normal(shape) if kind == "complex128" else x).requires_grad_()


def hermitian(x: tt.Tensor) -> tt.Tensor:
    return x + x.mH


def positive(x: tt.Tensor) -> tt.Tensor:
    return x @ x.mH + tt.eye(x.shape[-1], dtype=x.dtype)


def whole(u: tt.Tensor, s: tt.Tensor, v: tt.Tensor) -> tt.Tensor:
    """What of a singular value decomposition does not depend on phases: U diag(exp -s) V^H."""
    return (u * (-s).exp().to(u.dtype)[..., None, :]) @ v


def eigen(values: tt.Tensor, vectors: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
    return values, vectors.abs()


SQUARE: dict[str, Callable[[tt.Tensor], object]] = {
    "cholesky": lambda x: L.cholesky(positive(x)),
    "cholesky upper": lambda x: L.cholesky(positive(x), upper=True),
    "cholesky_ex": lambda x: L.cholesky_ex(positive(x)).L,
    "cholesky_solve": lambda x: tt.cholesky_solve(x, tt.tril(x) + 3 * tt.eye(x.shape[-1], dtype=x.dtype)),
    "cholesky_solve upper": lambda x: tt.cholesky_solve(x, tt.triu(x) + 3 * tt.eye(x.shape[-1], dtype=x.dtype), upper=True),
    "eigh": lambda x: eigen(*L.eigh(hermitian(x))),
    "eigh upper": lambda x: eigen(*L.eigh(hermitian(x), "U")),
    "eigvalsh": lambda x: L.eigvalsh(hermitian(x)),
    "svd": lambda x: whole(*L.svd(x)),
    "svd parts": lambda x: [p.abs() for p in L.svd(x)],
    "old svd": lambda x: (lambda u, s, v: whole(u, s, v.mH))(*tt.svd(x)),
    "eig": lambda x: [p.abs() for p in L.eig(x)],
    "eigvals": lambda x: (L.eigvals(x) ** 2).sum(-1),
    "pinv hermitian": lambda x: L.pinv(hermitian(x), hermitian=True),
    "lu": lambda x: L.lu(x)[1:],
    "lu_solve": lambda x: L.lu_solve(*L.lu_factor(x), x.mH),
    "lu_solve adjoint": lambda x: L.lu_solve(*L.lu_factor(x), x, left=False, adjoint=True),
    "qr": lambda x: tuple(L.qr(x)),
    "slogdet": lambda x: tuple(L.slogdet(x)),
    "logdet": lambda x: tt.logdet(positive(x)).real,
    "matrix_exp": lambda x: L.matrix_exp(x),
    "matrix_power": lambda x: (L.matrix_power(x, 3), L.matrix_power(x, -2)),
    "cond": lambda x: (L.cond(x), L.cond(x, "fro"), L.cond(x, 1), L.cond(x, -2)),
    "norms": lambda x: [L.matrix_norm(x, p) for p in ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))],
    "vector norms": lambda x: [L.vector_norm(x, p, dim=-1) for p in (0.5, 1, 2, 3, float("inf"), -float("inf"))],
    "multi_dot": lambda x: L.multi_dot([x[:2], x, x[:, 0]]),
    "vander": lambda x: L.vander(x, N=5),
    "tensorsolve": lambda x: L.tensorsolve(x, x[0]),
}


@pytest.mark.crossed
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("name", SQUARE)
def test_square(name: str, kind: str) -> None:
    x = matrix(3, 3, kind=kind)
    assert gradcheck(SQUARE[name], x)
    assert gradgradcheck(SQUARE[name], x, rtol=2e-3)


OBLONG: dict[str, Callable[[tt.Tensor], object]] = {
    "svd": lambda x: whole(*L.svd(x, full_matrices=False)),
    "svd parts": lambda x: [p.abs() for p in L.svd(x, full_matrices=False)],
    "svdvals": lambda x: L.svdvals(x),
    "pinv": lambda x: L.pinv(x),
    "qr": lambda x: tuple(L.qr(x)),
    "lu": lambda x: L.lu(x)[1:],
    "lstsq": lambda x: L.lstsq(x, x[:, :1]).solution,
}


@pytest.mark.crossed
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)], ids=str)
@pytest.mark.parametrize("name", OBLONG)
def test_oblong(name: str, shape: tuple[int, int], kind: str) -> None:
    x = matrix(*shape, kind=kind)
    assert gradcheck(OBLONG[name], x)
    assert gradgradcheck(OBLONG[name], x, rtol=2e-3)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_reflectors(kind: str) -> None:
    a, tau, c = matrix(4, 3, kind=kind), matrix(2, kind=kind), matrix(4, 2, kind=kind)
    assert gradcheck(lambda a, tau: L.householder_product(a, tau), (a, tau))
    assert gradcheck(lambda a, tau, c: (tt.ormqr(a, tau, c), tt.ormqr(a, tau, c.mT, left=False, transpose=True)), (a, tau, c))


def test_the_gradient_of_a_pseudo_inverse_keeps_the_rank() -> None:
    thin = matrix(4, 2)
    assert gradcheck(lambda x: L.pinv(x @ x.mT, rtol=1e-10), thin)


@pytest.mark.parametrize(
    "a", [np.zeros((2, 2)), np.ones((3, 3)), np.diag([2.0, 3.0, 0.0]), np.diag([2.0, 0.0, 0.0, 1.0])], ids=["0", "1", "2", "3"]
)
def test_the_determinant_of_singular_matrices_has_a_gradient(a: np.ndarray) -> None:
    assert gradcheck(tt.det, tt.from_numpy(a).requires_grad_())


def test_what_depends_on_a_phase_has_no_gradient() -> None:
    x = matrix(3, 3, kind="complex128")
    for loss in (L.svd(x).U.real.sum(), L.eigh(hermitian(x)).eigenvectors.real.sum(), L.eig(x).eigenvectors.real.sum()):
        with pytest.raises(GradError, match=r"^(svd|eigh|eig): the loss depends on the phase of complex"):
            loss.backward()


def test_modes_of_qr_without_a_gradient() -> None:
    x = matrix(4, 2)
    with pytest.raises(GradError, match="mode 'complete' has no gradient where there are more rows than columns"):
        L.qr(x, "complete").R.sum().backward()
    with pytest.raises(GradError, match="mode 'r' has no gradient"):
        L.qr(x, "r").R.sum().backward()


def test_columns_beyond_the_singular_values_have_no_gradient() -> None:
    x = matrix(4, 2)
    full, reduced = L.svd(x), L.svd(x, full_matrices=False)
    (one,) = tt.autograd.grad((full.U[:, :2] ** 2 * full.S).sum() + full.U[:, 2:].sum(), [x])
    (other,) = tt.autograd.grad((reduced.U**2 * reduced.S).sum(), [x])
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-10)
