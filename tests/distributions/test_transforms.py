"""Transforms by themselves: inverses, Jacobians against those of autograd, caches, compositions; constraints of what they lead to; utilities of classes."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as tt

D = tt.distributions
T, C = D.transforms, D.constraints


def t(value: Any, requires_grad: bool = False) -> Any:
    return tt.tensor(value, dtype=tt.float64, requires_grad=requires_grad)


X = np.random.default_rng(2).standard_normal(6)
POINTWISE = [
    T.ExpTransform(), T.SigmoidTransform(), T.TanhTransform(), T.SoftplusTransform(), T.AffineTransform(0.5, -2.0), T.AffineTransform(t(0.5), t(3.0)),
    T.ComposeTransform([T.SigmoidTransform(), T.AffineTransform(1.0, 2.0), T.PowerTransform(t(1.5))]), T.CumulativeDistributionTransform(D.Cauchy(t(0.3), t(2.0))),
    T.ExpTransform().inv.inv, T.ComposeTransform([T.AffineTransform(0.0, 2.0), T.TanhTransform().inv.inv]), D.biject_to(C.less_than(3.0)), D.biject_to(C.interval(-1.0, 4.0)),
]  # fmt: skip
VECTORS = [T.StickBreakingTransform(), T.AffineTransform(t([0.1] * 3), t([1.0, -2.0, 0.5]), event_dim=1), T.IndependentTransform(T.TanhTransform(), 1),
           T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.StickBreakingTransform()]), T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], -1),
           T.CatTransform([T.ExpTransform(), T.TanhTransform()], -1, [1, 2])]  # fmt: skip


@pytest.mark.parametrize("transform", POINTWISE, ids=repr)
def test_the_jacobian_is_the_derivative(transform: Any) -> None:
    x = t(X, requires_grad=True)
    y = transform(x)
    (slope,) = tt.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(transform.log_abs_det_jacobian(x, y).detach().numpy(), slope.abs().log().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.inv(y).detach().numpy(), X, rtol=1e-9)
    assert (slope.sign() == transform.sign).all()
    assert transform.codomain.check(y).all()
    assert transform.domain.check(x).all()


@pytest.mark.parametrize("transform", VECTORS, ids=repr)
def test_the_jacobian_is_the_log_determinant(transform: Any) -> None:
    x = t(X[:3], requires_grad=True)
    y = transform(x)
    rows = np.stack([tt.autograd.grad(y[k], x, retain_graph=True)[0].numpy() for k in range(3)])
    found = transform.log_abs_det_jacobian(x, y).sum().item()
    assert found == pytest.approx(np.linalg.slogdet(rows)[1], rel=1e-9)
    np.testing.assert_allclose(transform.inv(y).detach().numpy(), X[:3], rtol=1e-8)


def test_correlations() -> None:
    transform = T.CorrCholeskyTransform()
    x = t(X, requires_grad=True)
    y = transform(x)  # (4, 4)
    assert C.corr_cholesky.check(y)
    np.testing.assert_allclose(transform.inv(y).detach().numpy(), X, rtol=1e-9)
    free = [(i, j) for i in range(4) for j in range(i)]
    rows = np.stack([tt.autograd.grad(y[i, j], x, retain_graph=True)[0].numpy() for i, j in free])
    assert transform.log_abs_det_jacobian(x, y).item() == pytest.approx(np.linalg.slogdet(rows)[1], rel=1e-9)


def test_extreme_numbers_stay_inside() -> None:
    far = t([-1e3, -40.0, 40.0, 1e3])
    for transform in (T.SigmoidTransform(), T.StickBreakingTransform(), T.CorrCholeskyTransform()):
        x = far if not isinstance(transform, T.CorrCholeskyTransform) else far[:3]
        y = transform(x)
        assert transform.codomain.check(y).all()
        assert transform.inv(y).isfinite().all()
    assert T.TanhTransform().log_abs_det_jacobian(far, far.tanh()).isfinite().all()


def test_caches() -> None:
    transform = T.ExpTransform(cache_size=1)
    x = t(X)
    y = transform(x)
    assert transform(x) is y
    assert transform.inv(y) is x
    assert transform.inv(t(X).exp()) is not x
    assert T.ExpTransform().inv(y) is not x
    together = T.ComposeTransform([T.ExpTransform(), T.AffineTransform(0.0, 2.0)], cache_size=1)
    assert together.inv(together(x)) is x
    again = pickle.loads(pickle.dumps(together))
    np.testing.assert_allclose(again(x).numpy(), 2 * np.exp(X))
    assert copy.deepcopy(transform) == transform


def test_inverses_keep_one_another() -> None:
    transform = T.ExpTransform()
    inverse = transform.inv
    assert transform.inv is inverse
    assert inverse.inv is transform
    del inverse
    gc.collect()
    assert transform.inv(t(1.0)).item() == 0.0


def test_transforms_of_ones_own() -> None:
    class Cube(T.Transform):
        domain = codomain = C.real
        bijective, sign = True, 1

        def _call(self, x: Any) -> Any:
            return x**3

        def _inverse(self, y: Any) -> Any:
            return y.sign() * y.abs() ** (1 / 3)

        def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
            return (3 * x * x).log()

    d = D.TransformedDistribution(D.Normal(t(0.0), t(1.0)), Cube())
    x = t([0.5, -2.0, 8.0])
    root = np.cbrt(x.numpy())
    np.testing.assert_allclose(d.log_prob(x).numpy(), D.Normal(t(0.0), t(1.0)).log_prob(t(root)).numpy() - np.log(3 * root**2))
    np.testing.assert_allclose(d.icdf(d.cdf(x)).numpy(), x.numpy(), rtol=1e-9)
    assert Cube().with_cache()._cache_size == 1


# -- distributions of one's own
def test_a_subclass_expands_as_it_is_told() -> None:
    class Twice(D.Normal):
        def __init__(self, loc: Any) -> None:
            super().__init__(2 * loc, tt.ones_like(loc))

    with pytest.raises(NotImplementedError, match="Twice is a Normal with an __init__ of its own"):
        Twice(t(1.0)).expand((2,))

    class Told(Twice):
        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self._get_checked_instance(Told, _instance))

    assert Told(t(1.0)).expand((2,)).loc.tolist() == [2.0, 2.0]


def test_a_bare_subclass() -> None:
    class Point(D.Distribution):
        arg_constraints = {"at": C.real}  # noqa: RUF012
        support = C.real

        def __init__(self, at: Any, validate_args: Any = None) -> None:
            self.at = at
            super().__init__(at.shape, validate_args=validate_args)

        def sample(self, sample_shape: Any = ()) -> Any:
            return self.at.expand(self._extended_shape(sample_shape))

    d = Point(t([1.0, 2.0]))
    assert repr(d) == "Point(at: tritensor.Size([2]))"
    assert d.sample((3,)).shape == (3, 2)
    with pytest.raises(ValueError, match="Point: the parameter at of shape"):
        Point(t(float("nan")))
    for name in ("mean", "variance", "stddev", "entropy", "mode"):
        with pytest.raises(NotImplementedError):
            getattr(d, name)() if name == "entropy" else getattr(d, name)
    with pytest.warns(UserWarning, match="no arg_constraints"):
        type("Silent", (D.Distribution,), {})(validate_args=True)


def test_the_default_of_checks() -> None:
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, -1.0).scale.item() == -1.0
        with pytest.raises(ValueError, match="scale"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(
        ValueError, match=r"Normal: the parameter scale of shape \(2,\) must satisfy GreaterThan\(lower_bound=0.0\); -1.0 at \[1\] does not"
    ):
        D.Normal(0.0, tt.tensor([1.0, -1.0]))


def test_numbers_beside_integer_tensors() -> None:
    d = D.Normal(tt.tensor([1, 2]), 1.5)
    assert d.scale.dtype is tt.float32
    assert d.log_prob(tt.tensor([1.0, 2.0])).dtype is tt.float32


def test_a_divergence_from_distributions_of_another_library() -> None:
    class Foreign:
        pass

    class Own(Foreign, D.Normal):
        pass

    D.register_kl(D.Normal, Foreign)(lambda p, q: t(7.0))
    try:
        assert D.kl_divergence(D.Normal(t(0.0), t(1.0)), Own(t(0.0), t(1.0))).item() == 7.0
    finally:
        del D.kl._KL_REGISTRY[D.Normal, Foreign]
        D.kl.registry._found.clear()


def test_divergences_of_ones_own() -> None:
    class Mine(D.Normal):
        pass

    a, b = Mine(t(0.0), t(1.0)), Mine(t(1.0), t(2.0))
    assert D.kl_divergence(a, b).item() == pytest.approx(D.kl_divergence(D.Normal(t(0.0), t(1.0)), D.Normal(t(1.0), t(2.0))).item())
    D.register_kl(Mine, Mine)(lambda p, q: t(7.0))
    try:
        assert D.kl_divergence(a, b).item() == 7.0
        D.register_kl(Mine, D.Normal)(lambda p, q: t(8.0))
        D.register_kl(D.Normal, Mine)(lambda p, q: t(9.0))
        del D.kl._KL_REGISTRY[Mine, Mine]
        D.kl.registry._found.clear()
        with pytest.warns(RuntimeWarning, match="fit as well as each other"):
            assert D.kl_divergence(a, b).item() == 8.0
    finally:
        for pair in ((Mine, Mine), (Mine, D.Normal), (D.Normal, Mine)):
            D.kl._KL_REGISTRY.pop(pair, None)
        D.kl.registry._found.clear()


def test_divergences_agree_with_averages() -> None:
    tt.manual_seed(4)
    n = 20000
    pairs = [
        (D.Binomial(3, t(0.3)), D.Binomial(5, t(0.4))), (D.Uniform(t(0.1), t(0.8)), D.ContinuousBernoulli(t(0.3))), (D.ContinuousBernoulli(t(0.3)), D.Uniform(t(-0.5), t(1.5))),
        (D.Pareto(t(1.0), t(5.0)), D.Gamma(t(2.0), t(1.0))), (D.Gumbel(t(0.3), t(0.5)), D.Gumbel(t(0.0), t(1.0))), (D.Beta(t(2.0), t(3.0)), D.ContinuousBernoulli(t(0.6))),
        (D.Normal(t(0.3), t(0.5)), D.Laplace(t(0.0), t(1.0))), (D.Exponential(t(2.0)), D.Gumbel(t(0.0), t(1.0))), (D.Bernoulli(t(0.3)), D.Poisson(t(0.5))),
        (D.Cauchy(t(0.3), t(0.5)), D.Cauchy(t(0.0), t(1.0))), (D.Geometric(t(0.3)), D.Geometric(t(0.5))), (D.Uniform(t(0.5), t(0.9)), D.Pareto(t(0.4), t(2.0))),
    ]  # fmt: skip
    for p, q in pairs:
        x = p.sample((n,))
        each = (p.log_prob(x) - q.log_prob(x)).numpy()
        assert abs(each.mean() - D.kl_divergence(p, q).item()) < 5 * each.std() / n**0.5 + 1e-12, (p, q)


def test_it_is_imported_when_it_is_asked_for() -> None:
    import subprocess
    import sys

    code = (
        "import sys, tritensor as tt; assert 'tritensor.distributions' not in sys.modules; tt.distributions.Normal(0, 1); "
        "from tritensor.distributions.normal import Normal; from tritensor.distributions.utils import broadcast_all; assert Normal is tt.distributions.Normal"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize(
    ("exponent", "y"), [(1000.0, 0.002), (1000.0, 2.0), (-500.0, 3.0), (0.001, 1.007), (30.0, 1e-30), (1.0, 5.0), (-1.0, 0.25)]
)
def test_the_slope_of_a_power_keeps_its_digits(exponent: float, y: float) -> None:
    """x is near 1 where the exponent is large, and (e - 1) log x would be its rounding times e: log |e y / x| is that of float64, and its slope by e, too."""
    y, e = float(np.float32(y)), tt.tensor(exponent, requires_grad=True)
    power = T.PowerTransform(e)
    given = tt.tensor(y)
    found = power.log_abs_det_jacobian(power.inv(given), given)
    found.backward()
    assert found.item() == pytest.approx(np.log(abs(exponent)) + (1 - 1 / exponent) * np.log(y), rel=3e-7)
    assert e.grad.item() == pytest.approx(1 / exponent + np.log(y) / exponent**2, rel=3e-5)


def test_the_slope_of_a_power_that_the_type_cannot_hold() -> None:
    power, x = T.PowerTransform(tt.tensor(40.0)), tt.tensor([1e-3, 1e3])
    found = power.log_abs_det_jacobian(x, power(x))
    np.testing.assert_allclose(found.numpy(), np.log(40.0) + 39 * np.log([1e-3, 1e3]), rtol=1e-6)


def test_a_weibull_of_a_small_concentration_keeps_its_digits() -> None:
    k = tt.tensor(0.001, requires_grad=True)
    p = D.Weibull(tt.tensor(1.0), k).log_prob(tt.tensor(2.0))
    p.backward()
    assert p.item() == pytest.approx(-8.600902652326656, rel=1e-6)
    assert k.grad.item() == pytest.approx(999.9994718829436, rel=1e-6)
