"""autograd.functional: Jacobians, Hessians and products against closed forms, what strict refuses, and derivatives of them."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor.autograd import functional as F
from tritensor.autograd import gradcheck
from tritensor.ground.pytree import tree_flatten

X = tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64)
Y = tt.tensor([[0.5, 1.0, -1.0], [2.0, 0.3, 0.1]], dtype=tt.float64)


def cubes(a: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
    return (a**3 * b).sum()


def rows(a: tt.Tensor, b: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
    return (a * b).sum(1), a.sin()


def test_jacobian_follows_the_tuples() -> None:
    assert tt.equal(F.jacobian(tt.exp, X), tt.diag(X.exp()))
    (a, b), (c, d) = F.jacobian(rows, (X, Y))
    assert tt.equal(a, Y)
    assert tt.allclose(c, tt.diag(X.cos()))
    assert b.shape == (2, 2, 3)
    assert d.shape == (3, 2, 3)
    assert not d.any()
    assert isinstance(F.jacobian(lambda a: (a, a * 2), X), tuple)
    assert not F.jacobian(tt.exp, X).requires_grad
    assert tt.equal(F.jacobian(tt.exp, X, vectorize=True, strategy="forward-mode"), tt.diag(X.exp()))
    assert F.jacobian(lambda a: a[:0], X).shape == (0, 3)


def test_hessian_and_its_products() -> None:
    (xx, xy), (yx, yy) = F.hessian(cubes, (X, Y))
    assert tt.allclose(xx, tt.diag(6 * X * Y.sum(0)))
    assert tt.equal(yx.reshape(6, 3), xy.reshape(3, 6).T)
    assert not yy.any()
    v = (tt.ones(3, dtype=tt.float64), tt.ones(2, 3, dtype=tt.float64))
    value, (p, q) = F.hvp(cubes, (X, Y), v)
    assert tt.allclose(p, xx.sum(1) + xy.sum((1, 2)))
    assert tt.allclose(q, yx.sum(2))
    assert tt.equal(value, cubes(X, Y))
    _, (r, s) = F.vhp(cubes, (X, Y), v)
    assert tt.allclose(p, r)
    assert tt.allclose(q, s)
    outputs, product = F.jvp(rows, (X, Y), v)
    assert tt.allclose(product[0], Y.sum(1) + X.sum())
    assert tt.allclose(product[1], X.cos())
    assert tt.equal(outputs[1], X.sin())
    assert tt.allclose(F.vjp(rows, (X, Y), (tt.ones(2, dtype=tt.float64), X))[1][0], Y.sum(0) + X * X.cos())


def test_a_hessian_is_not_formed_for_a_product() -> None:
    n = 20_000  # whose Hessian would be 3 GB
    x = tt.ones(n, dtype=tt.float64)
    _, product = F.hvp(lambda a: (a**3).sum(), x, x)
    assert tt.equal(product, 6 * x)


@pytest.mark.parametrize("call", [F.jacobian, F.hessian], ids=["jacobian", "hessian"])
def test_they_can_be_differentiated(call) -> None:
    x = X.clone().requires_grad_()
    assert gradcheck(lambda a: call(lambda b: (b**4).sum() if call is F.hessian else b**4, a, create_graph=True), x)


def test_products_can_be_differentiated() -> None:
    x = X.clone().requires_grad_()
    assert gradcheck(lambda a: F.vjp(tt.sin, a, X, create_graph=True)[1], x)
    assert gradcheck(lambda a: F.jvp(tt.sin, a, X, create_graph=True)[1], x)
    assert gradcheck(lambda a: F.hvp(lambda b: (b**4).sum(), a, X, create_graph=True)[1], x)


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: F.jacobian(lambda a, b: a.exp(), (X, Y), **k),
        lambda **k: F.jacobian(lambda a: tt.ones(2), X, **k),
        lambda **k: F.vjp(lambda a, b: a.sum(), (X, Y), **k),
        lambda **k: F.jvp(lambda a, b: a.exp(), (X, Y), (X, Y), **k),
        lambda **k: F.hvp(lambda a: a.sum(), X, X, **k),
        lambda **k: F.vhp(lambda a, b: a.exp().sum(), (X, Y), (X, Y), **k),
        lambda **k: F.hessian(lambda a: a.sum(), X, **k),
        lambda **k: F.hessian(lambda a, b: a.exp().sum(), (X, Y), **k),
    ],
)
def test_strict_refuses_what_takes_no_part(call) -> None:
    call()
    with pytest.raises(RuntimeError, match="strict=True"):
        call(strict=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.jacobian(tt.exp, [1, 2]), TypeError, "jacobian: inputs must be a Tensor or a tuple of Tensors, but value 0 is a int"),
        (lambda: F.jacobian(lambda a: 3, X), TypeError, "what the function returns must be"),
        (lambda: F.jacobian(tt.exp, X, strategy="forward-mode"), NotImplementedError, "wants vectorize=True"),
        (lambda: F.jacobian(tt.exp, X, strict=True, vectorize=True), RuntimeError, "do not go together"),
        (lambda: F.hessian(tt.exp, X), RuntimeError, "should contain a single element"),
        (lambda: F.hessian(lambda a: (a.sum(),), X), RuntimeError, "should return a single Tensor"),
        (lambda: F.hvp(tt.exp, X, X), RuntimeError, "should return a single Tensor with a single element"),
        (lambda: F.vjp(tt.exp, X), RuntimeError, "v can only be None"),
        (lambda: F.vjp(tt.exp, X, tt.ones(2)), RuntimeError, r"v\[0\] has shape \(2,\), its output \(3,\)"),
        (lambda: F.vjp(tt.exp, X, (X, X)), RuntimeError, "v is 2 tensor"),
    ],
)
def test_mistakes_are_named(call, error, words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_the_norm_to_sixth_order() -> None:
    """Row A3: grad of |(x, y)| at (3, 4), the sums of gradients chained."""
    expected = [(0.6, 0.8), (0.032, -0.024), (-0.01888, 0.01216), (0.016512, -0.009024), (-0.0190387, 0.0086630), (0.0271417, -0.0099806)]
    x = tt.tensor([3.0, 4.0], dtype=tt.float64, requires_grad=True)
    y = x.norm()
    for values in expected:
        (g,) = tt.autograd.grad(y, x, create_graph=True)
        assert tt.allclose(g, tt.tensor(values, dtype=tt.float64), atol=1e-6, rtol=1e-5)
        y = g.sum()


def test_attention_twice() -> None:
    """Row A3: what a fused attention refuses."""
    tt.manual_seed(0)
    q, k, v = (tt.randn(2, 3, 4, dtype=tt.float64, requires_grad=True) for _ in range(3))
    assert tt.autograd.gradgradcheck(lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v, (q, k, v), fast_mode=True)


class Leaves(tt.autograd.Function):
    """x * 3, whose backward goes through numpy."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return tt.from_numpy(3 * g.numpy())


CASES = {
    "one": (tt.exp, X),
    "several": (lambda x, y: (x.sum() * y, x * 2), (X, tt.arange(4.0, dtype=tt.float64).view(2, 2))),
    "an input that takes no part": (lambda x, y: x * 2, (X, X)),
    "an output that takes none": (lambda x: (x.detach(), x.sum()), X),
    "no graph": (lambda x: tt.ones(2), X),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_a_vectorized_jacobian_is_the_other(name: str, strategy: str) -> None:
    func, inputs = CASES[name]
    outer, _ = tree_flatten(F.jacobian(func, inputs))
    found, _ = tree_flatten(F.jacobian(func, inputs, vectorize=True, strategy=strategy))
    assert [x.shape for x in outer] == [x.shape for x in found]
    assert all(tt.allclose(x.double(), y.double()) for x, y in zip(outer, found, strict=True))
    assert not any(x.requires_grad for x in found)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_a_vectorized_hessian_is_the_other(strategy: str) -> None:
    def func(x):
        return (x**3).sum() * x[0].sin()

    assert tt.allclose(F.hessian(func, X), F.hessian(func, X, vectorize=True, outer_jacobian_strategy=strategy))


def test_a_vectorized_jacobian_goes_back_once() -> None:
    count = 0

    def func(x):
        def told(g):
            nonlocal count
            count += 1

        y = x * 2
        y.register_hook(told)
        return y * x

    F.jacobian(func, X, vectorize=True)
    assert count == 1


def test_batched_gradients_go_back_once_and_free_the_graph() -> None:
    x = tt.ones(3, requires_grad=True)
    seen = []
    y = x * x
    z = y * 2
    y.register_hook(lambda g: seen.append(tuple(g.shape)))
    (g,) = tt.autograd.grad(z, x, tt.eye(3), is_grads_batched=True)
    assert tt.equal(g, 4 * tt.eye(3))
    assert seen == [(3,)]
    with pytest.raises(tt.GradError, match="freed"):
        z.sum().backward()


def test_zeros_for_what_is_unused_have_no_batch() -> None:
    x, u = tt.ones(3, requires_grad=True), tt.ones(2, requires_grad=True)
    _, zeros = tt.autograd.grad(x * 2, (x, u), tt.eye(3), is_grads_batched=True, materialize_grads=True, create_graph=True)
    assert zeros.tolist() == [0, 0]
    assert zeros.requires_grad
    assert tt.autograd.grad(x * 2, (x, u), tt.eye(3), is_grads_batched=True, allow_unused=True)[1] is None


def test_what_cannot_be_mapped_goes_row_by_row_and_says_so_once() -> None:
    x = tt.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="the 2 rows of grad_outputs go one after another, as they cannot be mapped"):
        (g,) = tt.autograd.grad(Leaves.apply(x), x, tt.eye(2), is_grads_batched=True)
    assert tt.equal(g, 3 * tt.eye(2))
    tt.autograd.grad(Leaves.apply(x), x, tt.eye(2), is_grads_batched=True)  # warnings are errors
