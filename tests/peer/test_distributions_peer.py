"""Distributions, transforms, constraints and divergences beside torch's: values, shapes, types, gradients, what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.distributions import kl as their_kl

import tritensor as tt
from tests.distributions.examples import EXAMPLES, IDS, Example
from tritensor.distributions import kl as our_kl
from tritensor.ops.table import ops

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

# What torch answers otherwise, with the reason: {(class, what)}.
OTHERWISE = {
    ("GeneralizedPareto", "variance"): "NaN there where it is infinite",
    ("GeneralizedPareto", "stddev"): "its root",
    ("GeneralizedPareto", "log_prob"): "RuntimeError there in float64",
    ("GeneralizedPareto", "cdf"): "as above",
    ("GeneralizedPareto", "gradients"): "as above",
    ("Kumaraswamy", "mode"): "log1p of what is below -1 there: always NaN",
    ("Multinomial", "entropy"): "float32's lgamma in float64 there, and AttributeError after expand",
    ("Multinomial", "perplexity"): "as above",
}
# Fewer digits there: polynomials for float32 stand for the Bessel functions.
LOOSE = {"VonMises": 1e-3}


class Raised(NamedTuple):
    """What was raised instead of an answer: its class, among those that programs catch."""

    classes: frozenset[type]


CAUGHT = (NotImplementedError, ValueError, IndexError, AttributeError, TypeError, RuntimeError)


def answer(f: Callable[[], Any]) -> Any:
    """A value, or what is raised."""
    try:
        return f()
    except CAUGHT as error:
        return Raised(frozenset(c for c in CAUGHT if isinstance(error, c)))


def plain(x: Any) -> Any:
    return x.detach().numpy() if hasattr(x, "detach") else x


def unlike(theirs: Any, ours: Any, loose: float = 1e-9) -> str:
    """What differs, or ""."""
    a, b = plain(theirs), plain(ours)
    if isinstance(a, Raised) and isinstance(b, Raised):
        return "" if a.classes <= b.classes else f"{a!r} there, {b!r} here"
    if isinstance(a, np.ndarray) != isinstance(b, np.ndarray):
        return f"{a!r} there, {b!r} here"
    if not isinstance(a, np.ndarray):
        return "" if a == b else f"{a!r} there, {b!r} here"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.shape} {a.dtype} there, {b.shape} {b.dtype} here"
    return "" if np.allclose(a, b, rtol=loose, atol=loose, equal_nan=True) else f"{a} there, {b} here"


def named(x: Any) -> str:
    return repr(x).replace("tritensor", "torch").replace("torch.Size(", "Size(").replace(", dtype=torch.float64", "")


def questions(d: Any, library: Any, x: Any) -> dict[str, Any]:
    """All that can be asked of a distribution, of values x."""
    u = library.tensor(np.linspace(0.05, 0.95, 4).reshape((4,) + (1,) * len(d.batch_shape)))
    found: dict[str, Any] = {n: answer(lambda n=n: getattr(d, n)) for n in ("mean", "mode", "variance", "stddev")}  # type: ignore[misc]
    found |= {n: answer(lambda n=n: getattr(d, n)()) for n in ("entropy", "perplexity")}  # type: ignore[misc]
    found |= {n: answer(lambda n=n: getattr(d, n)(x)) for n in ("log_prob", "cdf")}  # type: ignore[misc]
    found["icdf"] = answer(lambda: d.icdf(u))
    found["support"] = answer(lambda: d.support.check(x))
    found["support's name"] = named(answer(lambda: d.support)).split("tensor(")[0].split("grad_fn")[0]
    for spread in (True, False):
        found[f"enumerate_support {spread}"] = answer(lambda spread=spread: d.enumerate_support(spread))  # type: ignore[misc]
    for n in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        found[n] = getattr(d, n) if n.startswith("has") else tuple(getattr(d, n))
    for draw in ("sample", "rsample"):
        for shape in ((), (3,), (2, 3)):
            drawn = answer(lambda draw=draw, shape=shape: getattr(d, draw)(shape))  # type: ignore[misc]
            found[f"{draw} {shape}"] = (
                drawn if isinstance(drawn, Raised) else (tuple(drawn.shape), str(drawn.dtype).split(".")[-1], drawn.requires_grad)
            )
    return found


def differences(name: str, theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    told = [(k, unlike(theirs[k], ours[k], LOOSE.get(name, 1e-9))) for k in theirs if (name, k) not in OTHERWISE]
    return [f"{k}: {words}" for k, words in told if words]


def values(example: Example) -> tuple[Any, Any, Any]:
    """torch's distribution, and four draws of it for each library."""
    torch.manual_seed(0)
    theirs, _ = example.of(torch, requires_grad=True)
    x = theirs.sample((4,)).detach()
    return theirs, x, tt.tensor(x.numpy())


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_answers(example: Example) -> None:
    theirs, ours = (example.of(library, requires_grad=True)[0] for library in (torch, tt))
    batch = (2, *theirs.batch_shape)
    assert named(theirs) == named(ours)
    assert named(theirs.expand(batch)).split("grad_fn")[0] == named(ours.expand(batch)).split("grad_fn")[0]
    theirs, x, ours_x = values(example)
    assert differences(example.name, questions(theirs, torch, x), questions(ours, tt, ours_x)) == []
    theirs, ours = theirs.expand(batch), ours.expand(batch)
    x, ours_x = torch.stack([x, x], 1), tt.stack([ours_x, ours_x], 1)
    assert differences(example.name, questions(theirs, torch, x), questions(ours, tt, ours_x)) == []


def gradients(library: Any, d: Any, parameters: tuple[Any, ...], x: Any) -> list[Any]:
    """First and second derivatives of log_prob by the parameters."""
    first = library.autograd.grad(d.log_prob(x).sum(), parameters, create_graph=True, allow_unused=True)
    square = sum((g * g).sum() for g in first if g is not None)
    if not getattr(square, "requires_grad", False):
        return list(first)
    return [*first, *library.autograd.grad(square, parameters, allow_unused=True)]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_gradients_of_log_prob(example: Example) -> None:
    if (example.name, "gradients") in OTHERWISE:
        return
    _, x, ours_x = values(example)
    theirs, a = example.of(torch, requires_grad=True)
    ours, b = example.of(tt, requires_grad=True)
    there, here = gradients(torch, theirs, a, x), gradients(tt, ours, b, ours_x)
    for g, h in zip(there, here, strict=False):
        both = [np.zeros(()) if v is None else plain(v) for v in (g, h)]
        np.testing.assert_allclose(
            both[1] + 0 * both[0],
            both[0] + 0 * both[1],
            rtol=1e-3 if example.name in LOOSE else 1e-8,
            atol=1e-4 if example.name in LOOSE else 1e-8,
        )


def test_float32_is_float32_there_and_here() -> None:
    for example in EXAMPLES:
        theirs, _ = example.of(torch, dtype="float32")
        ours, _ = example.of(tt, dtype="float32")
        torch.manual_seed(0)
        x = theirs.sample((4,))
        there, here = (questions(d, lib, v) for d, lib, v in ((theirs, torch, x), (ours, tt, tt.tensor(x.numpy()))))
        for k in ("mean", "variance", "entropy", "log_prob", "sample (3,)"):
            if (example.name, k) not in OTHERWISE and not isinstance(there[k], Raised):
                assert not unlike(there[k], here[k], 2e-3 if example.name in LOOSE else 1e-4), (example, k, unlike(there[k], here[k], 1e-4))


def test_how_draws_move_with_their_concentration() -> None:
    """torch approximates these; three digits are what it has."""
    torch.manual_seed(0)
    for a in (0.1, 0.5, 3.0, 30.0, 1000.0):
        alpha = torch.full((500,), a, dtype=torch.float64)
        x = torch._standard_gamma(alpha)
        here = ops.standard_gamma_grad(tt.tensor(alpha.numpy()), tt.tensor(x.numpy()))
        np.testing.assert_allclose(here.numpy(), torch._standard_gamma_grad(alpha, x).numpy(), rtol=2e-3)
    for a, b in ((0.5, 0.5), (2.0, 3.0), (50.0, 60.0)):
        alpha, total = torch.full((500,), a, dtype=torch.float64), torch.full((500,), a + b, dtype=torch.float64)
        x = torch._sample_dirichlet(torch.stack([alpha, total - alpha], -1))[:, 0].contiguous()
        here = ops.dirichlet_grad(*(tt.tensor(v.numpy()) for v in (x, alpha, total)))
        np.testing.assert_allclose(here.numpy(), torch._dirichlet_grad(x, alpha, total).numpy(), rtol=5e-3)


# -- divergences
def test_the_same_pairs_are_registered() -> None:
    pairs = [{(p.__name__, q.__name__) for p, q in registry} for registry in (their_kl._KL_REGISTRY, our_kl._KL_REGISTRY)]
    assert pairs[0] == pairs[1]


# {(p, q)}: there infinite although [0, 1] is covered exactly; refused there where q counts more trials than p.
PAIRS_OTHERWISE = {("Uniform", "ContinuousBernoulli"), ("ContinuousBernoulli", "Uniform"), ("Binomial", "Binomial")}


def test_divergences() -> None:
    made = [(e, e.of(torch)[0], e.of(tt)[0]) for e in EXAMPLES]
    asked = 0
    for first, p, ours_p in made:
        for second, q, ours_q in made:
            if q.batch_shape != p.batch_shape or ((first.name, second.name) in PAIRS_OTHERWISE and first != second):
                continue  # torch does not broadcast its masks
            there, here = answer(partial(their_kl.kl_divergence, p, q)), answer(partial(our_kl.kl_divergence, ours_p, ours_q))
            assert not unlike(there, here, 1e-8), (first, second, unlike(there, here, 1e-8))
            asked += not isinstance(there, Raised)
    assert asked > 200


def test_gradients_of_divergences() -> None:
    for expression in ("Normal", "Gamma", "Beta", "Laplace", "Gumbel"):
        for other in ("Normal", "Gamma", "Exponential", "Beta", expression):
            made = []
            for library in (torch, tt):
                a, b, c, d = (library.tensor(v, dtype=library.float64, requires_grad=True) for v in (0.7, 1.3, 0.4, 2.2))
                p = getattr(library.distributions, expression)(a, b)
                q = library.distributions.Exponential(c) if other == "Exponential" else getattr(library.distributions, other)(c, d)
                divergence = answer(partial(library.distributions.kl_divergence, p, q))
                if not isinstance(divergence, Raised) and np.isfinite(plain(divergence)):
                    made.append([g for g in library.autograd.grad(divergence, (a, b, c, d), allow_unused=True) if g is not None])
                else:
                    made.append([])
            np.testing.assert_allclose([plain(g) for g in made[1]], [plain(g) for g in made[0]], rtol=1e-8)


# -- transforms: T the transforms, D distributions, C constraints, t makes float64 tensors; and what x is
TRANSFORMS: list[tuple[str, Any]] = [
    ("T.ExpTransform()", (3,)), ("T.PowerTransform(2.5)", "positive"), ("T.PowerTransform(t([0.5, -2.0, 3.0]))", "positive"), ("T.SigmoidTransform()", (3,)),
    ("T.SoftplusTransform()", (3,)), ("T.TanhTransform()", (3,)), ("T.AbsTransform()", (3,)), ("T.AffineTransform(1.0, -2.0)", (3,)),
    ("T.AffineTransform(t([1.0, 2.0, 3.0]), t([-2.0, 0.5, 1.0]))", (3,)), ("T.AffineTransform(0.5, t([-2.0, 0.5, 1.0]), event_dim=1)", (2, 3)),
    ("T.AffineTransform(0, 3.0, event_dim=1)", (2, 3)), ("T.SoftmaxTransform()", (2, 3)), ("T.StickBreakingTransform()", (2, 3)),
    ("T.CorrCholeskyTransform()", (2, 6)), ("T.LowerCholeskyTransform()", (2, 3, 3)), ("T.PositiveDefiniteTransform()", (2, 3, 3)),
    ("T.ReshapeTransform((2, 3), (6,))", (4, 2, 3)), ("T.IndependentTransform(T.ExpTransform(), 1)", (2, 3)),
    ("T.IndependentTransform(T.AffineTransform(t([1.0, 2.0, 3.0]), 2.0), 2)", (2, 3)),
    ("T.CatTransform([T.ExpTransform(), T.identity_transform], dim=-1, lengths=[1, 2])", (2, 3)),
    ("T.CatTransform([T.IndependentTransform(T.ExpTransform(), 1), T.IndependentTransform(T.TanhTransform(), 1)], dim=0)", (2, 3)),
    ("T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], dim=-1)", (2, 3)),
    ("T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])", (3,)),
    ("T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.StickBreakingTransform()])", (2, 3)),
    ("T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.ReshapeTransform((6,), (2, 3)), T.IndependentTransform(T.ExpTransform(), 1)])", (4, 6)),
    ("T.ExpTransform().inv", "positive"), ("T.ComposeTransform([T.ExpTransform(), T.AffineTransform(-1.0, 2.0)]).inv", "positive"),
    ("T.CumulativeDistributionTransform(D.Normal(t(0.5), t(2.0)))", (3,)), ("T.CumulativeDistributionTransform(D.Gumbel(t(0.5), t(2.0)))", (3,)),
    ("T.ComposeTransform([])", (3,)), ("D.biject_to(C.interval(-1.0, t([1.0, 2.0, 3.0])))", (3,)), ("D.biject_to(C.less_than(2.0))", (3,)),
    ("D.biject_to(C.simplex)", (2, 3)), ("D.transform_to(C.simplex)", (2, 3)), ("D.biject_to(C.cat([C.positive, C.unit_interval], -1, [2, 1]))", (2, 3)),
    ("D.transform_to(C.stack([C.positive, C.unit_interval, C.real], -1))", (2, 3)), ("D.biject_to(C.independent(C.positive, 1))", (2, 3)),
    ("D.transform_to(C.positive_semidefinite)", (3, 3)), ("D.biject_to(C.boolean)", (3,)), ("D.biject_to(C.lower_cholesky)", (3, 3)),
]  # fmt: skip


def world(library: Any) -> dict[str, Any]:
    d = library.distributions
    return {"T": d.transforms, "D": d, "C": d.constraints, "L": library, "t": lambda v: library.tensor(v, dtype=library.float64)}


def asked_of_transform(expression: str, library: Any, x: np.ndarray) -> dict[str, Any]:
    t = answer(lambda: eval(expression, world(library)))
    if isinstance(t, Raised):
        return {"made": t}
    given = library.tensor(x, requires_grad=True)
    y = answer(lambda: t(given))
    found = {
        "y": y,
        "x": answer(lambda: t.inv(y)),
        "jacobian": answer(lambda: t.log_abs_det_jacobian(given, y)),
        "name": repr(t),
        "inverse": repr(t.inv),
    }
    found["jacobian of the inverse"] = answer(lambda: t.inv.log_abs_det_jacobian(y, given))
    for n in ("event_dim", "bijective", "sign"):
        found[n] = answer(lambda n=n: getattr(t, n))  # type: ignore[misc]
    for n in ("domain", "codomain"):
        c = getattr(t, n)
        found |= {n: named(c), n + " dim": answer(lambda c=c: c.event_dim), n + " discrete": answer(lambda c=c: c.is_discrete)}  # type: ignore[misc]
    found["codomain holds y"] = answer(lambda: t.codomain.check(y))
    for shape in ((), (3,), (6,), (2, 3), (4, 4), (5,), (7, 2, 3)):
        for n in ("forward_shape", "inverse_shape"):
            found[f"{n} {shape}"] = answer(lambda n=n, shape=shape: tuple(getattr(t, n)(shape)))  # type: ignore[misc]
    cached = t.with_cache(1)
    found["cached"] = answer(lambda: cached.inv(cached(given)) is given)
    again = eval(expression, world(library))
    found |= {
        "equal": t == again,
        "inverses equal": t.inv == again.inv,
        "inverse of inverse": t.inv.inv is t,
    }
    if not isinstance(found["jacobian"], Raised):
        g = library.autograd.grad(found["jacobian"].sum() + (y * y).sum(), given)[0]
        found["gradient"] = g
    return found


@pytest.mark.parametrize(("expression", "shape"), TRANSFORMS, ids=lambda v: v if isinstance(v, str) and "(" in v else "")
def test_transforms(expression: str, shape: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.2, 3.0, (2, 3)) if shape == "positive" else rng.standard_normal(shape)
    there, here = asked_of_transform(expression, torch, x), asked_of_transform(expression, tt, x)
    assert [f"{k}: {words}" for k in there if (words := unlike(there[k], here[k], 1e-7))] == []


# -- constraints, of good values and bad ones
CONSTRAINTS = [
    "C.real.check(t([1.0, float('nan'), float('inf')]))", "C.boolean.check(t([0.0, 1.0, 0.5]))", "C.positive.check(t([0.0, 1.0, -1.0]))",
    "C.nonnegative.check(t([0.0, 1.0, -1.0]))", "C.unit_interval.check(t([0.0, 1.0, 1.1]))", "C.interval(-1.0, t([1.0, 2.0])).check(t([1.5, 1.5]))",
    "C.half_open_interval(0, 1).check(t([0.0, 1.0]))", "C.less_than(1).check(t([0.0, 1.0]))", "C.integer_interval(1, 3).check(t([0.0, 1.0, 1.5, 3.0]))",
    "C.nonnegative_integer.check(t([0.0, 0.5, -1.0]))", "C.positive_integer.check(L.tensor([0, 1]))", "C.simplex.check(t([[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]]))",
    "C.one_hot.check(t([[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]))", "C.multinomial(3).check(t([[1.0, 2.0], [3.0, 1.0], [-1.0, 1.0]]))",
    "C.lower_triangular.check(t([[1.0, 0.0], [2.0, 3.0]]))", "C.lower_triangular.check(t([[1.0, 0.5], [2.0, 3.0]]))",
    "C.lower_cholesky.check(t([[1.0, 0.0], [2.0, -3.0]]))", "C.corr_cholesky.check(t([[1.0, 0.0], [0.6, 0.8]]))", "C.corr_cholesky.check(t([[1.0, 0.0], [0.6, 0.9]]))",
    "C.square.check(L.ones(2, 3))", "C.square.check(L.ones(4, 3, 3))", "C.symmetric.check(t([[1.0, 0.5], [0.5, 1.0]]))", "C.symmetric.check(t([[1.0, 0.5], [0.4, 1.0]]))",
    "C.positive_semidefinite.check(t([[1.0, 1.0], [1.0, 1.0]]))", "C.positive_semidefinite.check(t([[1.0, 2.0], [2.0, 1.0]]))",
    "C.positive_definite.check(t([[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]))", "C.positive_definite.check(L.ones(2, 3))",
    "C.cat([C.real, C.positive], 0).check(t([-1.0, -1.0]))", "C.cat([C.real, C.positive], -1, [1, 2]).check(t([-1.0, -1.0, 2.0]))",
    "C.stack([C.real, C.positive], -1).check(t([[-1.0, -1.0]]))", "C.stack([C.real, C.simplex], 0).event_dim", "C.cat([C.real, C.simplex], 0).event_dim",
    "C.stack([C.real, C.boolean]).is_discrete", "C.independent(C.positive, 1).check(t([[1.0, -1.0], [1.0, 1.0]]))", "C.independent(C.real, 1).check(t(1.0))",
    "C.MixtureSameFamilyConstraint(C.positive).check(t([1.0, -1.0]))", "C.dependent.event_dim", "C.dependent.is_discrete", "C.dependent.check(t(1.0))",
    "C.dependent(event_dim=1).event_dim", "C.is_dependent(C.dependent)", "C.is_dependent(D.Uniform.support)", "C.is_dependent(C.real)", "C.Constraint().check(t(1.0))",
    "D.Categorical.support.event_dim", "D.Multinomial.support.event_dim", "D.Categorical.support.is_discrete", "D.biject_to(3)",
    "repr([C.real, C.real_vector, C.positive, C.interval(0, 1), C.dependent, C.cat([C.real]), C.stack([C.real]), C.independent(C.dependent, 2), C.one_hot, C.square])",
]  # fmt: skip
# -- mistakes: what raises there raises an error of the same class here
MISTAKES = [
    "D.Normal('a', 1)", "D.Normal(0.0, -1.0)", "D.Normal(t([1.0, 2.0, 3.0]), t([1.0, 2.0]))", "D.Normal(0.0, 1.0).log_prob(1.0)", "D.Normal(float('nan'), 1.0)",
    "D.Normal(t([0.0, 1.0]), 1.0).log_prob(t([0.0, 1.0, 2.0]))", "D.Normal(0.0, 1.0).sample(2)", "D.Normal(0.0, 1.0).enumerate_support()", "D.Bernoulli()",
    "D.Bernoulli(0.3, 0.4)", "D.Bernoulli(1.3)", "D.Bernoulli(0.3).log_prob(t(0.5))", "D.Bernoulli(0.5).rsample()", "D.Bernoulli(0.5).cdf(t(1.0))",
    "D.Dirichlet(t(1.0))", "D.Dirichlet(t([1.0, 2.0])).log_prob(t([0.2, 0.3, 0.5]))", "D.Dirichlet(t([1.0, 2.0])).log_prob(t([0.2, 0.3]))", "D.Categorical()",
    "D.Categorical(t(1.0))", "D.Categorical(t([1.0, 2.0])).log_prob(t(2))", "D.Categorical(t([-1.0, 2.0]))", "D.MultivariateNormal(t([0.0, 0.0]))",
    "D.MultivariateNormal(t(0.0), t([[1.0]]))", "D.MultivariateNormal(t([0.0, 0.0]), t([1.0, 0.0]))", "D.MultivariateNormal(t([0.0, 0.0]), -L.eye(2))",
    "D.MultivariateNormal(t([0.0, 0.0]), scale_tril=L.ones(2, 2))", "D.Uniform(1.0, 0.0)", "D.Uniform(0.0, 1.0).log_prob(t(2.0))", "D.Multinomial(t([3.0]), t([0.5, 0.5]))",
    "D.Binomial(t([3.0, 4.0]), t([0.5, 0.5])).enumerate_support()", "D.Geometric(t([0.0, 0.5]))", "D.Independent(D.Normal(0.0, 1.0), 1)", "D.LKJCholesky(1)",
    "D.MixtureSameFamily(D.Categorical(L.ones(3)), D.Normal(L.zeros(2), 1.0))", "D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(L.zeros(2), 1.0))",
    "D.MixtureSameFamily(D.Categorical(L.ones(2)), 3)", "D.Wishart(t(1.0), L.eye(2))", "D.LowRankMultivariateNormal(L.zeros(2), L.ones(3, 1), L.ones(2))",
    "D.LowRankMultivariateNormal(L.zeros(2), L.ones(2, 1), L.ones(3))", "D.TransformedDistribution(D.Normal(0.0, 1.0), 3)", "D.TransformedDistribution(D.Normal(0.0, 1.0), [3])",
    "D.TransformedDistribution(D.Normal(0.0, 1.0), T.StickBreakingTransform())", "D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0))",
    "D.kl_divergence(D.Independent(D.Normal(L.zeros(2, 2), 1.0), 1), D.Independent(D.Normal(L.zeros(2, 2), 1.0), 2))", "D.Distribution().mean", "D.Distribution().expand((2,))",
    "D.Distribution().support", "D.Distribution().entropy()", "T.ExpTransform(2)", "T.AbsTransform().sign", "T.CorrCholeskyTransform().event_dim", "T.ReshapeTransform((2, 3), (5,))",
    "T.Transform()(t(1.0))", "D.Distribution.set_default_validate_args(3)", "D.RelaxedBernoulli(t(1.0))", "D.NegativeBinomial(3.0, t(1.0))", "D.Poisson(-1.0)", "D.VonMises(0.0, 0.0)",
]  # fmt: skip


@pytest.mark.parametrize("expression", [*CONSTRAINTS, *MISTAKES])
def test_constraints_and_mistakes(expression: str) -> None:
    for library in (torch, tt):  # a switch of the process, which other tests may have left off
        library.distributions.Distribution.set_default_validate_args(True)
    there, here = (answer(lambda library=library: eval(expression, world(library))) for library in (torch, tt))  # type: ignore[misc]
    assert not (expression in MISTAKES and not isinstance(there, Raised))
    assert not unlike(there, here), unlike(there, here)


def test_the_same_names_and_paths() -> None:
    import importlib

    assert sorted(torch.distributions.__all__) == sorted(tt.distributions.__all__)
    for name in ("constraints", "transforms", "kl"):
        theirs, ours = (importlib.import_module(f"{library}.distributions.{name}") for library in ("torch", "tritensor"))
        assert sorted(getattr(theirs, "__all__", [])) == sorted(ours.__all__)
    for name in torch.distributions.__all__:
        home = getattr(torch.distributions, name).__module__ if isinstance(getattr(torch.distributions, name), type) else ""
        if home and home != "torch.distributions":
            assert getattr(importlib.import_module(home.replace("torch", "tritensor")), name) is getattr(tt.distributions, name)


def test_the_tools_of_distributions() -> None:
    from torch.distributions import utils as theirs

    from tritensor.distributions import utils as ours

    x = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])
    for tool, options in (
        ("probs_to_logits", (True,)),
        ("probs_to_logits", ()),
        ("logits_to_probs", (True,)),
        ("logits_to_probs", ()),
        ("clamp_probs", ()),
    ):
        assert not unlike(getattr(theirs, tool)(torch.tensor(x), *options), getattr(ours, tool)(tt.tensor(x), *options))
    square = np.arange(18.0).reshape(2, 3, 3)
    for diag in (-2, -1, 0, 1, 2):
        there, here = theirs.tril_matrix_to_vec(torch.tensor(square), diag), ours.tril_matrix_to_vec(tt.tensor(square), diag)
        assert not unlike(there, here)
        assert not unlike(theirs.vec_to_tril_matrix(there, diag), ours.vec_to_tril_matrix(here, diag))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [tuple(v.shape) for v in ours.broadcast_all(1.0, tt.zeros(2, 1), tt.zeros(3))] == [(2, 3)] * 3
