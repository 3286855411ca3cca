"""kl_divergence of multivariate normal distributions of low rank, against the dense ones of the same covariances and against numpy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tritensor as tt

D = tt.distributions
N = 4
# (batch of the mean, of the factor, of the diagonal; rank): of none, of all, and broadcast; a rank above the size
SHAPES = [((), (), (), 1), ((3,), (3,), (3,), 2), ((3,), (), (2, 1), 2), ((), (2, 3), (), 5)]


def drawn(shape: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], seed: int) -> tuple[tt.Tensor, ...]:
    """A mean, a factor and a diagonal, which take gradients."""
    rng = np.random.default_rng(seed)
    mean, factor, diagonal, rank = shape
    given = rng.normal(size=(*mean, N)), rng.normal(size=(*factor, N, rank)), rng.uniform(0.2, 3.0, (*diagonal, N))
    return tuple(tt.tensor(x, requires_grad=True) for x in given)


def dense(parameters: tuple[tt.Tensor, ...]) -> Any:
    mean, w, d = parameters
    return D.MultivariateNormal(mean, w @ w.mT + tt.diag_embed(d))


def low_rank(parameters: tuple[tt.Tensor, ...]) -> Any:
    return D.LowRankMultivariateNormal(*parameters)


def expected(p: tuple[tt.Tensor, ...], q: tuple[tt.Tensor, ...]) -> np.ndarray:
    """(log |S_q| - log |S_p| + tr(S_q^-1 S_p) + x^T S_q^-1 x - n) / 2, each matrix made and inverted whole."""
    (m, w, d), (k, v, e) = ([t.detach().numpy() for t in x] for x in (p, q))
    sp, sq = (a @ np.swapaxes(a, -1, -2) + b[..., None] * np.eye(N) for a, b in ((w, d), (v, e)))
    inverse, off = np.linalg.inv(sq), k - m
    trace = np.trace(inverse @ sp, axis1=-2, axis2=-1)
    return 0.5 * (np.linalg.slogdet(sq)[1] - np.linalg.slogdet(sp)[1] + trace + np.einsum("...i,...ij,...j", off, inverse, off) - N)


PAIRS = {"both": (low_rank, low_rank), "the first": (low_rank, dense), "the second": (dense, low_rank)}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shapes", list(itertools.product(SHAPES, SHAPES)), ids=str)
def test_value_and_gradients(pair: str, shapes: Any) -> None:
    make_p, make_q = PAIRS[pair]
    p, q = (drawn(shape, seed) for seed, shape in enumerate(shapes))
    found, plain = D.kl_divergence(make_p(p), make_q(q)), D.kl_divergence(dense(p), dense(q))
    assert found.shape == plain.shape == expected(p, q).shape
    np.testing.assert_allclose(found.detach().numpy(), expected(p, q), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(plain.detach().numpy(), expected(p, q), rtol=1e-10, atol=1e-12)
    ours, theirs = (tt.autograd.grad(x.sum(), (*p, *q)) for x in (found, plain))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)


def test_of_itself_it_is_nothing() -> None:
    p = drawn(SHAPES[1], 0)
    for make_p, make_q in itertools.product((low_rank, dense), repeat=2):
        assert D.kl_divergence(make_p(p), make_q(p)).abs().max().item() < 1e-13


def test_sizes_must_agree() -> None:
    p, q = low_rank(drawn(SHAPES[0], 0)), D.LowRankMultivariateNormal(tt.zeros(3), tt.ones(3, 1), tt.ones(3))
    with pytest.raises(tt.ShapeError, match=r"p has event_shape \(4,\), q \(3,\)"):
        D.kl_divergence(p, q)
