"""grad, vjp, jvp, jacobians and Hessians against closed forms: what they nest to, what they watch, what they leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from tritensor.ground.errors import TransformError


def drawn(*shape: int) -> tt.Tensor:
    return tt.from_numpy(np.asarray(np.random.default_rng(len(shape)).standard_normal(shape)))


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-9, 1e-11)


def test_derivatives_of_derivatives() -> None:
    x = drawn()
    f = tt.sin
    close(grad(f)(x), x.cos())
    close(grad(grad(f))(x), -x.sin())
    close(grad(grad(grad(f)))(x), -x.cos())
    close(jvp(grad(f), (x,), (tt.ones_like(x),))[1], -x.sin())
    close(grad(lambda y: jvp(f, (y,), (tt.ones_like(y),))[1])(x), -x.sin())
    close(jvp(lambda y: jvp(f, (y,), (tt.ones_like(y),))[1], (x,), (tt.ones_like(x),))[1], -x.sin())


def test_an_inner_derivative_does_not_take_the_outer_input_for_its_own() -> None:
    x = drawn()
    # d/dx [x * d/dy (x + y)] = 1, and not 2
    close(grad(lambda a: a * grad(lambda b: a + b)(a))(x), tt.ones_like(x))
    close(jvp(lambda a: a * jvp(lambda b: a + b, (a,), (tt.ones_like(a),))[1], (x,), (tt.ones_like(x),))[1], tt.ones_like(x))
    close(grad(lambda a: grad(lambda b: b**3 * a)(a))(x), 9 * x**2)


def test_values_and_what_comes_beside_them() -> None:
    x, w = drawn(3), drawn(3, 3)
    found, (value, beside) = grad_and_value(lambda y, m: ((m @ y).sum(), {"y": y * 2}), argnums=(0, 1), has_aux=True)(x, w)
    close(found[0], w.sum(0))
    close(found[1], x.expand(3, 3))
    close(value, (w @ x).sum())
    close(beside["y"], x * 2)
    assert not any(t.requires_grad for t in (*found, value, beside["y"]))


def test_trees_come_back_as_they_were_given() -> None:
    p = {"a": drawn(2), "b": [drawn(3), (drawn(),)]}
    g = grad(lambda q: (q["a"] ** 2).sum() + q["b"][0].sum() * q["b"][1][0])(p)
    close(g["a"], 2 * p["a"])
    close(g["b"][0], p["b"][1][0].expand(3))
    assert isinstance(g["b"][1], tuple)
    close(g["b"][1][0], p["b"][0].sum())


def test_no_grad_inside_counts_and_outside_does_not() -> None:
    x = drawn(3)

    def f(y: tt.Tensor) -> tt.Tensor:
        with tt.no_grad():
            c = y**2
        return (y**3 - c).sum()

    close(grad(f)(x), 3 * x**2)
    with tt.no_grad():
        close(grad(f)(x), 3 * x**2)
        assert not grad(lambda y: (y**3).sum())(x.clone().requires_grad_()).requires_grad


def test_the_ordinary_graph_sees_through() -> None:
    x, w = drawn(3).requires_grad_(), drawn(3).requires_grad_()
    g = grad(lambda y: (y**2 * w).sum())(x)
    gx, gw = tt.autograd.grad(g.sum(), (x, w))
    close(gx, 2 * w)
    close(gw, 2 * x)
    assert x.grad is None
    out, pull = vjp(lambda y: y * w, x)
    (g,) = pull(x)
    close(tt.autograd.grad((g * out).sum(), w)[0], 2 * w * x**2 * 1)


def test_vjp_can_be_called_again_and_mapped() -> None:
    x, m = drawn(3), drawn(2, 3)
    out, pull = vjp(lambda y: m @ y, x)
    close(out, m @ x)
    (a,), (b,) = pull(out), pull(out)
    close(a, b)
    (rows,) = vmap(pull)(tt.eye(2, dtype=tt.float64))
    close(rows, m)


def test_jacobians() -> None:
    x, m = drawn(3), drawn(2, 3)
    for jac in (jacrev, jacfwd):
        close(jac(lambda y: m @ y)(x), m)
        first, second = jac(lambda a, b: a @ b, argnums=(0, 1))(m, x)
        close(second, m)
        assert first.shape == (2, 2, 3)
        found, beside = jac(lambda y: (y**2, y * 3), has_aux=True)(x)
        close(found, tt.diag(2 * x))
        close(beside, 3 * x)
    close(hessian(lambda y: (y**3).sum())(x), tt.diag(6 * x))
    close(vmap(hessian(lambda y: y.prod()))(m)[:, 0, 1], m[:, 2])
    close(jacrev(lambda y: m @ y, chunk_size=1)(x), m)


def test_linearize_does_not_call_the_function_again() -> None:
    x, t = drawn(3), drawn(3) + 1
    calls = []

    def f(y: tt.Tensor) -> tt.Tensor:
        calls.append(1)
        return y.sin()

    out, push = linearize(f, x)
    close(out, x.sin())
    close(push(t), x.cos() * t)
    close(push(2 * t), 2 * x.cos() * t)
    assert len(calls) == 1


FIRST = tt.tensor([True, False, False])
# functions that write over what their derivatives need, and what they compute
WRITING = {
    "output kept": (lambda y: (lambda a: (lambda z: (a.mul_(2), z + a)[1])(a * y))(y.exp()), lambda y: (y + 2) * y.exp()),
    "input kept": (lambda y: (lambda a: (lambda z: (a.zero_(), z + a)[1])(a * a))(y.sin()), lambda y: y.sin() ** 2),
    "a view": (
        lambda y: (lambda a: (lambda z: (a[1:].mul_(3), z + a)[1])(a * a))(y.sin()), lambda y: y.sin() ** 2 + tt.where(FIRST, y.sin(), 3 * y.sin()),
    ),
    "an element": (
        lambda y: (lambda a: (lambda z: (a.__setitem__(0, 5.0), z * a)[1])(a.tanh()))(y.sin()), lambda y: y.sin().tanh() * tt.where(FIRST, 5.0, y.sin()),
    ),
    "twice": (
        lambda y: (lambda a: (lambda z: (a.mul_(2), (w := a * z), a.sub_(w), z * a)[3])(a.square()))(y.cos()), lambda y: 2 * y.cos() ** 3 - 2 * y.cos() ** 5,
    ),
    "what it is given": (lambda y: (lambda z: (y.mul_(2), z * y)[1])(y.sin()), lambda y: 2 * y * y.sin()),
    "nothing": (lambda y: y.sin() * y, lambda y: y.sin() * y),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITING)
def test_linearize_takes_writes_that_jvp_takes(name: str) -> None:
    (f, pure), x, t = WRITING[name], drawn(3), drawn(3) + 1
    value, wanted = jvp(pure, (x,), (t,))
    there = x.clone()
    out, push = linearize(f, there)
    close(there, 2 * x if name == "what it is given" else x)
    close(out, value)
    close(push(t), wanted)
    close(push(2 * t), 2 * wanted)
    assert not push(t).requires_grad
    assert push(t.clone().requires_grad_()).requires_grad
    close(vmap(push)(tt.eye(3, dtype=x.dtype)).mT, jacfwd(pure)(x))
    out.zero_()
    close(push(t), wanted)


@pytest.mark.parametrize("name", WRITING)
def test_linearize_inside_other_transforms(name: str) -> None:
    (f, pure), x, t = WRITING[name], drawn(3), drawn(3) + 1

    def along(y: tt.Tensor) -> tt.Tensor:
        return linearize(f, y.clone())[1](t)

    def by_jvp(y: tt.Tensor) -> tt.Tensor:
        return jvp(pure, (y,), (t,))[1]

    batch = tt.stack([x, 2 * x])
    close(vmap(along)(batch), vmap(by_jvp)(batch))
    close(jvp(along, (x,), (x,))[1], jvp(by_jvp, (x,), (x,))[1])
    close(grad(lambda y: (along(y) * x).sum())(x), grad(lambda y: (by_jvp(y) * x).sum())(x))
    close(jacrev(along)(x), jacfwd(by_jvp)(x))


def test_a_primal_that_is_written_after_linearize() -> None:
    x, t = drawn(3), drawn(3) + 1
    wanted = (x * 2 * t).clone()
    _, push = linearize(lambda y: y * y, x)
    x.zero_()
    close(push(t), wanted)


def test_writes_in_place_are_differentiated() -> None:
    x, t = drawn(3), drawn(3) * 0.5

    def f(y: tt.Tensor) -> tt.Tensor:
        out = tt.zeros(3, dtype=tt.float64)
        out[0] = y[0] ** 2
        part = out[1:]
        part += y[1:] * y[0]
        return (out * out).sum()

    def same(y: tt.Tensor) -> tt.Tensor:
        return y[0] ** 4 + ((y[1:] * y[0]) ** 2).sum()

    close(grad(f)(x), grad(same)(x))
    close(hessian(f)(x), hessian(same)(x))
    close(jacrev(grad(f))(x), hessian(same)(x))
    close(jvp(f, (x,), (t,))[1], jvp(same, (x,), (t,))[1])


def test_outputs_that_depend_on_nothing_have_zeros() -> None:
    x = drawn(2)
    close(grad(lambda y: tt.ones((), dtype=tt.float64))(x), tt.zeros_like(x))
    close(jvp(lambda y: tt.ones(2, dtype=tt.float64), (x,), (x,))[1], tt.zeros_like(x))
    with pytest.raises(TransformError, match="does not depend on the primals"):
        jvp(lambda y: tt.ones(2), (x,), (x,), strict=True)


def test_complex_numbers() -> None:
    z = tt.complex(drawn(3), drawn(3) * 2)
    close(tt.view_as_real(grad(lambda y: (y * y.conj()).real.sum())(z)), tt.view_as_real(2 * z))
    close(tt.view_as_real(jvp(lambda y: y**2, (z,), (z * 1j,))[1]), tt.view_as_real(2j * z**2))
    close(jvp(tt.abs, (z,), (z,))[1], z.abs())


def test_gradients_of_the_outermost_run_on_bare_arrays() -> None:
    """Nobody can differentiate them, so no rule is recorded."""
    x = drawn(3)
    made: list[Any] = []

    class Seen(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: tt.Tensor) -> tt.Tensor:
            return y * 2

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
            made.append(tt.is_grad_enabled())
            return g * 2

    grad(lambda y: Seen.apply(y).sum())(x)
    grad(lambda y: Seen.apply(y).sum())(x.clone().requires_grad_())
    assert made == [False, True]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: grad(lambda y: y)(x), "shape \\(3,\\), which is no scalar; reduce it"),
        (lambda x: grad(lambda y: y.sum(), argnums=2)(x), "argnums 2 of 1 arguments without keyword"),
        (lambda x: grad(lambda y: y.sum(), argnums=(0, 0))(x), "names an argument twice"),
        (lambda x: grad(lambda y: y.sum(), has_aux=True)(x), "it must return \\(value, whatever\\)"),
        (lambda x: grad(lambda y: y.sum())(x.long()), "int64, which has no gradient"),
        (lambda x: grad(lambda y: y.sum())(3.0), "a float is among what to differentiate by"),
        (lambda x: vjp(lambda y: (y, y), x)[1](x), "containers like the output's"),
        (lambda x: vjp(lambda y: y, x)[1](x[:2]), "a cotangent \\(2,\\) for an output of shape \\(3,\\)"),
        (lambda x: jvp(lambda y: y, (x,), (x[:2],)), "a primal \\(3,\\) with a tangent \\(2,\\)"),
        (lambda x: jvp(lambda y: y, x, x), "give a tuple with one for each argument"),
        (lambda x: jvp(lambda y: y, (x,), (x.float(),)), "float64 with a tangent of float32"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError), match=said):
        call(drawn(3))


def test_nothing_of_a_tangent_s_making_is_left_in_a_graph() -> None:
    """The tangent of matrix_exp is the gradient of its gradient, which is linear without being written so."""
    x = drawn(3, 3)
    found = grad(lambda y: jvp(tt.linalg.matrix_exp, (y,), (x,))[1].sum())(x)
    assert not found.requires_grad


def test_data_has_no_derivative_at_its_level() -> None:
    x, t = drawn(3), drawn(3) + 1
    close(jvp(lambda y: y * y.data, (x,), (t,))[1], x * t)
    close(jvp(lambda y: vmap(lambda z: z * z.data)(y), (x,), (t,))[1], x * t)
    close(grad(lambda y: vmap(lambda z: z * z.data)(y).sum())(x), x)
    close(grad(lambda y: (y * y.data).sum())(x), x)


def test_a_dual_is_made_of_what_carries_no_tangent() -> None:
    with tt.autograd.forward_ad.dual_level():
        dual = tt.autograd.forward_ad.make_dual(drawn(3), drawn(3))
        with pytest.raises(TransformError, match="carries a tangent of this level already"):
            tt.autograd.forward_ad.make_dual(dual, drawn(3))


@pytest.mark.parametrize(
    "f",
    [
        tt.relu, tt.nn.functional.leaky_relu, tt.nn.functional.relu6, tt.nn.functional.hardtanh, tt.nn.functional.hardsigmoid,
        tt.nn.functional.hardshrink, tt.nn.functional.softshrink, lambda x: tt.nn.functional.threshold(x, 0.1, 2.0), tt.abs,
        lambda x: tt.prelu(x, tt.tensor([0.25], dtype=tt.float64)), lambda x: tt.nn.functional.relu_(x * 1),
    ],
)  # fmt: skip
def test_the_gradient_of_a_gradient_that_is_constant_but_for_jumps_is_zeros(f: Any) -> None:
    x = drawn(3).requires_grad_()
    (first,) = tt.autograd.grad(f(x).sum(), x, create_graph=True)
    want = tt.autograd.grad(f(x).sum(), x)[0]
    close(first, want)
    assert tt.autograd.grad(first.sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    close(grad(lambda y: grad(lambda z: f(z).sum())(y).sum())(x.detach()), tt.zeros(3))


def test_the_derivative_of_a_median_under_vmap_is_that_of_the_element_in_the_middle_of_the_order() -> None:
    rows = tt.tensor([[3.0, 1.0, 2.0, 2.0, 5.0], [4.0, 9.0, 7.0, 8.0, 0.0]], dtype=tt.float64)
    want = tt.tensor([[0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    close(vmap(grad(tt.median))(rows), want)
    close(vmap(grad(lambda y: tt.nanmedian(y.reshape(1, 5))))(rows), want)
