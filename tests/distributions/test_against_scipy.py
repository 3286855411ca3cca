"""Densities, distribution functions, quantiles, moments and entropies against scipy's, and draws against both by tests of fit with fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import tritensor as tt

D = tt.distributions
# (ours, the parameters, scipy's of them)
CONTINUOUS: list[tuple[str, tuple[float, ...], Any]] = [
    ("Beta", (0.5, 2.0), stats.beta(0.5, 2.0)), ("Beta", (5.0, 2.5), stats.beta(5.0, 2.5)), ("Cauchy", (1.0, 2.0), stats.cauchy(1, 2)),
    ("Chi2", (3.0,), stats.chi2(3)), ("Exponential", (2.0,), stats.expon(scale=0.5)), ("FisherSnedecor", (3.0, 9.0), stats.f(3, 9)),
    ("Gamma", (0.3, 2.0), stats.gamma(0.3, scale=0.5)), ("Gamma", (300.0, 2.0), stats.gamma(300, scale=0.5)),
    ("GeneralizedPareto", (0.5, 1.5, 0.3), stats.genpareto(0.3, 0.5, 1.5)), ("GeneralizedPareto", (0.0, 2.0, -0.4), stats.genpareto(-0.4, 0.0, 2.0)),
    ("GeneralizedPareto", (0.0, 2.0, 0.0), stats.expon(scale=2.0)), ("Gumbel", (1.0, 2.0), stats.gumbel_r(1, 2)),
    ("HalfCauchy", (2.0,), stats.halfcauchy(scale=2)), ("HalfNormal", (2.0,), stats.halfnorm(scale=2)), ("InverseGamma", (3.0, 2.0), stats.invgamma(3, scale=2)),
    ("Laplace", (1.0, 2.0), stats.laplace(1, 2)), ("LogNormal", (1.0, 0.5), stats.lognorm(0.5, scale=np.e)), ("Normal", (1.0, 2.0), stats.norm(1, 2)),
    ("Pareto", (2.0, 3.5), stats.pareto(3.5, scale=2)), ("StudentT", (3.0, 1.0, 2.0), stats.t(3, 1, 2)), ("Uniform", (1.0, 3.0), stats.uniform(1, 2)),
    ("Weibull", (2.0, 1.5), stats.weibull_min(1.5, scale=2)),
]  # fmt: skip
DISCRETE: list[tuple[str, tuple[float, ...], Any]] = [
    ("Bernoulli", (0.3,), stats.bernoulli(0.3)), ("Binomial", (7.0, 0.3), stats.binom(7, 0.3)), ("Geometric", (0.3,), stats.geom(0.3, -1)),
    ("NegativeBinomial", (3.5, 0.4), stats.nbinom(3.5, 0.6)), ("Poisson", (4.0,), stats.poisson(4)),
]  # fmt: skip
QUANTILES = np.array([1e-6, 0.01, 0.2, 0.5, 0.9, 0.999])


def ours(name: str, parameters: tuple[float, ...]) -> Any:
    return getattr(D, name)(*(tt.tensor(p, dtype=tt.float64) for p in parameters))


def asked(d: Any, what: str, *given: np.ndarray) -> Any:
    """What a method or property gives as numbers; None where the distribution has none."""
    try:
        found = getattr(d, what)
        return (found(*(tt.tensor(g) for g in given)) if callable(found) else found).numpy()
    except NotImplementedError:
        return None


def close(found: Any, expected: Any) -> None:
    if found is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "parameters", "theirs"), CONTINUOUS, ids=lambda v: v if isinstance(v, str) else None)
def test_continuous(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    d, x = ours(name, parameters), theirs.ppf(QUANTILES)
    close(d.log_prob(tt.tensor(x)).numpy(), theirs.logpdf(x))
    close(asked(d, "cdf", x), QUANTILES)
    close(asked(d, "icdf", QUANTILES), x)
    mean, variance = theirs.stats(moments="mv")
    if "Cauchy" not in name:  # whose variance is infinite in PyTorch and here, NaN in scipy
        close(d.mean.numpy(), mean)
        close(d.variance.numpy(), variance)
    if name != "FisherSnedecor":  # of which scipy integrates the entropy
        close(asked(d, "entropy"), theirs.entropy())


@pytest.mark.parametrize(("name", "parameters", "theirs"), DISCRETE, ids=lambda v: v if isinstance(v, str) else None)
def test_discrete(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    d, k = ours(name, parameters), np.arange(2.0 if name == "Bernoulli" else 7.0)
    close(d.log_prob(tt.tensor(k)).numpy(), theirs.logpmf(k))
    close(d.mean.numpy(), theirs.mean())
    close(d.variance.numpy(), theirs.var())
    close(asked(d, "entropy") if name != "Poisson" else None, theirs.entropy())


def test_vectors_and_matrices() -> None:
    a, matrix = np.array([0.7, 2.0, 3.5]), np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
    mean, x = np.array([0.5, -1.0, 2.0]), np.array([0.2, 0.3, 0.5])
    close(D.Dirichlet(tt.tensor(a)).log_prob(tt.tensor(x)).numpy(), stats.dirichlet(a).logpdf(x))
    close(D.Dirichlet(tt.tensor(a)).entropy().numpy(), stats.dirichlet(a).entropy())
    normal = stats.multivariate_normal(mean, matrix)
    for d in (
        D.MultivariateNormal(tt.tensor(mean), tt.tensor(matrix)),
        D.MultivariateNormal(tt.tensor(mean), precision_matrix=tt.tensor(np.linalg.inv(matrix))),
    ):
        close(d.log_prob(tt.tensor(x)).numpy(), normal.logpdf(x))
        close(d.entropy().numpy(), normal.entropy())
    w, diagonal = np.array([[1.0], [0.5], [-0.3]]), np.array([0.5, 0.2, 1.0])
    low = D.LowRankMultivariateNormal(tt.tensor(mean), tt.tensor(w), tt.tensor(diagonal))
    close(low.log_prob(tt.tensor(x)).numpy(), stats.multivariate_normal(mean, w @ w.T + np.diag(diagonal)).logpdf(x))
    wishart = D.Wishart(tt.tensor(4.5, dtype=tt.float64), tt.tensor(matrix))
    close(wishart.log_prob(tt.tensor(2 * matrix)).numpy(), stats.wishart(4.5, matrix).logpdf(2 * matrix))
    close(wishart.entropy().numpy(), stats.wishart(4.5, matrix).entropy())
    p, counts = np.array([0.2, 0.5, 0.3]), np.array([1.0, 3.0, 0.0])
    close(D.Multinomial(4, tt.tensor(p)).log_prob(tt.tensor(counts)).numpy(), stats.multinomial(4, p).logpmf(counts))
    close(D.Multinomial(4, tt.tensor(p)).entropy().numpy(), stats.multinomial(4, p).entropy())
    angles = np.array([-3.0, 0.1, 2.0])
    for k in (1e-3, 2.0, 200.0):
        close(
            D.VonMises(tt.tensor(0.5, dtype=tt.float64), tt.tensor(k, dtype=tt.float64)).log_prob(tt.tensor(angles)).numpy(),
            stats.vonmises(k, 0.5).logpdf(angles),
        )


# -- draws
N, LEAST = 4000, 1e-3  # draws, and the least probability of a worse fit: of some 40 fixed seeds


@pytest.mark.parametrize(("name", "parameters", "theirs"), CONTINUOUS, ids=lambda v: v if isinstance(v, str) else None)
def test_draws_fit_the_distribution_function(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    tt.manual_seed(20)
    x = ours(name, parameters).sample((N,)).numpy()
    assert stats.kstest(x, theirs.cdf).pvalue > LEAST


@pytest.mark.parametrize(
    ("name", "parameters"), [("ContinuousBernoulli", (0.2,)), ("ContinuousBernoulli", (0.5,)), ("Kumaraswamy", (2.0, 3.0))]
)
def test_draws_fit_our_own_distribution_function(name: str, parameters: tuple[float, ...]) -> None:
    tt.manual_seed(21)
    d = ours(name, parameters)
    assert stats.kstest(d.cdf(d.sample((N,))).numpy(), "uniform").pvalue > LEAST


@pytest.mark.parametrize("k", [1e-6, 0.5, 3.0, 100.0])
def test_draws_of_angles(k: float) -> None:
    tt.manual_seed(22)
    x = ours("VonMises", (1.0, k)).sample((N,)).numpy()
    assert (x >= -np.pi).all()
    assert (x < np.pi).all()
    assert stats.kstest((x - 1.0 + np.pi) % (2 * np.pi) - np.pi, stats.vonmises(k).cdf).pvalue > LEAST


def fits(x: np.ndarray, probabilities: np.ndarray) -> bool:
    """Whether counts of 0, 1, ... have these probabilities, what is rarer than five put together."""
    found = np.bincount(x.astype(np.int64), minlength=len(probabilities)).astype(np.float64)
    expected = probabilities * x.size
    often = expected >= 5
    found = np.append(found[: len(expected)][often], x.size - found[: len(expected)][often].sum())
    expected = np.append(expected[often], x.size - expected[often].sum())
    if expected[-1] < 1:
        found, expected = found[:-1], expected[:-1] * found[:-1].sum() / expected[:-1].sum()
    return bool(stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > LEAST)


@pytest.mark.parametrize(("name", "parameters", "theirs"), DISCRETE, ids=lambda v: v if isinstance(v, str) else None)
def test_counts_fit_the_probabilities(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    tt.manual_seed(23)
    x = ours(name, parameters).sample((N,)).numpy()
    assert fits(x, theirs.pmf(np.arange(60.0)))


def test_categories_fit_the_probabilities() -> None:
    tt.manual_seed(24)
    p = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])
    for d in (D.Categorical(tt.tensor(p)), D.Categorical(logits=tt.tensor(np.log(p) + 3))):
        x = d.sample((N,)).numpy()
        assert fits(x[:, 0], p[0])
        assert fits(x[:, 1], p[1])
    one_hot = D.OneHotCategorical(tt.tensor(p)).sample((N,)).numpy()
    assert (one_hot.sum(-1) == 1).all()
    assert fits(one_hot[:, 1].argmax(-1), p[1])
    counts = D.Multinomial(4, tt.tensor(p)).sample((N,)).numpy()
    assert (counts.sum(-1) == 4).all()
    assert fits(counts[:, 0, 1], stats.binom(4, 0.5).pmf(np.arange(6.0)))


def test_components_of_vectors_and_matrices() -> None:
    tt.manual_seed(25)
    a = np.array([0.5, 2.0, 1.5])
    x = D.Dirichlet(tt.tensor(a)).sample((N,)).numpy()
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-12)
    for k in range(3):
        assert stats.kstest(x[:, k], stats.beta(a[k], a.sum() - a[k]).cdf).pvalue > LEAST
    matrix = np.array([[2.0, 0.8], [0.8, 1.0]])
    direction = np.array([1.0, -2.0])
    spread = np.sqrt(direction @ matrix @ direction)
    for d in (
        D.MultivariateNormal(tt.zeros(2, dtype=tt.float64), tt.tensor(matrix)),
        D.MultivariateNormal(tt.zeros(2, dtype=tt.float64), precision_matrix=tt.tensor(np.linalg.inv(matrix))),
    ):
        assert stats.kstest(d.sample((N,)).numpy() @ direction, stats.norm(0, spread).cdf).pvalue > LEAST
    wishart = D.Wishart(tt.tensor(3.5, dtype=tt.float64), tt.tensor(matrix))
    for w in (wishart.sample((N,)).numpy(), wishart._bartlett_sampling(tt.Size((N,))).numpy()):
        assert stats.kstest(direction @ w @ direction / spread**2, stats.chi2(3.5).cdf).pvalue > LEAST
    # of LKJ matrices of n rows each correlation is 2 b - 1 of a beta number b of concentration - 1 + n / 2 twice
    factor = D.LKJCholesky(4, tt.tensor(1.5, dtype=tt.float64)).sample((N,)).numpy()
    correlation = factor @ factor.swapaxes(-1, -2)
    for i, j in ((1, 0), (3, 1), (3, 2)):
        assert stats.kstest(correlation[:, i, j], stats.beta(2.5, 2.5, -1, 2).cdf).pvalue > LEAST
    # logit(y) * temperature - logit(p) of relaxed Bernoulli numbers is logistic
    y = D.RelaxedBernoulli(tt.tensor(0.7, dtype=tt.float64), tt.tensor(0.3, dtype=tt.float64)).sample((N,)).numpy()
    assert stats.kstest(np.log(y / (1 - y)) * 0.7 - np.log(0.3 / 0.7), stats.logistic.cdf).pvalue > LEAST
    mixture = D.MixtureSameFamily(
        D.Categorical(tt.tensor([0.3, 0.7], dtype=tt.float64)),
        D.Normal(tt.tensor([0.0, 3.0], dtype=tt.float64), tt.tensor([1.0, 0.5], dtype=tt.float64)),
    )
    assert stats.kstest(mixture.cdf(mixture.sample((N,))).numpy(), "uniform").pvalue > LEAST
