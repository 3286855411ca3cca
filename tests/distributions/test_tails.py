"""Draws of every distribution at its tails, and its densities where they were drawn, in every floating type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import tritensor as tt
from tests.distributions.tails import wrong_counts

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, where a draw overflows
D = tt.distributions
FLOATS = (tt.float16, tt.bfloat16, tt.float32, tt.float64)


class Kumaraswamy(stats.rv_continuous):
    """1 - (1 - x^a)^b."""

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return -np.expm1(b * np.log1p(-(x**a)))

    def _ppf(self, q: Any, a: Any, b: Any) -> Any:
        return (-np.expm1(np.log1p(-q) / b)) ** (1 / a)


class Tilted(stats.rv_continuous):
    """The continuous Bernoulli distribution of logit l: (exp(l x) - 1) / (exp(l) - 1)."""

    def _argcheck(self, tilt: Any) -> Any:
        return np.isfinite(tilt)

    def _cdf(self, x: Any, tilt: Any) -> Any:
        return np.expm1(tilt * x) / np.expm1(tilt)

    def _ppf(self, q: Any, tilt: Any) -> Any:
        return np.log1p(q * np.expm1(tilt)) / tilt


class Relaxed(stats.rv_continuous):
    """The sigmoid of a logistic number of location l and scale s."""

    def _argcheck(self, at: Any, s: Any) -> Any:
        return s > 0

    def _cdf(self, x: Any, at: Any, s: Any) -> Any:
        return special.expit((special.logit(x) - at) / s)

    def _ppf(self, q: Any, at: Any, s: Any) -> Any:
        return special.expit(at + s * special.logit(q))


kumaraswamy, tilted, relaxed = (
    cls(a=0, b=1)(*given) for cls, given in ((Kumaraswamy, (0.5, 3.0)), (Tilted, (6.0,)), (Relaxed, (0.75, 2.0)))
)
# (class, parameters that every type holds, scipy's)
CONTINUOUS: list[tuple[str, tuple[float, ...], Any]] = [
    ("Beta", (0.5, 2.0), stats.beta(0.5, 2.0)), ("Beta", (3.0, 0.25), stats.beta(3.0, 0.25)), ("Cauchy", (1.0, 2.0), stats.cauchy(1, 2)),
    ("Chi2", (3.0,), stats.chi2(3)), ("ContinuousBernoulli", (None, 6.0), tilted), ("Exponential", (2.0,), stats.expon(scale=0.5)),
    ("FisherSnedecor", (3.0, 9.0), stats.f(3, 9)), ("Gamma", (0.0625, 2.0), stats.gamma(0.0625, scale=0.5)), ("Gamma", (30.0, 2.0), stats.gamma(30, scale=0.5)),
    ("GeneralizedPareto", (0.0, 2.0, 0.25), stats.genpareto(0.25, 0, 2)), ("Gumbel", (1.0, 2.0), stats.gumbel_r(1, 2)),
    ("HalfCauchy", (2.0,), stats.halfcauchy(scale=2)), ("HalfNormal", (2.0,), stats.halfnorm(scale=2)), ("InverseGamma", (3.0, 2.0), stats.invgamma(3, scale=2)),
    ("Kumaraswamy", (0.5, 3.0), kumaraswamy), ("Laplace", (1.0, 2.0), stats.laplace(1, 2)), ("LogNormal", (1.0, 0.5), stats.lognorm(0.5, scale=np.e)),
    ("Normal", (1.0, 2.0), stats.norm(1, 2)), ("Pareto", (2.0, 3.5), stats.pareto(3.5, scale=2)), ("RelaxedBernoulli", (0.5, None, 0.375), relaxed),
    ("StudentT", (3.0, 1.0, 2.0), stats.t(3, 1, 2)), ("Uniform", (1.0, 3.0), stats.uniform(1, 2)), ("VonMises", (0.0, 2.0), stats.vonmises(2.0)),
    ("Weibull", (2.0, 1.5), stats.weibull_min(1.5, scale=2)),
]  # fmt: skip
DISCRETE: list[tuple[str, tuple[float, ...], Any]] = [
    ("Bernoulli", (2.0**-13,), stats.bernoulli(2.0**-13)), ("Binomial", (9.0, 0.25), stats.binom(9, 0.25)), ("Geometric", (0.25,), stats.geom(0.25, -1)),
    ("Geometric", (None, 3.0), stats.geom(special.expit(3.0), -1)), ("NegativeBinomial", (3.5, 0.5), stats.nbinom(3.5, 0.5)), ("Poisson", (4.0,), stats.poisson(4)),
]  # fmt: skip


def _made(name: str, parameters: tuple[float | None, ...], dtype: tt.dtype) -> Any:
    return getattr(D, name)(*(p if p is None else tt.tensor(p, dtype=dtype) for p in parameters))


def _held(name: str, parameters: tuple[float, ...], theirs: Any, n: int) -> None:
    for dtype in FLOATS:
        tt.manual_seed(3)
        x = _made(name, parameters, dtype).sample((n,))
        assert x.dtype is dtype
        below = {"Uniform": 3.0, "Beta": 1.0, "Kumaraswamy": 1.0}.get(name, np.inf)
        assert wrong_counts(x, theirs, below=below) == [], dtype
        wide = _made(name, parameters, dtype if dtype is tt.float64 else tt.float32)
        density = wide.log_prob(x.float() if dtype.itemsize == 2 else x)
        assert density.isfinite().all(), (dtype, x[~density.isfinite()][:3])


IDS = [f"{name}{list(parameters)}" for name, parameters, _ in CONTINUOUS + DISCRETE]


@pytest.mark.parametrize(("name", "parameters", "theirs"), CONTINUOUS + DISCRETE, ids=IDS)
def test_as_many_as_their_distribution_says(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    _held(name, parameters, theirs, 1 << 15)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("name", "parameters", "theirs"), CONTINUOUS + DISCRETE, ids=IDS)
def test_as_many_of_millions(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    _held(name, parameters, theirs, 1 << 20)


def test_vectors_of_16_bits() -> None:
    """What is computed of parameters of 16 bits is what is computed of the same in float32, rounded once; gradients reach the parameters."""
    for dtype in (tt.float16, tt.bfloat16):
        a = tt.tensor([0.5, 2.0, 3.0], dtype=dtype, requires_grad=True)
        cases: list[Callable[[Any], Any]] = [
            D.Dirichlet, lambda v: D.LogisticNormal(v, v), lambda v: D.MultivariateNormal(v, scale_tril=tt.diag_embed(v)),
            lambda v: D.Independent(D.Gumbel(v, v), 1), lambda v: D.TransformedDistribution(D.Laplace(v, v), [D.AffineTransform(v, v), D.TanhTransform()]),
        ]  # fmt: skip
        for build in cases:
            drawn = []
            for v in (a, a.float()):
                tt.manual_seed(2)
                drawn.append(build(v).rsample((50,)))
            assert drawn[0].dtype is dtype
            assert tt.equal(drawn[0], drawn[1].to(dtype).clamp(*_ends(build(a), dtype)))
            (g,) = tt.autograd.grad(drawn[0].float().sum(), a)
            assert g.isfinite().all()


def _ends(d: Any, dtype: tt.dtype) -> tuple[float, float]:
    most = float(tt.finfo(dtype).max)
    return (2.0**-24 if dtype is tt.float16 else 1e-38, 1 - float(tt.finfo(dtype).eps) / 2) if isinstance(d, D.Dirichlet) else (-most, most)


def test_counts_beyond_what_a_type_counts_to() -> None:
    """Adding ones in float16 stops at 2048, in bfloat16 at 256."""
    for dtype in (tt.float16, tt.bfloat16):
        tt.manual_seed(1)
        x = D.Multinomial(20000, tt.tensor([0.75, 0.25], dtype=dtype)).sample().double()
        assert x.tolist() == pytest.approx([15000, 5000], rel=0.03)


def test_draws_stay_off_the_ends() -> None:
    """Where the density is 0 or infinite, in types that would round there."""
    tt.manual_seed(0)
    for dtype in FLOATS:
        c = tt.tensor(0.01, dtype=dtype)
        for d in (D.Beta(c, c), D.Kumaraswamy(c, c), D.Dirichlet(tt.stack([c, c]))):
            x = d.sample((4096,))
            assert x.min().item() > 0
            assert x.max().item() < 1
        for d in (D.Gamma(c, 1 / c), D.Weibull(c, c), D.InverseGamma(1 / c, c), D.LogNormal(-50 * c / c, c), D.Exponential(100 / c)):
            assert d.sample((4096,)).min().item() > 0
        low, high = tt.tensor(1.0, dtype=dtype), tt.tensor(1.0 + 4 * float(tt.finfo(dtype).eps), dtype=dtype)
        x = D.Uniform(low, high).sample((4096,))
        assert x.max().item() < high.item()
        assert x.min().item() == 1.0


# name: parameters of draws at the ends of the type
EXTREME: list[tuple[str, tuple[float, ...]]] = [
    ("Beta", (0.01, 0.01)), ("Beta", (1e4, 0.1)), ("Cauchy", (0.0, 1e36)), ("FisherSnedecor", (0.1, 0.1)), ("Gamma", (1e-3, 1.0)), ("Gamma", (1e8, 1e-8)),
    ("GeneralizedPareto", (0.0, 1.0, 0.9)), ("GeneralizedPareto", (0.0, 1.0, -2.0)), ("HalfCauchy", (1e37,)), ("InverseGamma", (0.01, 1.0)),
    ("Kumaraswamy", (0.01, 0.01)), ("Kumaraswamy", (0.1, 1e4)), ("LKJCholesky", (4, 0.01)), ("LogNormal", (0.0, 40.0)), ("Pareto", (1.0, 0.02)),
    ("StudentT", (0.01,)), ("VonMises", (0.0, 1e7)), ("Weibull", (1.0, 0.05)), ("NegativeBinomial", (1e-3, 0.9999)), ("Binomial", (1e6, 1e-6)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), EXTREME)
def test_densities_of_extreme_draws_are_numbers(name: str, parameters: tuple[float, ...]) -> None:
    for dtype in (tt.float32, tt.float64):
        tt.manual_seed(0)
        d = getattr(D, name)(*(p if isinstance(p, int) else tt.tensor(p, dtype=dtype) for p in parameters))
        x = d.sample((4000,))
        assert x.isfinite().all()
        assert d.log_prob(x).isfinite().all()


def test_densities_of_extreme_vectors_are_numbers() -> None:
    for dtype in (tt.float32, tt.float64):
        tt.manual_seed(0)
        zeros = tt.zeros(3, dtype=dtype)
        for d in (
            D.Dirichlet(zeros + 1e-3), D.RelaxedOneHotCategorical(tt.tensor(0.01, dtype=dtype), logits=zeros), D.LogisticNormal(zeros - 60, zeros + 1),
            D.RelaxedBernoulli(tt.tensor(0.01, dtype=dtype), logits=zeros), D.ContinuousBernoulli(logits=zeros + 1e6),
        ):  # fmt: skip
            assert d.log_prob(d.sample((4000,))).isfinite().all()
