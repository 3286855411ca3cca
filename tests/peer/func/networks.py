"""Networks as functions, Functions with a backward of their own, forward mode by hand, trees."""

# ruff: noqa: E731

from __future__ import annotations

import importlib
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np

from tests.peer.func.asking import program


def net(T: Any, *sizes: int) -> Any:
    """A perceptron in float64 whose weights are the same in both libraries."""
    parts = []
    rng = np.random.default_rng(3)
    for m, n in zip(sizes, sizes[1:], strict=False):
        layer = T.nn.Linear(m, n).double()
        with T.no_grad():
            layer.weight.copy_(T.from_numpy(rng.standard_normal((n, m)) * 0.5))
            layer.bias.copy_(T.from_numpy(rng.standard_normal(n) * 0.1))
        parts += [layer, T.nn.Tanh()]
    return T.nn.Sequential(*parts[:-1])


def cnn(T: Any) -> Any:
    rng = np.random.default_rng(4)
    model = T.nn.Sequential(
        T.nn.Conv2d(1, 4, 3, stride=2, padding=1),
        T.nn.ReLU(),
        T.nn.Conv2d(4, 6, 3),
        T.nn.ReLU(),
        T.nn.MaxPool2d(2),
        T.nn.Flatten(),
        T.nn.Linear(24, 5),
    ).double()
    with T.no_grad():
        for p in model.parameters():
            p.copy_(T.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.3))
    return model


# -- networks
@program
def per_sample_gradients(T, F, x):
    model = cnn(T)
    params = {k: v.detach() for k, v in model.named_parameters()}
    images, labels = x(6, 1, 14, 14), T.from_numpy(np.arange(6) % 5)

    def loss(p, image, label):
        return T.nn.functional.cross_entropy(F.functional_call(model, p, (image[None],)), label[None])

    return [
        F.vmap(F.grad(loss), in_dims=(None, 0, 0))(params, images, labels),
        F.grad(lambda p: F.vmap(loss, (None, 0, 0))(p, images, labels).mean())(params),
    ]


@program
def ensemble(T, F, x):
    models = [net(T, 3, 5, 2) for _ in range(3)]
    for i, m in enumerate(models):
        for p in m.parameters():
            p.data.mul_(1 + 0.1 * i)
    params, buffers = F.stack_module_state(models)
    base = models[0]
    call = lambda p, b, y: F.functional_call(base, (p, b), (y,))
    y = x(4, 3)
    out = F.vmap(call, in_dims=(0, 0, None))(params, buffers, y)
    out.sum().backward()
    return [out, {k: p.grad for k, p in params.items()}, F.vmap(call)(params, buffers, x(3, 4, 3))]


@program
def maml(T, F, x):
    model = net(T, 1, 8, 1)
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p, a, b):
        return ((F.functional_call(model, p, (a,)) - b) ** 2).mean()

    def inner(p, a, b, a2, b2):
        g = F.grad(loss)(p, a, b)
        q = {k: p[k] - 0.1 * g[k] for k in p}
        return loss(q, a2, b2)

    def outer(p, *task):
        return F.vmap(inner, in_dims=(None, 0, 0, 0, 0))(p, *task).mean()

    return F.grad_and_value(outer)(params, x(4, 5, 1), x(4, 5, 1), x(4, 5, 1), x(4, 5, 1))


@program
def tangent_kernel(T, F, x):
    model = net(T, 3, 4, 2)
    params = {k: v.detach() for k, v in model.named_parameters()}
    one = lambda p, y: F.functional_call(model, p, (y[None],)).squeeze(0)
    a, b = x(3, 3), x(2, 3)
    ja, jb = (F.vmap(F.jacrev(one), (None, 0))(params, y) for y in (a, b))
    by_jacobians = sum(T.einsum("Naf,Mbf->NMab", ja[k].flatten(2), jb[k].flatten(2)) for k in params)

    def entry(y1, y2):
        _, pull = F.vjp(lambda p: one(p, y1), params)
        return F.vmap(lambda v: F.jvp(lambda p: one(p, y2), (params,), pull(v))[1])(T.eye(2).double())

    by_products = F.vmap(F.vmap(entry, (None, 0)), (0, None))(a, b)
    return [by_jacobians, by_products]


@program
def hessian_vector_products(T, F, x):
    model = net(T, 3, 4, 1)
    params = tuple(v.detach() for v in model.parameters())
    names = [k for k, _ in model.named_parameters()]
    y = x(5, 3)
    f = lambda *p: F.functional_call(model, dict(zip(names, p, strict=True)), (y,)).pow(2).mean()
    vs = tuple(x(*p.shape) for p in params)
    over = F.jvp(lambda *p: F.grad(f, argnums=tuple(range(len(p))))(*p), params, vs)[1]
    back = F.vjp(lambda *p: F.grad(f, argnums=tuple(range(len(p))))(*p), *params)[1](vs)
    return [over, back]


@program
def laplacian(T, F, x):
    model = net(T, 2, 6, 1)
    u = lambda p: model(p).squeeze(-1)
    points = x(5, 2)
    return [F.vmap(lambda p: F.hessian(u)(p).diagonal().sum())(points), F.vmap(F.grad(u))(points), F.vmap(F.jacfwd(F.jacrev(u)))(points)]


@program
def newton_steps(T, F, x):
    f = lambda y: (y**4).sum() + (y[0] * y[1] - 1) ** 2
    y = x(3)
    for _ in range(3):
        y = y - T.linalg.solve(F.hessian(f)(y) + T.eye(3).double(), F.grad(f)(y))
    return y


# -- Functions
def function_of(T: Any) -> Any:
    class Scaled(T.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a, b):
            return a**2 * b, a.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            a, b = inputs
            ctx.save_for_backward(a, b)
            ctx.save_for_forward(a, b)

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            return 2 * a * b * g + a.cos() * h, a**2 * g

        @staticmethod
        def jvp(ctx, ta, tb):
            a, b = ctx.saved_tensors
            return 2 * a * b * ta + a**2 * tb, a.cos() * ta

    return Scaled


def own_vmap_of(T: Any) -> Any:
    class Own(T.autograd.Function):
        @staticmethod
        def forward(a, k):
            return a * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

        @staticmethod
        def vmap(info, in_dims, a, k):
            return Own.apply(a.movedim(in_dims[0], 0), k) + info.batch_size, 0

    return Own


@program
def functions_with_backwards(T, F, x):
    S = function_of(T)
    f = lambda a, b: S.apply(a, b)[0].sum() + S.apply(a, b)[1].sum()
    a, b, m = x(3), x(3), x(4, 3)
    return [
        F.grad(f)(a, b), F.grad(f, argnums=(0, 1))(a, b), F.vmap(f, (0, None))(m, b), F.vmap(F.grad(f, argnums=(0, 1)), (0, None))(m, b), F.jvp(f, (a, b), (b, a)), F.jacrev(lambda y: S.apply(y, b))(a),
        F.grad(lambda y: F.vmap(f, (0, None))(m, y).sum())(b), F.grad(lambda y: F.grad(f)(y, b).sum())(a), F.vmap(lambda y: own_vmap_of(T).apply(y, 3.0))(m), F.hessian(f)(a, b),
        F.vmap(F.vmap(f, (None, 0)), (0, None))(m, x(2, 3)),
    ]  # fmt: skip


# -- forward_ad
@program
def tensors_with_tangents(T, F, x):
    fw = T.autograd.forward_ad
    w = x(3).requires_grad_()
    p, t = x(3).requires_grad_(), x(3)
    with fw.dual_level():
        d = fw.make_dual(p, t)
        y = (d.exp() * w).cumsum(0)
        primal, tangent = fw.unpack_dual(y)
        plain = fw.unpack_dual(w)
        g = T.autograd.grad(y.sum(), p, create_graph=True)[0]
        hvp = fw.unpack_dual(g).tangent
        found = [primal, tangent, plain.primal, plain.tangent is None, hvp, *T.autograd.grad(tangent.sum(), (p, w))]
    return [*found, fw.unpack_dual(y).tangent is None]


@program
def trees(T, F, x):
    P = namedtuple("P", "a b")
    tree = importable(T, "utils._pytree")
    data = {"x": [1, (2, 3)], "y": P(4, OrderedDict(z=5)), "n": None}
    flat, spec = tree.tree_flatten(data)
    again = tree.tree_unflatten([v if v is None else v * 2 for v in flat], spec)
    return [
        flat,
        again["y"].b["z"],
        type(again["y"]).__name__,
        tree.tree_leaves(tree.tree_map(lambda a, b: (a, b), [1, 2], [3, 4])),
        spec.num_leaves,
        tree.tree_map_only(int, lambda v: v + 1, [1, "a"]),
    ]


def importable(T: Any, path: str) -> Any:
    return importlib.import_module(f"{T.__name__}.{path}")
