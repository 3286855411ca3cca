"""Tangents and cotangents that lie otherwise than what they belong to: every view, behind ops that hand their layout on, under every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.func.walk import laid
from tritensor.func import grad, jacfwd, jvp, vjp, vmap
from tritensor.func.forward_ad import dual_level, make_dual, unpack_dual

Function = Callable[[Any], Any]


def drawn(seed: int, *shape: int) -> tt.Tensor:
    return tt.from_numpy(np.random.default_rng(seed).standard_normal(shape))


X, T = drawn(0, 3, 4), drawn(1, 3, 4)


def joined(*parts: Any) -> Any:
    return tt.cat([p.reshape(-1) for p in parts])


def with_a_write(y: Any, view: Function) -> Any:
    """A tensor of which a part was written through a view."""
    z = y * 1
    view(z).mul_(2)
    return z


BEFORE: dict[str, Function] = {
    "nothing": lambda y: y,
    "mul": lambda y: y * 1.5,
    "add": lambda y: y + 1,
    "exp": lambda y: y.exp(),
    "clone": lambda y: y.clone(),
    "contiguous": lambda y: y.contiguous(),
    "cumsum": lambda y: y.cumsum(0),
    "matmul": lambda y: X.t() @ (X @ y.t()) @ y,
    "where": lambda y: tt.where(y > 0, y, 0.0),
    "transposed twice": lambda y: y.t().contiguous().t(),
    "a window": lambda y: tt.nn.functional.pad(y, (1, 1))[:, 1:5],
}
VIEWS: dict[str, Function] = {
    "view": lambda y: y.contiguous().view(-1),
    "reshape": lambda y: y.reshape(2, 6) if y.shape == (3, 4) else y.reshape(2, 8),
    "flatten": lambda y: y.flatten(),
    "ravel": lambda y: y.t().ravel(),
    "unflatten": lambda y: y.unflatten(1, (2, 2)),
    "as_strided": lambda y: y.contiguous().as_strided((2, 3), (4, 1)),
    "overlapping windows": lambda y: y.contiguous().as_strided((5, 2), (2, 1)),
    "split": lambda y: joined(*y.split(2, 1)),
    "unbind": lambda y: joined(*y.unbind(1)),
    "diagonal": lambda y: y.diagonal(),
    "unfold": lambda y: y.unfold(1, 2, 1).reshape(-1),
    "backwards": lambda y: tt.flip(y, (0,))[::-1, 1:].reshape(-1),
    "expand": lambda y: y[None].expand(2, *y.shape).reshape(-1),
    "movedim": lambda y: y.unsqueeze(2).movedim(0, 2).flatten(),
    "complex": lambda y: tt.view_as_real(tt.view_as_complex(y.reshape(-1, 2).contiguous())),
    "matrix_exp of a slice": lambda y: tt.linalg.matrix_exp(y[:3, :3] / 4),
    "put": lambda y: y.put(tt.tensor([1]), y[0, :1]),
    "a write through a flat view": lambda y: with_a_write(y.contiguous(), lambda z: z.view(-1)[1:5]),
    "a write through a transpose": lambda y: with_a_write(y, lambda z: z.t()[1:3]),
}


def by_duals(f: Function, x: Any, t: Any) -> Any:
    with dual_level():
        return unpack_dual(f(make_dual(x, t))).tangent


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "jvp": lambda f, x, t: jvp(f, (x,), (t,))[1],
    "duals": by_duals,
    "jvp of jvp": lambda f, x, t: jvp(lambda y: jvp(f, (y,), (t,))[1], (x,), (t,))[1],
    "vmap of jvp": lambda f, x, t: vmap(lambda u: jvp(f, (x,), (u,))[1])(t.expand(2, *t.shape)),
    "vmap of jvp, of both": lambda f, x, t: vmap(lambda y, u: jvp(f, (y,), (u,))[1], (1, 0))(
        tt.stack([x, x + 1], 1), t.expand(2, *t.shape)
    ),
    "jvp of vmap": lambda f, x, t: jvp(vmap(f, 1), (tt.stack([x, x + 1], 1),), (t[:, None].expand(3, 2, 4),))[1],
    "grad of jvp": lambda f, x, t: grad(lambda y: jvp(f, (y,), (t,))[1].sum())(x),
    "jvp of grad": lambda f, x, t: jvp(grad(lambda y: f(y).sin().sum()), (x,), (t,))[1],
}


@pytest.mark.parametrize("view", VIEWS)
def test_tangents(view: str) -> None:
    """The same as of contiguous tangents."""
    for before in BEFORE.values():
        for transform in TRANSFORMS.values():
            for t in laid(T):
                want = transform(lambda y: VIEWS[view](before(y)), X, t.contiguous())  # noqa: B023
                got = transform(lambda y: VIEWS[view](before(y)), X, t)  # noqa: B023
                np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-9, 1e-10)


@pytest.mark.parametrize("view", VIEWS)
def test_primals(view: str) -> None:
    """The same as of a contiguous primal, wherever it lies."""
    for x in list(laid(X))[:3]:
        want, got = (jvp(VIEWS[view], (given,), (T,))[1] for given in (X, x))
        np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-9, 1e-10)


@pytest.mark.parametrize("view", VIEWS)
def test_cotangents(view: str) -> None:
    """vjp, and its derivative, along cotangents that are transposed, have gaps, lie backwards or are expanded."""
    out, pull = vjp(VIEWS[view], X)
    inner = lambda y, c: vjp(lambda z: VIEWS[view](z).sin(), y)[1](c)[0]  # noqa: E731
    for c in laid(drawn(2, *out.shape)):
        np.testing.assert_allclose(pull(c)[0].numpy(), pull(c.contiguous())[0].numpy(), 1e-9, 1e-10)
        want, got = (grad(lambda y: (inner(y, c) * T).sum())(X) for c in (c.contiguous(), c))  # noqa: B023
        np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-9, 1e-10)
        want, got = (vmap(inner)(tt.stack([X, T]), c.expand(2, *c.shape)) for c in (c.contiguous(), c))
        np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-9, 1e-10)


def test_a_transposed_tangent_is_viewed_as_its_primal_is() -> None:
    t = tt.arange(12.0).view(4, 3).t()  # [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    _, moved = jvp(lambda x: x.view(-1), (tt.zeros(3, 4),), (t,))
    assert moved.tolist() == [0.0, 3.0, 6.0, 9.0, 1.0, 4.0, 7.0, 10.0, 2.0, 5.0, 8.0, 11.0]
    _, moved = jvp(lambda x: x.as_strided((2, 2), (1, 2), 1), (tt.zeros(3, 4),), (t,))
    assert moved.tolist() == [[3.0, 9.0], [6.0, 1.0]]


def test_images_with_channels_last() -> None:
    image, t = drawn(3, 2, 3, 4, 4), drawn(4, 2, 3, 4, 4)
    last = lambda x: x.contiguous(memory_format=tt.channels_last)  # noqa: E731
    weight = drawn(5, 5, 3, 3, 3)
    for f in (lambda x: tt.nn.functional.conv2d(x, weight).flatten(1), lambda x: x.contiguous().view(2, 48), lambda x: x.sum(1).view(-1)):
        want = jvp(f, (image,), (t,))[1].numpy()
        for a, b in ((image, last(t)), (last(image), t), (last(image), last(t))):
            np.testing.assert_allclose(jvp(f, (a,), (b,))[1].numpy(), want, 1e-9, 1e-10)
    out, pull = vjp(lambda x: tt.nn.functional.conv2d(x, weight), image)
    g = drawn(6, *out.shape)
    np.testing.assert_allclose(pull(last(g))[0].numpy(), pull(g)[0].numpy(), 1e-9, 1e-10)


def test_empty_tangents() -> None:
    for t in (tt.zeros(4, 0).t(), tt.zeros(1, 1).expand(0, 4), tt.zeros(0, 8)[:, ::2]):
        assert jvp(lambda x: x.view(-1), (tt.zeros(0, 4),), (t,))[1].shape == (0,)


def test_chains_of_jacobians() -> None:
    """Of f(x) = vec(x^T)^2 the Hessian's diagonal is 2, wherever x lies."""
    for x in (X, X.t().contiguous().t()):
        found = jacfwd(jacfwd(lambda y: (y.t().reshape(-1) ** 2).sum()))(x).reshape(12, 12)
        np.testing.assert_allclose(found.numpy(), 2 * np.eye(12), 1e-12)


def test_a_gradient_that_arrives_transposed_at_a_flat_view_that_was_written() -> None:
    """d/dx sum(w * (6 x)^T) = 6 w^T, under vmap too."""

    def f(x: tt.Tensor) -> tt.Tensor:
        y = x * 2
        y.view(-1).mul_(3.0)
        return (y.t() * w).sum()

    w = drawn(7, 4, 3)
    np.testing.assert_allclose(vmap(grad(f))(X[None])[0].numpy(), 6 * w.t().numpy(), 1e-12)
