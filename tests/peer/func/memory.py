"""Writes in place, layouts and bytes under transforms; duals that are viewed and written; draws in chunks."""

# ruff: noqa: E731

from __future__ import annotations

import importlib
from typing import Any

from tests.peer.func.asking import program

WRITTEN = (
    "abs_ acos_ asin_ atan_ ceil_ clamp_ cos_ cosh_ cumprod_ cumsum_ deg2rad_ digamma_ erf_ erfc_ erfinv_ exp_ exp2_ expm1_ floor_ frac_ lgamma_ log_ "
    "log10_ log1p_ log2_ logit_ nan_to_num_ neg_ pow_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sgn_ sigmoid_ sign_ sin_ sinc_ sinh_ sqrt_ square_ "
    "tan_ tanh_ tril_ triu_ trunc_ zero_"
)
ARGUMENTS = {"clamp_": (0.3, 0.6), "cumprod_": (1,), "cumsum_": (0,), "pow_": (2.5,)}
ACTIVATIONS = ["celu", "elu", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "selu", "silu"]


def asked_of(T: Any, F: Any, x: Any, step: Any) -> list[Any]:
    """A step that writes over what it is given, under the transforms that differ most."""
    v, t = x(2, 3).abs() % 0.8 + 0.1, x(2, 3)
    w = x(2, 3)
    f = lambda y: step(y * 1.1)
    s = lambda y: (f(y) * w).sum()
    return [
        F.grad(s)(v), F.hessian(s)(v), F.vmap(F.grad(s))(T.stack([v, v * 0.9])), F.jvp(f, (v,), (t.t().contiguous().t(),)),
        F.grad(lambda y: (F.jvp(f, (y,), (t,))[1] * w).sum())(v), F.jvp(F.grad(s), (v,), (t,)), F.jacrev(f)(v),
    ]  # fmt: skip


@program
def methods_in_place(T, F, x):
    return [asked_of(T, F, x, lambda y, n=n: getattr(y, n)(*ARGUMENTS.get(n, ()))) for n in WRITTEN.split()]


@program
def activations_in_place(T, F, x):
    return [asked_of(T, F, x, lambda y, n=n: getattr(T.nn.functional, n)(y.sub_(0.5), inplace=True)) for n in ACTIVATIONS]


@program
def assignments(T, F, x):
    def rows(y):
        y[0] = y[1] * 2
        y[:, 1:] *= y[:, :2].clone()
        y.view(-1)[3:5].mul_(y[0, :2].clone()) if y.is_contiguous() else y
        return y

    i = T.tensor([1, 0])

    def indexed(y):
        y.index_put_((i,), y[0].clone())
        y.scatter_(1, T.tensor([[0], [2]]), y[:, :1] * 3).index_add_(0, i, y.clone()).masked_fill_(y > 2, 0.5)
        return y.index_copy_(0, i, y.clone().sin()).fill_diagonal_(0.1).lerp_(y.clone(), 0.3)

    return [asked_of(T, F, x, rows), asked_of(T, F, x, indexed)]


@program
def tangents_that_lie_otherwise(T, F, x):
    v, t = x(3, 4), x(4, 3).t()
    views = [
        lambda y: y.view(-1), lambda y: (y * 1.5).view(2, 6), lambda y: y.exp().flatten(), lambda y: y.clone().reshape(-1),
        lambda y: y.contiguous().as_strided((2, 2), (1, 2), 1), lambda y: y.t().reshape(-1), lambda y: y.split(2, 1)[1], lambda y: y.unflatten(1, (2, 2)),
        lambda y: T.linalg.matrix_exp(y[:, :3]), lambda y: T.view_as_real(T.view_as_complex(y.view(3, 2, 2))),
    ]  # fmt: skip
    found = [F.jvp(f, (v,), (t,)) for f in views] + [F.jvp(f, (v,), (x(3, 1).expand(3, 4),)) for f in views]
    found += [F.vmap(lambda u, f=f: F.jvp(f, (v,), (u,))[1], 2)(x(3, 4, 2)) for f in views]
    return found + [F.vjp(lambda y: (y * 2).t(), v)[1](x(3, 4).t()), F.vjp(lambda y: y.view(-1), v)[1](x(24)[::2])]


@program
def bytes_read_as_another_type(T, F, x):
    v = x(4)
    leaf = x(4).requires_grad_()
    plain = [leaf.view(d) for d in (T.int64, T.int32, T.float32, T.float64)] + [(leaf * 2).view(T.int64)]
    f = lambda y: y.view(T.int64).double() * y
    return [
        plain, [y.requires_grad for y in plain], F.grad(lambda y: f(y).sum())(v), F.jvp(f, (v,), (x(4),)), F.vmap(lambda y: y.view(T.int32))(x(2, 3)),
        F.vmap(lambda y: y.view(T.int64), 1)(x(2, 3)), F.jvp(lambda y: y.view(T.float64) + y, (v,), (x(4),)), F.vmap(F.grad(lambda y: f(y).sum()))(x(2, 3)),
    ]  # fmt: skip


def dual(T: Any, body: Any) -> Any:
    A = importlib.import_module(T.__name__ + ".autograd.forward_ad")
    with A.dual_level():
        return body(A.make_dual, lambda y: tuple(A.unpack_dual(y)))


@program
def duals_in_place(T, F, x):
    def buffer(make, parts):
        b = T.zeros(3, 4).double()
        v = b[1]
        v.copy_(make(x(4), x(4)))
        return parts(b), parts(v), parts(b * 2)

    def followed(make, parts):
        d = make(x(3, 4), x(4, 3).t())
        v = d.t()
        d.mul_(2)
        d.view(-1)[2:4].mul_(3)
        d[:, 1] *= 2
        return parts(v), parts(d), parts(d.detach())

    def differentiated(make, parts):
        p = x(3).requires_grad_()
        y = T.nn.functional.silu(make(p * 1, x(3)) * 1.3, inplace=True)
        return T.autograd.grad(parts(y)[1].sum(), p)

    return [dual(T, f) for f in (buffer, followed, differentiated)]


@program
def gradients_that_are_constant_but_for_jumps(T, F, x):
    n = T.nn.functional
    found = []
    for f in (T.relu, n.leaky_relu, n.relu6, n.hardtanh, n.hardshrink, n.softshrink, lambda y: n.threshold(y, 0.1, 2.0)):
        v = x(4).requires_grad_()
        (g,) = T.autograd.grad(f(v).sum(), v, create_graph=True)
        found += [g, T.autograd.grad(g.sum(), v), F.hessian(lambda y, f=f: f(y).sum())(x(3))]
    return found


@program
def draws_in_chunks(T, F, x):
    same = F.vmap(lambda y: y * 0 + T.rand(3), randomness="same", chunk_size=2)(x(5, 3))
    different = [
        F.vmap(lambda y, v=v, f=f: f(v), randomness="different")(x(5))
        for v, f in (
            (T.ones(50), lambda v: T.multinomial(v, 10)), (T.ones(40) * 50, T.poisson), (T.ones(40) * 0.5, lambda v: T.bernoulli(v, 0.5)),
            (T.ones(40) * 100, lambda v: T.binomial(v, v / 200)),
        )
    ]  # fmt: skip
    return [bool((same == same[0]).all()), [bool((y == y[0]).all()) for y in different], [tuple(y.shape) for y in different]]


@program
def data_of_duals(T, F, x):
    g = lambda y: y * y.data
    v, t = x(3), x(3)
    return [
        F.jvp(g, (v,), (t,)), F.grad(lambda y: g(y).sum())(v), F.jvp(lambda y: F.jvp(g, (y,), (y * 2,))[1], (v,), (t,)),
        F.grad(lambda y: F.jvp(g, (y,), (y * 2,))[1].sum())(v), F.jacrev(F.jacfwd(lambda y: g(y).sum()))(v),
    ]  # fmt: skip
