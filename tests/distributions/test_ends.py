"""Distributions at the ends of their parameters and supports: what was given is computed with, not a probability that was clamped or rounded first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

import tritensor as tt

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of logarithms of 0
D = tt.distributions
KL = D.kl_divergence
FLOATS = (tt.float32, tt.float64)
# The continuous Bernoulli distribution of logit l at x, by the closed formula of the integrals of exp(l x), which the next test asks by quadrature:
# l: (log density at 0.3, at 1, mean, variance, cdf at 0.3, entropy)
TILTED = {
    30.0: (-17.598802618338165, 3.401197381661835, 0.96666666666676024, 0.0011111111110175349, 7.5816246e-10, -2.4011973816646422),
    -30.0: (
        -5.5988026183381647,
        -26.598802618338165,
        0.033333333333239757,
        0.0011111111110175349,
        0.99987659019600027,
        -2.4011973816646422,
    ),
    1e4: (-6990.7896596280236, 9.210340371976184, 0.9999, 1e-8, 0.0, -8.210340371976184),
}


def t(value: Any, dtype: Any = tt.float64, requires_grad: bool = False) -> Any:
    return tt.tensor(value, dtype=dtype, requires_grad=requires_grad)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("logit", TILTED)
def test_continuous_bernoulli_of_large_logits(logit: float, dtype: Any) -> None:
    d = D.ContinuousBernoulli(logits=t(logit, dtype))
    low, high, mean, variance, below, entropy = TILTED[logit]
    rel = 2e-6 if dtype is tt.float32 else 1e-8
    found = d.log_prob(t([0.3, 1.0], dtype)).tolist() + [v.item() for v in (d.mean, d.variance, d.cdf(t(0.3, dtype)), d.entropy())]
    assert found == pytest.approx([low, high, mean, variance, below, entropy], rel=rel)
    assert d.icdf(t([0.0, 1.0], dtype)).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("logit", [-40.0, -3.0, -0.6, -0.49, -1e-3, 0.0, 1e-7, 1e-4, 0.2, 0.51, 5.0, 80.0])
def test_continuous_bernoulli_is_its_integrals(logit: float) -> None:
    """Through 1/2, where formulas are 0/0, and in float32 as far as its digits go."""
    rate = abs(logit)

    def density(x: float) -> float:
        y = x if logit < 0 else 1 - x
        return math.exp(-rate * y) * (rate / -math.expm1(-rate) if rate else 1.0)

    def mean_of(f: Callable[[float], float], end: float = 1.0) -> float:
        return integrate.quad(lambda x: f(x) * density(x), 0, end, epsabs=1e-14, epsrel=1e-13, points=[end / 20, end * 0.95])[0]  # type: ignore[no-any-return]

    mean = mean_of(lambda x: x)
    truth = [mean, mean_of(lambda x: (x - mean) ** 2), mean_of(lambda x: 1.0, 0.3), -mean_of(lambda x: math.log(density(x)))]
    for dtype, rel in ((tt.float64, 1e-9), (tt.float32, 2e-5)):
        d = D.ContinuousBernoulli(logits=t(logit, dtype))
        assert [v.item() for v in (d.mean, d.variance, d.cdf(t(0.3, dtype)), d.entropy())] == pytest.approx(truth, rel=rel, abs=rel * 1e-2)
        assert d.log_prob(t(0.3, dtype)).item() == pytest.approx(math.log(density(0.3)), rel=rel, abs=rel * 1e-2)
        u = t([1e-5, 0.2, 0.7, 0.999], dtype)
        assert d.cdf(d.icdf(u)).tolist() == pytest.approx(u.tolist(), rel=2e-4 if dtype is tt.float32 else 1e-9)
    for q in (-2.0, 0.1, 30.0):
        ours, theirs = (D.ContinuousBernoulli(logits=t(v)) for v in (logit, q))
        cross = -mean_of(lambda x, theirs=theirs: theirs.log_prob(t(x)).item())
        assert KL(ours, theirs).item() == pytest.approx(cross - truth[3], rel=1e-6, abs=1e-9)


def test_derivatives_of_the_continuous_bernoulli() -> None:
    for logit in (-8.0, -0.3, 0.0, 1e-4, 0.7, 12.0):
        at = t(logit, requires_grad=True)
        for of in (
            lambda v: D.ContinuousBernoulli(logits=v).log_prob(t(0.3)), lambda v: D.ContinuousBernoulli(logits=v).mean, lambda v: D.ContinuousBernoulli(logits=v).cdf(t(0.3)),
            lambda v: D.ContinuousBernoulli(logits=v).icdf(t(0.3)), lambda v: D.ContinuousBernoulli(logits=v).variance,
        ):  # fmt: skip
            (g,) = tt.autograd.grad(of(at), at)
            ends = [of(t(logit + s * 1e-4)).item() for s in (1, -1)]
            assert g.item() == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-5, abs=1e-7)
        d = D.ContinuousBernoulli(logits=at)  # the log density's slope is the distance from the mean
        (g,) = tt.autograd.grad(d.log_prob(t(0.3)), at)
        assert g.item() == pytest.approx(0.3 - d.mean.item(), abs=1e-9)


# -- probabilities of 0 and 1, and those below a rounding of 1
@pytest.mark.parametrize("dtype", FLOATS)
def test_log_probabilities_of_what_never_comes(dtype: Any) -> None:
    zero, one, never = t(0.0, dtype), t(1.0, dtype), t([0.0, 0.25, 0.75], dtype)
    hot = t([1.0, 0.0, 0.0], dtype)
    for found, expected in (
        (D.Bernoulli(zero).log_prob(one), -math.inf), (D.Bernoulli(zero).log_prob(zero), 0), (D.Bernoulli(one).log_prob(zero), -math.inf),
        (D.Bernoulli(one).log_prob(one), 0), (D.Binomial(3, zero).log_prob(t(1.0, dtype)), -math.inf), (D.Binomial(3, zero).log_prob(zero), 0),
        (D.Binomial(3, one).log_prob(t(3.0, dtype)), 0), (D.Binomial(3, one).log_prob(t(2.0, dtype)), -math.inf), (D.Geometric(one).log_prob(zero), 0),
        (D.Geometric(one).log_prob(one), -math.inf), (D.NegativeBinomial(2.0, zero).log_prob(zero), 0), (D.NegativeBinomial(2.0, zero).log_prob(one), -math.inf),
        (D.Categorical(never).log_prob(tt.tensor(0)), -math.inf), (D.Categorical(never).log_prob(tt.tensor(2)), math.log(0.75)),
        (D.OneHotCategorical(never).log_prob(hot), -math.inf), (D.Multinomial(1, never).log_prob(hot), -math.inf),
        (D.Multinomial(2, never).log_prob(t([0.0, 0.0, 2.0], dtype)), 2 * math.log(0.75)), (D.Poisson(zero).log_prob(zero), 0), (D.Poisson(zero).log_prob(one), -math.inf),
        (D.Bernoulli(zero).entropy(), 0), (D.Bernoulli(one).entropy(), 0), (D.Binomial(3, zero).entropy(), 0), (D.Binomial(3, one).entropy(), 0),
        (D.Geometric(one).entropy(), 0), (D.Categorical(hot).entropy(), 0), (D.OneHotCategorical(hot).entropy(), 0), (D.NegativeBinomial(2.0, zero).mean, 0),
        (D.MixtureSameFamily(D.Categorical(t([1.0, 0.0], dtype)), D.Normal(t([0.0, 50.0], dtype), one)).log_prob(t(50.0, dtype)), -1250 - 0.5 * math.log(2 * math.pi)),
    ):  # fmt: skip
        assert found.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_small_probabilities_keep_their_digits(dtype: Any) -> None:
    p = 1e-30
    small, logit = t(p, dtype), t(math.log(p), dtype)
    h = p - p * math.log(p)
    rel = 1e-5 if dtype is tt.float32 else 1e-12
    for d in (D.Bernoulli(small), D.Bernoulli(logits=logit)):
        assert d.entropy().item() == pytest.approx(h, rel=rel)
        assert d.log_prob(t([0.0, 1.0], dtype)).tolist() == pytest.approx([-p, math.log(p)], rel=rel)
    for d in (D.Geometric(small), D.Geometric(logits=logit)):
        assert d.entropy().item() == pytest.approx(h / p, rel=rel)
        assert d.log_prob(t(1e30, dtype)).item() == pytest.approx(math.log(p) - 1, rel=rel)
    assert D.Categorical(t([p, 1.0], dtype)).entropy().item() == pytest.approx(-p * math.log(p), rel=rel)
    assert D.Bernoulli(logits=-logit).entropy().item() == pytest.approx(h, rel=rel)  # the same of 1 - p
    assert D.Bernoulli(logits=-logit).variance.item() == pytest.approx(p, rel=rel)
    assert D.Geometric(logits=-logit).mean.item() == pytest.approx(p, rel=rel)
    assert D.Geometric(logits=-logit).log_prob(t(2.0, dtype)).item() == pytest.approx(2 * math.log(p), rel=rel)
    assert D.Binomial(5, logits=t(40.0, dtype)).log_prob(t(5.0, dtype)).item() == pytest.approx(-5 * math.exp(-40), rel=rel, abs=1e-9)
    assert D.RelaxedBernoulli(t(1.0, dtype), logits=t(1000.0, dtype)).base_dist.rsample((50,)).min().item() > 900


@pytest.mark.parametrize("dtype", FLOATS)
def test_entropies_of_trials_that_nearly_never_succeed(dtype: Any) -> None:
    # -log p - (1 - p) / p log(1 - p) of p = 1 / (1 + e^-l): 1 - l and l e^-l in the limits
    for logit, entropy in ((-100.0, 101.0), (-80.0, 81.0), (0.0, 2 * math.log(2.0)), (3.0, 0.2003675785), (100.0, 0.0)):
        x = tt.tensor(logit, dtype=dtype, requires_grad=True)
        found = D.Geometric(logits=x).entropy()
        assert found.item() == pytest.approx(entropy, rel=1e-6, abs=1e-40)
        found.backward()
        assert math.isfinite(x.grad.item())


def test_numbers_of_successes_that_overflow_are_drawn() -> None:
    tt.manual_seed(0)
    drawn = D.NegativeBinomial(0.001, logits=tt.full((1000,), 100.0)).sample()
    assert not drawn.isnan().any()
    assert (drawn == 0).sum() > 900  # a Gamma number of 0.001 is below 1e-38 but for 8 in a hundred


def test_divergences_at_the_ends() -> None:
    for dtype in FLOATS:
        p, zero, one, half, hot = t(0.3, dtype), t(0.0, dtype), t(1.0, dtype), t([0.5, 0.5], dtype), t([1.0, 0.0], dtype)
        for found, expected in (
            (KL(D.Bernoulli(zero), D.Bernoulli(zero)), 0), (KL(D.Bernoulli(zero), D.Bernoulli(p)), -math.log(0.7)), (KL(D.Bernoulli(p), D.Bernoulli(zero)), math.inf),
            (KL(D.Bernoulli(one), D.Bernoulli(p)), -math.log(0.3)), (KL(D.Binomial(4, zero), D.Binomial(4, p)), -4 * math.log(0.7)),
            (KL(D.Binomial(4, one), D.Binomial(4, one)), 0), (KL(D.Binomial(4, p), D.Binomial(4, one)), math.inf), (KL(D.Geometric(one), D.Geometric(p)), -math.log(0.3)),
            (KL(D.Categorical(hot), D.Categorical(half)), math.log(2)), (KL(D.Categorical(half), D.Categorical(hot)), math.inf), (KL(D.Categorical(hot), D.Categorical(hot)), 0),
            (KL(D.Poisson(zero), D.Poisson(p)), 0.3), (KL(D.Poisson(zero), D.Poisson(zero)), 0), (KL(D.Poisson(p), D.Poisson(zero)), math.inf),
            (KL(D.Bernoulli(zero), D.Poisson(zero)), 0), (KL(D.Bernoulli(logits=t(60.0, dtype)), D.Bernoulli(logits=t(-60.0, dtype))), 60),
        ):  # fmt: skip
            assert found.item() == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_gradients_at_the_ends_are_numbers() -> None:
    """Of entropies, whose slope at 0 is infinite, finite ones; of certain outcomes the right ones; others take no part."""
    p = t([0.0, 1.0, 0.25], requires_grad=True)
    for of in (
        lambda: D.Bernoulli(p).entropy().sum(),
        lambda: D.Categorical(p).entropy(),
        lambda: KL(D.Bernoulli(p), D.Bernoulli(t(0.5))).sum(),
    ):
        (g,) = tt.autograd.grad(of(), p)
        assert g.isfinite().all()
        assert g[2].item() != 0
    (g,) = tt.autograd.grad(D.Bernoulli(p).log_prob(t([0.0, 1.0, 1.0])).sum(), p)
    assert g.tolist() == [-1, 1, 4]
    (g,) = tt.autograd.grad(D.Categorical(p).log_prob(tt.tensor(1)), p)
    assert g.isfinite().all()
    logit = t(0.0, requires_grad=True)
    (g,) = tt.autograd.grad(D.Bernoulli(logits=logit).entropy(), logit, create_graph=True)
    assert tt.autograd.grad(g, logit)[0].item() == pytest.approx(-0.25)


# -- tails of distribution functions and quantiles
TAILS = np.array([1e-300, 1e-30, 1e-12, 1e-6, 0.2, 0.5, 0.8])
CONTINUOUS: list[tuple[str, tuple[float, ...], Any]] = [
    ("Cauchy", (0.0, 2.0), stats.cauchy(0, 2)), ("Laplace", (0.0, 2.0), stats.laplace(0, 2)), ("Gumbel", (0.0, 2.0), stats.gumbel_r(0, 2)),
    ("Normal", (0.0, 2.0), stats.norm(0, 2)), ("HalfCauchy", (2.0,), stats.halfcauchy(scale=2)), ("Exponential", (2.0,), stats.expon(scale=0.5)),
    ("HalfNormal", (2.0,), stats.halfnorm(scale=2)), ("Weibull", (2.0, 1.5), stats.weibull_min(1.5, scale=2)), ("GeneralizedPareto", (0.0, 2.0, 0.3), stats.genpareto(0.3, 0, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "theirs"), CONTINUOUS, ids=lambda v: v if isinstance(v, str) else None)
def test_lower_tails(name: str, parameters: tuple[float, ...], theirs: Any) -> None:
    d = getattr(D, name)(*(t(p) for p in parameters))
    exact = {"Cauchy": lambda u: -2 / np.tan(np.pi * u), "HalfNormal": lambda u: 2 * math.sqrt(2) * special.erfinv(u)}
    x = exact.get(name, theirs.ppf)(TAILS)
    np.testing.assert_allclose(d.icdf(t(TAILS)).numpy(), x, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(d.cdf(t(x)).numpy(), TAILS, rtol=1e-9)
    if hasattr(d, "log_cdf"):
        np.testing.assert_allclose(d.log_cdf(t(x)).numpy(), np.log(TAILS), rtol=1e-11)
    low, high = d.icdf(t([0.0, 1.0])).tolist()
    assert (low, high) == theirs.support()


def test_kumaraswamy_at_its_ends() -> None:
    for dtype in FLOATS:
        d = D.Kumaraswamy(t(1.0, dtype), t(3.0, dtype))
        assert d.log_prob(t([0.0, 1e-12, 1.0], dtype)).tolist() == pytest.approx([math.log(3), math.log(3), -math.inf])
        assert d.cdf(t([0.0, 1e-12, 1.0], dtype)).tolist() == pytest.approx([0, 3e-12, 1], rel=1e-6)
        assert d.icdf(t([0.0, 3e-12, 1.0], dtype)).tolist() == pytest.approx([0, 1e-12, 1], rel=1e-6)


def test_densities_of_values_whose_square_overflows() -> None:
    for x in (1e5, 1e10, 1e25, 1e37):
        for name, given, theirs in (
            ("Cauchy", (0.0, 1.0), stats.cauchy(0, 1)), ("HalfCauchy", (1.0,), stats.halfcauchy()), ("StudentT", (3.0, 0.0, 2.0), stats.t(3, 0, 2)),
        ):  # fmt: skip
            d = getattr(D, name)(*(t(p, tt.float32) for p in given))
            at = t(x, tt.float32, requires_grad=True)
            found = d.log_prob(at)
            assert found.item() == pytest.approx(theirs.logpdf(x), rel=1e-5)
            (g,) = tt.autograd.grad(found, at)
            assert g.item() == pytest.approx(-(4 if name == "StudentT" else 2) / x, rel=1e-4)


def test_beta_near_its_ends() -> None:
    x = np.array([1e-20, 1e-12, 1e-5])
    np.testing.assert_allclose(D.Beta(t(1.0), t(1e4)).log_prob(t(x)).numpy(), math.log(1e4) + (1e4 - 1) * np.log1p(-x), rtol=1e-11)
    assert special.xlog1py(0.0, -1.0) == D.Beta(t(1.0), t(1.0)).log_prob(t(1.0)).item() == 0


def test_the_gradient_by_a_parameter_that_is_1() -> None:
    """log p = log(a b) + (a - 1) log x + (b - 1) log(1 - x^a), whose last term is 0 at b = 1 and has a derivative by b all the same."""
    a, b = (tt.ones(2, dtype=tt.float64, requires_grad=True) for _ in range(2))
    tt.distributions.Kumaraswamy(a, b).log_prob(tt.tensor([0.5, 0.25], dtype=tt.float64)).sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert a.grad.tolist() == pytest.approx([1 + math.log(0.5), 1 + math.log(0.25)])
    assert b.grad.tolist() == pytest.approx([1 + math.log(0.5), 1 + math.log(0.75)])


def test_a_subclass_of_independent_may_keep_its_validation_in_its_base() -> None:
    class Kept(D.Independent):
        @property
        def _validate_args(self) -> Any:
            return self.base_dist._validate_args

        @_validate_args.setter
        def _validate_args(self, value: Any) -> None:
            self.base_dist._validate_args = value

    spread = Kept(D.Normal(tt.zeros(2), tt.ones(2), validate_args=True), 1).expand((3,))
    assert spread.batch_shape == (3,)
    assert spread.base_dist.batch_shape == (3, 2)
    assert spread._validate_args is True
