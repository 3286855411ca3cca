"""Draws: the same on every device, gradients through them, estimators without bias, shapes and types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.distributions.examples import EXAMPLES, Example
from tritensor.ground.errors import GradError, TransformError
from tritensor.ops.table import ops
from tritensor.tensor.functions.creation.gammas import sample_dirichlet, standard_gamma

D = tt.distributions
# dx/da at a fixed cumulative probability, from 40 digits of mpmath: (a, x, dx/da) and (x, a, b, the same over 1 - x)
GAMMA_SLOPES = [
    (0.01, 1e-9, 2.016238040002079e-06), (0.4, 2.0, 2.915027807904875), (1.0, 1.0, 1.1735630272247268), (3.0, 9.0, 1.7397554120638796),
    (30.0, 25.0, 0.9166815997356572), (99.0, 80.0, 0.8987441506427383), (100.0, 129.0, 1.1346047301787574), (300.0, 100.0, 0.5495995815845495),
    (2000.0, 2100.0, 1.0246788279417405), (10000.0, 10100.0, 1.0050001660066192),
]  # fmt: skip
BETA_SLOPES = [
    (0.5, 50.0, 50.0, 0.010066932556332401), (0.3, 2.0, 3.0, 0.19929845136598923), (0.9, 2.0, 3.0, 0.3445075694344763), (0.98, 0.5, 0.5, 2.7405952934598057),
    (0.999, 1.0, 0.1, 1.5336979157926434), (0.5, 1.0, 0.01, 1.0561010642600674), (1e-8, 0.02, 3.0, 8.472619801537249e-06),
    (0.03, 300.0, 9000.0, 0.00010373367314640756), (0.7, 5.0, 0.01, 0.18281922962279132),
]  # fmt: skip


def t(*values: Any, requires_grad: bool = False) -> Any:
    made = [tt.tensor(v, dtype=tt.float64, requires_grad=requires_grad) for v in values]
    return made[0] if len(made) == 1 else made


def test_slopes_of_quantiles() -> None:
    a, x, slope = (np.array(v) for v in zip(*GAMMA_SLOPES, strict=True))
    np.testing.assert_allclose(ops.standard_gamma_grad(tt.tensor(a), tt.tensor(x)).numpy(), slope, rtol=1e-13)
    x, a, b, slope = (np.array(v) for v in zip(*BETA_SLOPES, strict=True))
    np.testing.assert_allclose(ops.dirichlet_grad(tt.tensor(x), tt.tensor(a), tt.tensor(a + b)).numpy(), slope, rtol=1e-13)


def test_slopes_meet_where_ways_change() -> None:
    """Where Temme's expansion takes over: from a = 100 on, and 0.3 a from a."""
    for a, x in ((100.0, 99.0), (400.0, 280.0), (400.0, 520.0), (100.0, 101.0)):
        near = [ops.standard_gamma_grad(t(a * (1 + k * 1e-12)), t(x * (1 + j * 1e-12))).item() for k in (-1, 1) for j in (-1, 1)]
        assert max(near) - min(near) < 1e-10 * near[0]


# -- devices
@pytest.mark.parametrize("example", [e for k, e in enumerate(EXAMPLES) if k % 4 == 0], ids=lambda e: e.expression)
def test_a_seed_gives_the_same_draws_on_every_device(example: Example) -> None:
    drawn = []
    for device in ("cpu", "cuda"):
        tensors = tuple(tt.tensor(np.asarray(p, np.float64).tolist(), dtype=tt.float32, device=device) for p in example.parameters)
        d = example.made(tt, tensors)
        tt.manual_seed(5)
        x = d.sample((3,))
        assert x.device.type == device
        drawn.append(x.cpu().numpy())
    np.testing.assert_allclose(drawn[1], drawn[0], rtol=2e-5, atol=1e-6)


def test_gamma_numbers_are_bit_for_bit_the_same() -> None:
    for draw, a in ((standard_gamma, np.array([0.01, 0.5, 3.0, 900.0])), (sample_dirichlet, np.array([[0.01, 0.5], [3.0, 900.0]]))):
        found = []
        for device in ("cpu", "cuda"):
            tt.manual_seed(8)
            found.append(draw(tt.tensor(a, dtype=tt.float32, device=device)).cpu().numpy())
        np.testing.assert_array_equal(*found)


# -- gradients through draws, where the noise can be set: the same seed at nearby parameters
REPARAMETERIZED = [
    ("Normal", (0.5, 1.5)), ("Laplace", (0.5, 1.5)), ("Cauchy", (0.5, 1.5)), ("Uniform", (0.5, 1.5)), ("Exponential", (1.5,)), ("Gumbel", (0.5, 1.5)),
    ("HalfNormal", (1.5,)), ("HalfCauchy", (1.5,)), ("LogNormal", (0.2, 0.5)), ("Weibull", (1.5, 2.0)), ("Pareto", (1.5, 3.0)), ("Kumaraswamy", (1.5, 2.0)),
    ("ContinuousBernoulli", (0.3,)), ("ContinuousBernoulli", (0.7,)), ("GeneralizedPareto", (0.5, 1.5, 0.3)), ("RelaxedBernoulli", (0.7, 0.3)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), REPARAMETERIZED)
def test_gradients_through_draws(name: str, parameters: tuple[float, ...]) -> None:
    def drawn(values: Any) -> Any:
        tt.manual_seed(6)
        return getattr(D, name)(*values).rsample((5,))

    given = [t(v, requires_grad=True) for v in parameters]
    found = [g.item() for g in tt.autograd.grad(drawn(given).sum(), given)]
    for k, g in enumerate(found):
        ends = [drawn([t(v + s * 1e-6 * (j == k)) for j, v in enumerate(parameters)]).sum().item() for s in (1, -1)]
        assert g == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)


def test_gradients_through_vectors() -> None:
    for build in (
        lambda m, s: D.MultivariateNormal(m, s @ s.mT + tt.eye(2, dtype=tt.float64)),
        lambda m, s: D.MultivariateNormal(m, scale_tril=s.tril() + 2 * tt.eye(2, dtype=tt.float64)),
        lambda m, s: D.MultivariateNormal(m, precision_matrix=s @ s.mT + tt.eye(2, dtype=tt.float64)),
        lambda m, s: D.LowRankMultivariateNormal(m, s, m.exp()),
        lambda m, s: D.RelaxedOneHotCategorical(t(0.7), logits=s),
        lambda m, s: D.LogisticNormal(m, s[0].exp()),
    ):

        def drawn(m: Any, s: Any, build: Any = build) -> Any:
            tt.manual_seed(6)
            return (build(m, s).rsample((4,)) ** 2).sum()

        assert tt.autograd.gradcheck(drawn, (t([0.5, -1.0], requires_grad=True), t([[0.3, -0.2], [0.5, 0.7]], requires_grad=True)))


def test_the_gradient_through_gamma_numbers_is_had_once() -> None:
    a = t([0.5, 3.0], requires_grad=True)
    for d in (D.Gamma(a, t(1.0)), D.Dirichlet(a), D.StudentT(a)):
        (g,) = tt.autograd.grad((d.rsample() ** 2).sum(), a, create_graph=True)
        with pytest.raises(GradError, match="no gradient of its own"):
            tt.autograd.grad(g.sum(), a)


# -- estimators: their mean is the gradient of the expectation, within five standard errors
def within(samples: np.ndarray, expected: float) -> bool:
    return abs(samples.mean() - expected) < 5 * samples.std() / math.sqrt(samples.size)


N = 20000


def slopes(build: Any, value: float, f: Any) -> np.ndarray:
    """df(x)/da of each of N draws."""
    tt.manual_seed(9)
    a = tt.full((N,), value, dtype=tt.float64, requires_grad=True)
    return tt.autograd.grad(f(build(a).rsample()).sum(), a)[0].numpy()  # type: ignore[no-any-return]


def test_reparameterised_estimators_have_no_bias() -> None:
    one = t(1.0)
    for a in (0.3, 2.0, 150.0):  # E x^2 = a (a + 1) of gamma numbers
        assert within(slopes(lambda v: D.Gamma(v, one), a, lambda x: x * x), 2 * a + 1)
    # E log x = digamma(a) - digamma(a + b) of beta numbers, by a and by b
    trigamma = lambda v: tt.polygamma(1, t(v)).item()  # noqa: E731
    for a, b in ((0.4, 1.5), (5.0, 2.0)):
        assert within(slopes(lambda v, b=b: D.Beta(v, t(b)), a, lambda x: x.log()), trigamma(a) - trigamma(a + b))
        assert within(slopes(lambda v, a=a: D.Beta(t(a), v), b, lambda x: x.log()), -trigamma(a + b))
    assert within(
        slopes(lambda v: D.Dirichlet(tt.stack([v, v * 0 + 2.0, v * 0 + 0.7], -1)), 1.5, lambda x: x[..., 2] ** 2),
        -(0.7 * 1.7) * (2 * 4.2 + 1) / (4.2 * 5.2) ** 2,
    )  # fmt: skip  E x_3^2 = c (c + 1) / (s (s + 1)), s the sum
    assert within(slopes(lambda v: D.Chi2(v), 3.0, lambda x: x), 1.0)
    assert within(slopes(lambda v: D.InverseGamma(v, one), 5.0, lambda x: x), -1 / 16)
    assert within(slopes(lambda v: D.StudentT(v), 9.0, lambda x: x * x), -2 / 49)
    assert within(slopes(lambda v: D.Normal(one, v), 0.7, lambda x: x**4), 12 * 0.7 + 12 * 0.7**3)


def test_score_function_estimators_have_no_bias() -> None:
    tt.manual_seed(10)
    cases = [
        (lambda a: D.Bernoulli(a), 0.3, lambda x: 2 * x + 1, 2.0),
        (lambda a: D.Poisson(a), 2.5, lambda x: x * x, 6.0),  # E k^2 = r + r^2
        (lambda a: D.Geometric(a), 0.4, lambda x: x, -1 / 0.16),
        (lambda a: D.Binomial(5, a), 0.3, lambda x: x, 5.0),
        (lambda a: D.Categorical(tt.stack([a, 1 - a], -1)), 0.3, lambda x: x, -1.0),
        (lambda a: D.Normal(a, t(1.0)), 0.5, lambda x: x * x, 1.0),
    ]
    for build, value, f, expected in cases:
        a = tt.full((N,), value, dtype=tt.float64, requires_grad=True)
        d = build(a)
        x = d.sample()
        assert not x.requires_grad
        (g,) = tt.autograd.grad((d.log_prob(x) * f(x).detach()).sum(), a)
        assert within(g.numpy(), expected), (build(t(value)), g.mean().item(), expected)


def test_the_straight_through_gradient() -> None:
    logits = t([0.2, -0.5, 1.0], requires_grad=True)
    d = D.OneHotCategoricalStraightThrough(logits=logits)
    x, weights = d.rsample(), t([1.0, 2.0, 3.0])
    assert x.detach().sum().item() == pytest.approx(1.0)
    (g,) = tt.autograd.grad((x * weights).sum(), logits, retain_graph=True)
    (expected,) = tt.autograd.grad((d.probs * weights).sum(), logits)
    np.testing.assert_allclose(g.numpy(), expected.numpy())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.expression)
def test_draws_lie_in_the_support(example: Example) -> None:
    for dtype in ("float32", "float64"):
        d, _ = example.of(tt, dtype=dtype)
        tt.manual_seed(3)
        x = d.sample((50,))
        assert d.support.check(x).all()
        assert x.shape == (50, *d.batch_shape, *d.event_shape)
        assert d.log_prob(x).shape == (50, *d.batch_shape)
        assert x.dtype is getattr(tt, dtype) or example.name == "Categorical"


def test_slopes_of_many_draws_are_those_of_few() -> None:
    """Machine code takes blocks of many elements, numpy the others."""
    for a in (1.5, 20.0, 400.0):
        tt.manual_seed(2)
        alpha = tt.full((40000,), a, dtype=tt.float64)
        x = standard_gamma(alpha)
        few = np.concatenate([ops.standard_gamma_grad(alpha[k : k + 5000], x[k : k + 5000]).numpy() for k in range(0, 40000, 5000)])
        np.testing.assert_allclose(ops.standard_gamma_grad(alpha, x).numpy(), few, rtol=1e-12)


def test_draws_of_16_bits_are_finite_and_inside() -> None:
    """Of whose uniform numbers every 256th is 0."""
    for dtype in (tt.float16, tt.bfloat16):
        zero, one = tt.zeros(2, dtype=dtype), tt.ones(2, dtype=dtype)
        for d in (
            D.Normal(zero, one), D.Laplace(zero, one), D.Gumbel(zero, one), D.Exponential(one), D.Weibull(one, one), D.Gamma(one, one), D.Beta(one, one),
            D.LogNormal(zero, one), D.StudentT(9 * one), D.Bernoulli(logits=zero), D.Poisson(one), D.Pareto(one, one), D.Uniform(zero, one),
        ):  # fmt: skip
            tt.manual_seed(1)
            x = d.sample((2000,))
            assert x.dtype is dtype
            assert d.log_prob(x).isfinite().all(), d


# -- examples of a vmap
MAPPED = {
    "Gamma": lambda a: D.Gamma(a, t(2.0)).rsample(),
    "Beta": lambda a: D.Beta(a, t(2.0)).rsample(),
    "Dirichlet": lambda a: D.Dirichlet(tt.stack([a, a + 1, 2 * a])).rsample()[1],
    "StudentT": lambda a: D.StudentT(a).rsample(),
    "Chi2": lambda a: D.Chi2(a).rsample(),
}


@pytest.mark.filterwarnings("ignore:vmap:UserWarning")
@pytest.mark.parametrize("name", MAPPED)
def test_each_example_of_a_vmap_draws(name: str) -> None:
    f, a = MAPPED[name], t([0.5, 3.0, 0.5])
    for each in (f, tt.func.grad(f)):
        alone = []
        for x in a:
            tt.manual_seed(4)
            alone.append(each(x).item())
        tt.manual_seed(4)
        assert tt.func.vmap(each, randomness="same")(a).tolist() == alone
        first, _, third = tt.func.vmap(each, randomness="different")(a).tolist()
        assert first != third
    tt.manual_seed(4)
    one, other = tt.func.vmap(lambda _: f(t(3.0)), randomness="different")(t([0.0, 0.0])).tolist()
    assert one != other
    slopes = tt.func.grad(lambda a: tt.func.vmap(f, randomness="different")(a).sum())(a)
    assert slopes.isfinite().all()
    assert slopes[0] != slopes[2]
    with pytest.raises(TransformError, match="randomness='different'"):
        tt.func.vmap(f)(a)


def test_parameters_of_all_examples_are_checked() -> None:
    log_prob = tt.func.vmap(lambda s: D.Normal(t(0.0), s).log_prob(t(1.0)))
    assert log_prob(t([1.0, 2.0])).shape == (2,)
    with pytest.raises(ValueError, match=r"Normal: the parameter scale of shape \(3,\) must satisfy .* -2.0 at \[1\] does not"):
        log_prob(t([1.0, -2.0, 3.0]))


@pytest.mark.parametrize(
    "made",
    [
        lambda p: D.Beta(p, tt.tensor(1.0)), lambda p: D.Dirichlet(p.unsqueeze(-1).expand(0, 3)), lambda p: D.Categorical(logits=p.unsqueeze(-1).expand(0, 3)),
        lambda p: D.MultivariateNormal(p.unsqueeze(-1).expand(0, 3), tt.eye(3)), lambda p: D.OneHotCategorical(p.unsqueeze(-1).expand(0, 3)),
        lambda p: D.Multinomial(2, p.unsqueeze(-1).expand(0, 3)), lambda p: D.Independent(D.Normal(p.unsqueeze(-1).expand(0, 3), 1.0), 1),
    ],
)  # fmt: skip
def test_a_batch_of_no_distributions_draws_nothing(made: Any) -> None:
    d = made(tt.ones(0))
    assert d.batch_shape == (0,)
    drawn = d.sample((2,))
    assert drawn.shape == (2, 0, *d.event_shape)
    assert d.log_prob(drawn).shape == (2, 0)
    assert isinstance(d, D.Multinomial) or d.entropy().shape == (0,)


def test_a_poisson_number_of_an_infinite_rate_is_infinite() -> None:
    tt.manual_seed(0)
    rate = tt.tensor([math.inf, 3.0, math.inf, 0.0, 1e12], dtype=tt.float64)
    for _ in range(200):
        drawn = tt.poisson(rate)
        assert drawn[[0, 2]].tolist() == [math.inf, math.inf]
        assert drawn[3] == 0
        assert 0 <= drawn[1] < 40
        assert abs(drawn[4] - 1e12) < 1e7


@pytest.mark.parametrize(
    "made",
    [
        lambda given: D.Categorical(logits=given),
        lambda given: D.OneHotCategorical(logits=given),
        lambda given: D.Multinomial(3, logits=given),
        lambda given: D.RelaxedOneHotCategorical(tt.tensor(0.5), logits=given),
        lambda given: D.Bernoulli(logits=given),
        lambda given: D.Geometric(logits=given),
        lambda given: D.ContinuousBernoulli(logits=given),
        lambda given: D.RelaxedBernoulli(tt.tensor(0.5), logits=given),
        lambda given: D.FisherSnedecor(given, 6),
    ],
)
def test_parameters_that_are_integers_draw_as_their_floats_do(made: Any) -> None:
    drawn = []
    for given in (tt.tensor([1, 2]), tt.tensor([1.0, 2.0])):
        tt.manual_seed(3)
        found = made(given)
        x = found.sample((4,))
        drawn.append((x.dtype, x.tolist(), found.log_prob(x).tolist()))
    assert drawn[0] == drawn[1]
    assert drawn[0][0] == (tt.int64 if isinstance(found, D.Categorical) else tt.float32)
