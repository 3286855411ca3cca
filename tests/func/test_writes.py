"""Writes in place under every transform, beside the same function without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.func.writes import ARGUMENTS, DOMAINS, LEFT_OUT, STEPS, TWINS, Step, methods
from tritensor.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from tritensor.func.forward_ad import dual_level, make_dual, unpack_dual
from tritensor.ground.errors import TransformError

F = tt.nn.functional
Function = Callable[[Any], Any]


def drawn(seed: int) -> tt.Tensor:
    return tt.from_numpy(np.random.default_rng(seed).uniform(0.1, 0.9, (3, 4)))


X, T, W = drawn(0), drawn(1), drawn(2)


def scalar(g: Function) -> Function:
    return lambda x: (g(x) * W).sum()


def twice(g: Function) -> tt.Tensor:
    """The ordinary graph, differentiated again."""
    x = X.clone().requires_grad_()
    (first,) = tt.autograd.grad(scalar(g)(x) + 0 * x.sum() ** 3, x, create_graph=True)
    return tt.autograd.grad((first * T).sum(), x)[0]


def by_duals(g: Function) -> tt.Tensor:
    with dual_level():
        found = unpack_dual(g(make_dual(X.clone(), T.clone()))).tangent
        return tt.zeros(()) if found is None else found


TRANSFORMS: dict[str, Callable[[Function], Any]] = {
    "grad of grad": lambda g: grad(lambda x: (grad(scalar(g))(x) * T).sum())(X),
    "vmap of grad": lambda g: vmap(grad(scalar(g)), 1)(tt.stack([X, T], 1)),
    "jacrev of jacfwd": lambda g: jacrev(jacfwd(scalar(g)))(X),
    "jvp along a transposed tangent": lambda g: jvp(g, (X.clone(),), (T.t().contiguous().t(),))[1],
}
MORE: dict[str, Callable[[Function], Any]] = {
    "hessian": lambda g: hessian(scalar(g))(X),
    "grad": lambda g: grad(scalar(g))(X),
    "vmap": lambda g: vmap(g)(tt.stack([X, T])),
    "grad of vmap": lambda g: grad(lambda x: (vmap(g)(x) * W).sum())(tt.stack([X, T])),
    "vjp": lambda g: vjp(g, X)[1](T)[0],
    "jacfwd": lambda g: jacfwd(g)(X),
    "jacrev": lambda g: jacrev(g)(X),
    "jacrev of jacrev": lambda g: jacrev(jacrev(scalar(g)))(X),
    "jacfwd of jacfwd": lambda g: jacfwd(jacfwd(scalar(g)))(X),
    "jvp of jvp": lambda g: jvp(lambda x: jvp(g, (x,), (T,))[1], (X,), (T,))[1],
    "grad of jvp": lambda g: grad(lambda x: (jvp(g, (x,), (T,))[1] * W).sum())(X),
    "jvp of grad": lambda g: jvp(grad(scalar(g)), (X,), (T,))[1],
    "vmap of hessian": lambda g: vmap(hessian(scalar(g)))(tt.stack([X, T])),
    "linearize": lambda g: linearize(g, X)[1](T),
    "functionalize": lambda g: functionalize(g)(X),
    "duals": by_duals,
    "the ordinary graph": twice,
}
LAYOUTS: dict[str, Function] = {
    "as it is": lambda y: y,
    "a window": lambda y: F.pad(y, (1, 1))[:, 1:5],
    "transposed": lambda y: y.t().contiguous().t(),
}


def program(step: Step, layout: Function) -> Function:
    return lambda x: step(layout(x * 1.1), (x * 1.7).sin() * 0.9)


def asked(transform: Callable[[Function], Any], name: str, layout: Function) -> None:
    written, plain = STEPS[name]
    want = transform(program(lambda y, z: plain(y, z) * 1.0, layout))  # a float where a comparison gives bools, as the write does
    got = transform(program(written, layout))
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), 1e-9, 1e-10)


@pytest.mark.parametrize("name", STEPS)
def test_writes(name: str) -> None:
    for k, transform in enumerate(TRANSFORMS.values()):
        asked(transform, name, list(LAYOUTS.values())[k % 2])


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("transform", [*TRANSFORMS, *MORE])
def test_writes_under_every_transform(transform: str, layout: str) -> None:
    for name in STEPS:
        asked({**TRANSFORMS, **MORE}[transform], name, LAYOUTS[layout])


def test_every_method_is_asked() -> None:
    """A new method that writes gets arguments in ARGUMENTS where it takes some, or a line in LEFT_OUT."""
    assert {*LEFT_OUT, *ARGUMENTS, *DOMAINS, *TWINS} <= set(methods())
    asked_for = {name for name in methods() if name in STEPS} | set(LEFT_OUT)
    assert asked_for == set(methods())


def test_the_hessian_of_an_activation_in_place() -> None:
    """silu'' = s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x), by the chain rule of x * 1.3."""
    x = np.array([0.5, -1.0, 2.0])
    s = 1 / (1 + np.exp(-1.3 * x))
    want = np.diag(1.3**2 * s * (1 - s) * (2 + 1.3 * x * (1 - 2 * s)))
    found = hessian(lambda y: F.silu(y * 1.3, inplace=True).sum())(tt.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), want, 1e-9)


@pytest.mark.parametrize("write", [lambda x: x.mul_(0), lambda x: F.relu(x, inplace=True), lambda x: x.__setitem__(0, 0.0)])
def test_a_refused_write_leaves_the_tangent_as_it_was(write: Function) -> None:
    x, t = X.clone(), T.clone()
    with pytest.raises(tt.GradError, match="leaf that requires grad"):
        grad(lambda y: jvp(lambda z: (write(z), z.sum())[1], (y,), (t,))[0])(x)
    assert (x == X).all()
    assert (t == T).all()


def test_a_write_leaves_the_tangents_of_others_alone() -> None:
    """x + 1 has x's tangent, in memory of its own."""
    x, t = tt.tensor([1.0, 2.0]), tt.tensor([3.0, 5.0])

    def f(y: tt.Tensor) -> tuple[tt.Tensor, ...]:
        z, w = y + 1, y.expand(3, 2) + tt.zeros(3, 2)
        z.mul_(10)
        w.zero_()
        return y * 1, z

    _, (first, second) = jvp(f, (x,), (t,))
    assert first.tolist() == [3.0, 5.0]
    assert second.tolist() == [30.0, 50.0]
    _, (first, second) = jvp(lambda a, b: (a.mul_(10), b * 1), (x.clone(), x.clone()), (t, t))
    assert (first.tolist(), second.tolist()) == ([30.0, 50.0], [3.0, 5.0])


def test_a_view_that_was_written_is_differentiated_twice() -> None:
    """(sin(1.1 x - 0.5))'' = -1.21 sin(1.1 x - 0.5), through a view of what is written."""
    x = tt.tensor([0.3, 0.7], dtype=tt.float64)

    def f(y: tt.Tensor) -> tt.Tensor:
        part = (y * 1.1)[:]
        part.sub_(0.5)
        return part.sin().sum()

    found = grad(lambda y: grad(f)(y).sum())(x)
    np.testing.assert_allclose(found.numpy(), -1.21 * np.sin(1.1 * np.array([0.3, 0.7]) - 0.5), 1e-12)


WIDE, ONE = tt.ones(2, 3), tt.ones(3)


@pytest.mark.parametrize(
    "write",
    [
        lambda same, each: same.add_(each),
        lambda same, each: same.mul_(each),
        lambda same, each: same.copy_(each),
        lambda same, each: same.__setitem__(0, each[0]),
        lambda same, each: same.__setitem__(tt.tensor([0, 1]), each[:2]),
        lambda same, each: same.__setitem__(each > 0, 1.0),
        lambda same, each: same.masked_fill_(each > 0, 1.0),
        lambda same, each: same.masked_fill_(same > 0, each[0]),
        lambda same, each: same.index_put_((tt.tensor([0]),), each[:1]),
        lambda same, each: same.scatter_(0, tt.tensor([0]), each[:1]),
        lambda same, each: same.scatter_(0, each[:1].long(), 1.0),
        lambda same, each: same.index_add_(0, tt.tensor([0]), each[:1]),
        lambda same, each: same.fill_(each[0]),
        lambda same, each: same.lerp_(each, 0.5),
        lambda same, each: same[1:].clamp_(max=each[1:]),
    ],
)
def test_values_that_differ_between_examples_have_no_room_in_what_is_the_same_for_all(write: Callable[[Any, Any], Any]) -> None:
    def into(same: Any, each: Any) -> Any:
        write(same, each)
        return same

    for given, dim in ((WIDE, 0), (WIDE.t().clone(), 1)):
        with pytest.raises(TransformError, match="the same for all examples would be written with values that differ between them"):
            vmap(into, (None, dim))(ONE.clone(), given)
        for found in (vmap(into, (dim, None))(given.clone(), ONE), vmap(lambda each: into(each * 1, each), dim)(given)):
            assert found.shape == (2, 3)
