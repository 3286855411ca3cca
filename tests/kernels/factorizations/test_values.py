"""Factorizations put together again, in every layout, of large matrices and of many small ones, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import ArgumentError, DTypeError, LinAlgError, ShapeError

L = tt.linalg
KINDS = ("float32", "float64", "complex64", "complex128")


def matrix(kind: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if kind.startswith("complex") else x).astype(kind)


def close(found: tt.Tensor, expected: np.ndarray, factor: float = 1.0) -> None:
    assert tuple(found.shape) == expected.shape
    size = max(float(np.abs(expected).max(initial=0.0)), 1.0)
    least = factor * (2e-5 if found.dtype in (tt.float32, tt.complex64) else 1e-11) * size
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=least)


def laid_out(x: np.ndarray) -> list[np.ndarray]:
    """The same numbers in C order, in columns, backwards, in every second cell, spread over a batch."""
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
    flipped = np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]
    return [x, np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2), flipped, wide[tuple(slice(None, None, 2) for _ in x.shape)]]


SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 3), (40, 6, 5), (70, 61), (60, 75), (2, 0, 3), (3, 0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_put_together_again(shape: tuple[int, ...], kind: str) -> None:
    for a in laid_out(matrix(kind, *shape)):
        x = tt.from_numpy(a)
        p, lower, upper = L.lu(x)
        close(p @ lower @ upper, a, 10)
        p, lower, upper = tt.lu_unpack(*L.lu_factor_ex(x)[:2])
        close(p @ lower @ upper, a, 10)
        q, r = L.qr(x)
        close(q @ r, a)
        close(L.householder_product(*tt.geqrf(x[..., : min(shape[-2:])])), tt.linalg.qr(x[..., : min(shape[-2:])]).Q.numpy())
        u, s, vh = L.svd(x, full_matrices=False)
        close((u * s.to(u.dtype)[..., None, :]) @ vh, a)
        close(L.svdvals(x), s.numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (40, 5, 5), (70, 70), (2, 0, 0)], ids=str)
def test_square_ones(shape: tuple[int, ...], kind: str) -> None:
    eye = np.broadcast_to(np.eye(shape[-1]), shape).astype(kind)
    for a in laid_out(matrix(kind, *shape) + 2 * shape[-1] ** 0.5 * eye):
        x, b = tt.from_numpy(a), tt.from_numpy(matrix(kind, *shape[:-1], 3))
        close(x @ L.inv(x), eye)
        close(x @ L.solve(x, b), b.numpy())
        close(x @ L.lu_solve(*L.lu_factor(x), b), b.numpy())
        close(x.mH @ L.lu_solve(*L.lu_factor(x), b, adjoint=True), b.numpy())
        close(L.lu_solve(*L.lu_factor(x), b.mH, left=False) @ x, b.mH.numpy())
        close(L.solve(x, b.mH, left=False) @ x, b.mH.numpy())
        for upper in (False, True):
            triangle = tt.triu(x) if upper else tt.tril(x)
            close(triangle @ L.solve_triangular(x, b, upper=upper), b.numpy())
            close(L.solve_triangular(x, b.mH, upper=upper, left=False) @ triangle, b.mH.numpy())
        values, vectors = L.eigh(x + x.mH)
        close((vectors * values.to(vectors.dtype)[..., None, :]) @ vectors.mH, (x + x.mH).numpy())
        factor = L.cholesky(x @ x.mH)
        close(factor @ factor.mH, (x @ x.mH).numpy())
        close((x @ x.mH) @ tt.cholesky_solve(b, factor), b.numpy(), 200)
        for h in (False, True):
            symmetric = x + (x.mH if h else x.mT)
            ld, pivots = L.ldl_factor(symmetric, hermitian=h)
            close(symmetric @ L.ldl_solve(ld, pivots, b, hermitian=h), b.numpy(), 100)


def test_pivots_of_ldl_are_of_one_row_and_of_two() -> None:
    _, pivots, info = L.ldl_factor_ex(tt.tensor([[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 5.0]]))
    assert (pivots.tolist(), info.item()) == ([-2, -2, 3], 0)
    assert L.ldl_factor_ex(tt.zeros(2, 2)).info.item() == 1


def test_the_exponential_of_large_and_of_small_matrices() -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    for angle in (1e-3, 0.1, 0.7, 2.0, 30.0):
        expected = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(L.matrix_exp(tt.from_numpy(angle * turn)).numpy(), expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(L.matrix_exp(tt.from_numpy((angle * turn).astype(np.float32))).numpy(), expected, rtol=0, atol=5e-6)
    both = L.matrix_exp(tt.from_numpy(np.stack([1e-8 * turn, 50 * turn, 0 * turn])))
    np.testing.assert_allclose(both[2].numpy(), np.eye(2))
    np.testing.assert_allclose(both[0].numpy(), np.eye(2) + 1e-8 * turn, rtol=1e-15, atol=1e-16)
    assert L.matrix_exp(tt.eye(2).half()).dtype is tt.float16


def test_least_squares() -> None:
    a, b = matrix("float64", 6, 3), matrix("float64", 6, 2)
    expected = np.linalg.lstsq(a, b)[0]
    for driver in ("gelsy", "gels", "gelsd", "gelss", None):
        found = L.lstsq(tt.from_numpy(a), tt.from_numpy(b), driver=driver)
        close(found.solution, expected)
        assert found.residuals.shape == ((0,) if driver in ("gelsy", None) else (2,))
        assert found.rank.tolist() == (3 if driver != "gels" else [])
        assert found.singular_values.shape == ((3,) if driver in ("gelsd", "gelss") else (0,))
    close(found.solution, expected)
    flat = a @ np.diag([1.0, 1.0, 0.0])
    found = L.lstsq(tt.from_numpy(flat), tt.from_numpy(b), driver="gelsd")
    close(found.solution, np.linalg.lstsq(flat, b)[0])
    assert (found.rank.item(), tuple(found.residuals.shape)) == (2, (0,))
    close(L.lstsq(tt.from_numpy(a), tt.from_numpy(b[:, 0].copy())).solution, expected[:, 0])
    wide = L.lstsq(tt.from_numpy(a.T.copy()), tt.from_numpy(b[:3]))
    close(wide.solution, np.linalg.lstsq(a.T, b[:3])[0])


def test_rank_and_condition() -> None:
    a = tt.diag(tt.tensor([4.0, 2.0, 1e-3, 0.0], dtype=tt.float64))
    assert [
        L.matrix_rank(a).item(),
        L.matrix_rank(a, rtol=1e-2).item(),
        L.matrix_rank(a, atol=3.0).item(),
        L.matrix_rank(a, 3.0).item(),
    ] == [3, 2, 1, 1]
    assert L.matrix_rank(a - 5 * tt.eye(4, dtype=tt.float64), hermitian=True).item() == 4
    assert L.matrix_rank(tt.stack([a, 2 * a]), atol=tt.tensor([1.0, 7.0])).tolist() == [2, 1]
    b = tt.diag(tt.tensor([4.0, 2.0]))
    assert [L.cond(b, p).item() for p in (None, 2, -2, 1, float("inf"))] == [2.0, 2.0, 0.5, 2.0, 2.0]
    assert L.cond(tt.ones(2, 2), 1).item() == float("inf")


def test_chains_are_multiplied_in_the_cheapest_order() -> None:
    from tritensor.tensor.functions.linear.vectors import find_best_order

    split = find_best_order([30, 35, 15, 5, 10, 20, 25])  # Cormen et al.: ((A1 (A2 A3)) ((A4 A5) A6))
    assert (split[0][5], split[0][2], split[3][5]) == (2, 0, 4)
    matrices = [matrix("float64", m, n) for m, n in ((3, 7), (7, 2), (2, 9), (9, 4))]
    expected = matrices[0] @ matrices[1] @ matrices[2] @ matrices[3]
    close(L.multi_dot([tt.from_numpy(m) for m in matrices]), expected)
    close(tt.chain_matmul(*[tt.from_numpy(m) for m in matrices]), expected)


def test_low_rank() -> None:
    a = matrix("float64", 30, 3) @ matrix("float64", 3, 20)
    for x in (a, a.T.copy(), a + 1j * a):
        tt.manual_seed(1)
        u, s, v = tt.svd_lowrank(tt.from_numpy(x), q=5)
        close((u * s.to(u.dtype)) @ v.mH, x, 10)
    tt.manual_seed(1)
    u, s, v = tt.pca_lowrank(tt.from_numpy(a), q=4)
    close((u * s) @ v.mH, a - a.mean(0), 10)


# ---------------------------------------------------------------- refusals

ONE, TWO = tt.eye(3), tt.zeros(2, 3)
REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: L.cholesky(TWO), ShapeError, r"^cholesky: A \(2, 3\) is 2 x 3; the matrices must be square"),
    (lambda: L.cholesky(ONE.half()), DTypeError, r"^cholesky: A is float16; 16-bit floats are not factored; cast it with \.float\(\)"),
    (lambda: L.inv(tt.ones(2, 2, dtype=tt.int64)), DTypeError, r"^inv: A is int64; inv takes float, complex types"),
    (lambda: L.svd(tt.ones(3)), ShapeError, r"^svd: A \(3,\) has 1 dimensions; give a matrix, or a batch of them"),
    (lambda: L.inv(tt.ones(2, 2)), LinAlgError, r"^inv: a matrix is singular: pivot 2, counted from 1, is zero; use lstsq or pinv"),
    (lambda: L.inv(tt.stack([ONE, 0 * ONE])), LinAlgError, r"^inv: matrix 1 of the batch: a matrix is singular: pivot 1"),
    (lambda: L.solve(tt.zeros(2, 2), tt.ones(2)), LinAlgError, r"^solve: a matrix is singular"),
    (lambda: tt.cholesky(tt.diag(tt.tensor([1.0, -1.0]))), LinAlgError, r"^cholesky: not positive definite: its leading minor of order 2"),
    (lambda: L.cholesky_ex(-ONE, check_errors=True), LinAlgError, r"^cholesky_ex: not positive definite: its leading minor of order 1"),
    (lambda: L.lu_factor(tt.zeros(2, 2)), LinAlgError, r"^lu_factor: U\[1, 1\], counted from 1, is zero"),
    (lambda: L.lu_factor(ONE, pivot=False), ArgumentError, r"^lu_factor: pivot=False"),
    (lambda: L.solve(ONE, tt.ones(2, 1)), ShapeError, r"^solve: A \(3, 3\), B \(2, 1\): B has 2 rows, A 3"),
    (lambda: L.solve(ONE, tt.ones(3, 1).double()), DTypeError, r"^solve: A is float32, B float64"),
    (
        lambda: L.solve_triangular(ONE, tt.ones(2, 1), upper=True),
        ShapeError,
        r"^solve_triangular: A \(3, 3\), B \(2, 1\): B has 2 rows, A 3",
    ),
    (lambda: L.qr(TWO, "raw"), ArgumentError, r"^qr: mode 'raw'; it is 'reduced', 'complete' or 'r'"),
    (lambda: L.eigh(ONE, "X"), ArgumentError, r"^eigh: UPLO is 'X'"),
    (lambda: L.svd(ONE, driver="gesvd"), ArgumentError, r"^svd: driver='gesvd'"),
    (lambda: L.lstsq(ONE, ONE, driver="qr"), ArgumentError, r"^lstsq: driver is 'qr'; it is one of 'gelsy', 'gels', 'gelsd', 'gelss'"),
    (lambda: L.lstsq(ONE, tt.ones(2, 2)), ShapeError, r"^lstsq: A \(3, 3\), B \(2, 2\): B must have A's 3 rows"),
    (lambda: L.matrix_norm(tt.ones(3)), ShapeError, r"^matrix_norm: A \(3,\) has 1 dimensions"),
    (lambda: L.matrix_norm(ONE, 3), ArgumentError, r"^matrix_norm: ord 3; it is"),
    (lambda: L.matrix_norm(ONE, dim=(0, 0)), ShapeError, r"^matrix_norm: dim \(0, 0\) names a dimension twice"),
    (lambda: L.vector_norm(tt.ones(0), float("inf")), ShapeError, r"^vector_norm: input \(0,\) has no element"),
    (lambda: L.vector_norm(tt.ones(3, dtype=tt.int64)), DTypeError, r"^vector_norm: input is int64"),
    (lambda: L.norm(tt.ones(2, 2, 2), 2), ShapeError, r"^norm: input \(2, 2, 2\) with ord 2 and no dim"),
    (lambda: L.multi_dot([ONE]), ShapeError, r"^multi_dot: 1 tensors; give two or more"),
    (lambda: L.multi_dot([TWO, TWO]), ShapeError, r"^multi_dot: matrices 0 \(2, 3\) and 1 \(2, 3\) cannot be multiplied"),
    (lambda: L.cross(TWO, tt.ones(3)), ShapeError, r"^cross: input \(2, 3\), other \(3,\): the numbers of dimensions differ"),
    (lambda: L.cross(tt.ones(2), tt.ones(2)), ShapeError, r"^cross: .*both must have size 3 along dim -1"),
    (lambda: L.vecdot(tt.ones(3, dtype=tt.int64), tt.ones(3, dtype=tt.int64)), DTypeError, r"^vecdot: input is int64"),
    (lambda: L.vander(tt.ones(3), N=1), ShapeError, r"^vander: N is 1; it must be 2 or more"),
    (lambda: L.tensorinv(tt.ones(2, 3), 1), ShapeError, r"^tensorinv: A \(2, 3\) with ind 1 is 2 x 3"),
    (lambda: L.matrix_power(ONE, 0.5), TypeError, r"^matrix_power: n is 0\.5; it must be an int"),
    (lambda: L.householder_product(TWO, tt.ones(2)), ShapeError, r"^householder_product: A \(2, 3\) has more columns than rows"),
    (
        lambda: tt.cholesky_inverse(tt.stack([ONE, tt.tril(ONE - 1)])),
        LinAlgError,
        r"^cholesky_inverse: matrix 1 of the batch: L is singular: element 1 of",
    ),
    *[
        (lambda f=f: getattr(L, f)(tt.tensor([[float("nan"), 1.0], [1.0, 2.0]])), LinAlgError, rf"^{f}: no convergence; A holds a NaN")
        for f in ("svd", "svdvals", "pinv", "eig", "eigvals")
    ],
    (lambda: tt.trace(tt.ones(3)), ShapeError, r"^trace: input \(3,\) has 1 dimensions"),
    (lambda: tt.pca_lowrank(ONE, q=4), ArgumentError, r"^pca_lowrank: q is 4 for A \(3, 3\)"),
    (lambda: tt.addmm(tt.ones(4, 2, 2), tt.ones(2, 2), tt.ones(2, 2)), ShapeError, r"^addmm: input \(4, 2, 2\) does not broadcast"),
    (
        lambda: tt.addr(tt.ones(2, 2, dtype=tt.int64), tt.ones(2, dtype=tt.int64), tt.ones(2, dtype=tt.int64), alpha=0.5),
        DTypeError,
        r"^addr: alpha is 0\.5",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=[message[1:20] for _, _, message in REFUSED])
def test_refused(case: tuple[Callable[[], object], type[Exception], str]) -> None:
    call, error, message = case
    with pytest.raises(error, match=message):
        call()


def test_what_failed_is_told_without_an_error() -> None:
    both = tt.stack([tt.eye(2), tt.zeros(2, 2)])
    assert L.inv_ex(both).info.tolist() == [0, 1]
    assert L.solve_ex(both, tt.ones(2, 2, 1)).info.tolist() == [0, 1]
    assert L.cholesky_ex(both).info.tolist() == [0, 1]
    assert L.lu_factor_ex(both).info.tolist() == [0, 1]
    assert L.inv_ex(both).inverse[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert isinstance(LinAlgError("x"), RuntimeError)
    assert isinstance(LinAlgError("x"), np.linalg.LinAlgError)


def test_results_have_pytorchs_names() -> None:
    x = tt.eye(2)
    assert L.svd(x)._fields == ("U", "S", "Vh")
    assert tt.svd(x)._fields == ("U", "S", "V")
    assert L.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert L.slogdet(x)._fields == ("sign", "logabsdet")
    assert L.lstsq(x, x)._fields == ("solution", "residuals", "rank", "singular_values")
    assert L.ldl_factor_ex(x)._fields == ("LD", "pivots", "info")
    out = tt.empty(0), tt.empty(0)
    assert L.qr(x, out=out).Q is out[0]


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_products_of_large_integers_are_exact(kind: str) -> None:
    rng = np.random.default_rng(3)
    limits = np.iinfo(kind)
    a, b = (rng.integers(limits.min, limits.max, (70, 90), dtype=kind, endpoint=True) for _ in range(2))
    with np.errstate(over="ignore"):
        expected = np.matmul(a, b.T)  # modulo the width
    assert (tt.from_numpy(a) @ tt.from_numpy(b.T)).numpy().tolist() == expected.tolist()


def test_integers_take_whole_numbers() -> None:
    m, v, b = tt.full((2, 2), 3), tt.full((2,), 2), tt.ones(2, 2, 2, dtype=tt.int64)
    assert tt.addmm(m, m, m, alpha=1.6, beta=1.5).tolist() == [[21, 21], [21, 21]]
    assert tt.addmv(v, m, v, alpha=1.6, beta=1.9).tolist() == [14, 14]
    assert tt.baddbmm(b, b, b, alpha=1.6, beta=1.9).dtype is tt.int64
    k = tt.tensor([True, False])
    assert tt.addr(tt.zeros(2, 2, dtype=tt.bool), k, k, beta=3, alpha=2).tolist() == [[True, False], [False, False]]
    x = tt.ones(1)
    assert x.addbmm_(tt.ones(2, 3, 3), tt.ones(2, 3, 3)) is x
    assert tuple(x.shape) == (3, 3)


def test_the_condition_of_singular_matrices_is_infinite_in_every_norm() -> None:
    both = tt.stack([tt.zeros(2, 2), tt.diag(tt.tensor([2.0, 1.0]))])
    for p, want in (("nuc", 4.5), ("fro", 2.5), (1, 2.0), (float("inf"), 2.0)):
        found = L.cond(both, p)
        assert found[0].item() == float("inf")
        assert found[1].item() == pytest.approx(want)


def test_a_pivot_that_is_nan_has_no_cholesky_factor() -> None:
    nan = float("nan")
    both = tt.tensor([[[4.0, nan], [2.0, 5.0]], [[1.0, 0.0], [nan, 1.0]], [[nan, 0.0], [0.0, 1.0]]])
    y, info = L.cholesky_ex(both)
    assert info.tolist() == [0, 2, 1]  # the upper triangle is not read
    assert y[0].tolist() == [[2.0, 0.0], [1.0, 2.0]]
    assert L.cholesky_ex(both, upper=True).info.tolist() == [2, 0, 1]
    with pytest.raises(tt.LinAlgError, match=r"^cholesky: .* its leading minor of order 2 is not"):
        L.cholesky(both)


def test_the_pseudo_inverse_of_a_hermitian_matrix_is_that_of_its_lower_triangle() -> None:
    x = tt.tensor([[2.0, 9.0], [1.0, 3.0]])
    close(L.pinv(x, hermitian=True) @ tt.tensor([[2.0, 1.0], [1.0, 3.0]]), np.eye(2), 10)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex128"])
def test_what_is_singular_but_for_roundings_is_solved(kind: str) -> None:
    """Of A - lambda I roundings often leave a last pivot of 0 (here as well), which PyTorch's LAPACK, with fused multiply-adds, does not see."""
    x = np.array([[0.1, 0.2], [0.3, 0.6]]).astype(kind)
    both = tt.tensor(np.stack([x, np.eye(2, dtype=kind)]))
    assert L.lu_factor_ex(both).info.tolist() == [2, 0]
    found = L.solve_ex(both, both)
    assert found.info.tolist() == L.inv_ex(both).info.tolist() == [0, 0]
    close(both @ found.result, both.numpy(), 1e6)
    assert bool(L.inv(both).isfinite().all())
    assert L.solve_ex(tt.tensor(x[[0, 0]]), tt.tensor(x)).info.item() == 2
