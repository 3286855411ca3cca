"""Derivatives, maps over batches, and what they nest to."""

# ruff: noqa: E731

from __future__ import annotations

import numpy as np

from tests.peer.func.asking import program


# -- derivatives that nest
@program
def third_derivative(T, F, x):
    g = F.grad
    return [g(g(g(lambda y: y.sin() * y.exp())))(x()), F.grad_and_value(lambda a, b: (a * b).sum(), argnums=(0, 1))(x(3), x(3))]


@program
def aux_and_trees(T, F, x):
    def f(p, y):
        out = (p["w"] @ y + p["b"]).tanh()
        return out.sum(), {"out": out, "two": (out * 2,)}

    p, y = {"w": x(3, 4), "b": x(3)}, x(4)
    return [F.grad(f, has_aux=True)(p, y), F.grad_and_value(f, has_aux=True)(p, y), F.grad(f, argnums=(0, 1), has_aux=True)(p, y)]


@program
def no_grad_inside_and_outside(T, F, x):
    def f(y):
        with T.no_grad():
            c = y**2
        return (y**3 - c).sum()

    def nested(y):
        with T.no_grad():
            shift = F.grad(lambda z: 0.25 * z**4)(y)
        return y**3 - shift

    def product(y):
        with T.no_grad():
            c = y * 1
        return y**2 * c

    v, s = x(3), x()
    with T.no_grad():
        outside = F.grad(f)(v)
    return [
        F.grad(f)(v),
        outside,
        F.grad(nested)(s),
        F.grad(F.grad(nested))(s),
        F.grad(F.grad(product))(s),
        F.grad(lambda y: F.grad_and_value(product)(y)[1])(s),
    ]


@program
def through_the_ordinary_graph(T, F, x):
    w = x(3).requires_grad_()
    v = x(3).requires_grad_()
    g = F.grad(lambda y: (y**2 * w).sum())(v)
    return [g, *T.autograd.grad(g.sum(), (v, w))]


@program
def vjp_many_times(T, F, x):
    out, pull = F.vjp(lambda a, b: {"p": a * b, "q": (a.sin(), b.sum())}, x(3), x(3))
    c = {"p": x(3), "q": (x(3), x())}
    return [out, pull(c), pull(c), F.vmap(pull)({"p": x(5, 3), "q": (x(5, 3), x(5))})]


@program
def jvp_along_trees(T, F, x):
    f = lambda p, y: {"a": (p["w"] * y).cumsum(0), "b": p["w"].prod()}
    return [F.jvp(f, ({"w": x(4)}, x(4)), ({"w": x(4)}, x(4))), F.jvp(lambda y: (y.sin(), y), (x(3),), (x(3),), has_aux=True)]


@program
def forward_and_reverse(T, F, x):
    f = lambda y: (y.sin() * y.roll(1, 0)).sum() ** 2
    v, t = x(4), x(4)
    hvp = F.jvp(F.grad(f), (v,), (t,))[1]
    reverse = F.vjp(F.grad(f), v)[1](t)
    other = F.grad(lambda y: F.jvp(f, (y,), (t,))[1])(v)
    twice = F.jvp(lambda y: F.jvp(f, (y,), (t,))[1], (v,), (t,))
    return [hvp, reverse, other, twice]


@program
def jacobians(T, F, x):
    f = lambda a, b: (a @ b, {"s": a.sum(0)})
    a, b = x(2, 3), x(3)
    found = []
    for jac in (F.jacrev, F.jacfwd):
        found += [jac(f)(a, b), jac(f, argnums=1)(a, b), jac(f, argnums=(0, 1))(a, b), jac(lambda y: (y.sin(), y * 2), has_aux=True)(b)]
    found += [
        F.jacrev(f, chunk_size=1)(a, b),
        F.jacrev(lambda p: p["u"] * p["v"])({"u": x(2), "v": x(2)}),
        F.jacfwd(lambda p: p["u"] * p["v"])({"u": x(2), "v": x(2)}),
    ]
    return found


@program
def hessians(T, F, x):
    f = lambda a: (a.sin() * a.flip(0)).sum()
    g = lambda a, b: (a * b**2).prod()
    v, a, b = x(3), x(2), x(2)
    return [
        F.hessian(f)(v), F.jacrev(F.jacrev(f))(v), F.jacfwd(F.jacfwd(f))(v), F.jacrev(F.jacfwd(f))(v), F.hessian(g, argnums=(0, 1))(a, b),
        F.vmap(F.hessian(f))(x(4, 3)), F.jacfwd(F.jacfwd(F.jacfwd(f)))(v),
    ]  # fmt: skip


@program
def linearized(T, F, x):
    out, push = F.linearize(lambda a, b: (a.sin() * b).cumsum(0), x(3), x(3))
    return [out, push(x(3), x(3)), push(x(3), x(3))]


# -- vmap
@program
def dimensions_of_arguments(T, F, x):
    f = lambda a, b: (a * b, (a + b).sum())
    return [
        F.vmap(f)(x(4, 3), x(4, 3)), F.vmap(f, (1, None))(x(3, 4), x(3)), F.vmap(f, (-1, 0), (1, 0))(x(3, 4), x(4, 3)),
        F.vmap(lambda p: p["a"] * p["b"][0], ({"a": 0, "b": None},))({"a": x(4, 2), "b": (x(2),)}),
        F.vmap(lambda a, b: a * b)(x(4), b=x(4)), F.vmap(lambda a: T.ones(2).double())(x(3)), F.vmap(f, chunk_size=3)(x(7, 3), x(7, 3)),
    ]  # fmt: skip


@program
def nested_maps(T, F, x):
    pairwise = F.vmap(F.vmap(lambda a, b: ((a - b) ** 2).sum(), (None, 0)), (0, None))
    return [
        pairwise(x(3, 2), x(5, 2)),
        F.vmap(F.vmap(F.vmap(lambda a: a.sin())))(x(2, 3, 4)),
        F.vmap(F.vmap(T.matmul, (None, 0)), (0, None))(x(2, 3, 4), x(5, 4, 2)),
    ]


@program
def shapes_inside(T, F, x):
    def f(a):
        assert (tuple(a.shape), a.dim(), a.size(0), a.numel(), len(a)) == ((3, 4), 2, 3, 12, 3)
        rows = [r * i for i, r in enumerate(a)]
        b = a.reshape(-1, 2).view(12).unsqueeze(0).expand(2, 12)
        return T.stack(rows).sum(1), b.t() @ b, a[1], a[..., -1], a[:, ::2], a.flatten().softmax(0), a.new_zeros(2) + a[0, :2]

    return F.vmap(f)(x(5, 3, 4))


@program
def indexing_by_examples(T, F, x):
    i = T.from_numpy(np.array([[0, 2], [1, 1], [2, 0]]))
    k = T.from_numpy(np.array([0, 2, 1]))
    t = x(4, 3)
    return [
        F.vmap(lambda a, j: a[j])(x(3, 3, 2), i), F.vmap(lambda j: t[:, j])(i), F.vmap(lambda a: a[:, [0, 2]])(x(3, 2, 3)), F.vmap(lambda a, j: a[0, j, 1])(x(3, 2, 3, 4), i),
        F.vmap(lambda a, j: a.gather(0, j))(x(3, 3), i), F.vmap(lambda a, j: a.scatter(0, j, 1.0))(x(3, 3), i), F.vmap(lambda a, j: a.index_select(0, j))(x(3, 3), i),
        F.vmap(lambda a, j, v: a.index_put((j,), v, accumulate=True))(x(3, 3), i, x(3, 2)), F.vmap(lambda j: T.nn.functional.embedding(j, t))(i),
        F.vmap(lambda a, j: a.index_add(0, j, a[:2]))(x(3, 3), i), F.vmap(lambda j: T.nn.functional.one_hot(j, 3))(i),
        F.vmap(lambda a, j: a.gather(0, j[None]).squeeze(0))(x(3, 3), k), F.vmap(lambda a: a[[0, 1], :, [1, 0]])(x(3, 2, 4, 2)),
    ]  # fmt: skip


@program
def writes_inside(T, F, x):
    def fill(a):
        out = T.zeros_like(a)
        out[0] = a[1] * 2
        out[1:] += a[0]
        out.mul_(a).add_(1.0)
        return out

    def scan(a):
        b = a.clone()
        for i in range(1, 3):
            b[i] = b[i - 1].clone() * a[i]
        return b.sum()

    m = x(4, 3)
    mapped = F.vmap(fill)(m)
    dest = x(4, 3)
    F.vmap(lambda d, s: d.copy_(s * 2))(dest, m)
    return [
        mapped,
        F.vmap(F.grad(scan))(m),
        F.grad(scan)(m[0]),
        F.jvp(scan, (m[0],), (m[1],)),
        F.hessian(scan)(m[0]),
        dest,
        F.vmap(lambda a: a.masked_fill(a > 0, 0.0))(m),
    ]


@program
def writes_into_new_tensors(T, F, x):
    def f(a):
        out = T.zeros(3, dtype=T.float64)
        out[0] = a[0] ** 2
        out[1:] = a[1:] * a[0]
        return out.sum() * a.sum()

    v = x(3)
    return [F.grad(f)(v), F.grad(lambda y: F.grad(f)(y).sum())(v), F.jvp(f, (v,), (x(3),)), F.jacrev(F.grad(f))(v)]


@program
def functions_of_batches(T, F, x):
    n = T.nn.functional
    m, a, b = x(3, 4, 4), x(3, 2, 3, 5, 5), x(3, 6, 3, 2, 2)
    spd = m @ m.mT + T.eye(4).double()
    return [
        F.vmap(T.linalg.inv)(spd), F.vmap(T.linalg.cholesky)(spd), F.vmap(T.linalg.det)(spd), F.vmap(lambda s: T.linalg.solve(s, s[0]))(spd), F.vmap(lambda s: T.linalg.eigvalsh(s))(spd),
        F.vmap(T.trace)(spd), F.vmap(T.diag)(spd), F.vmap(lambda s: T.einsum("ij,kj->ik", s, m[0]))(spd), F.vmap(T.mv)(m, x(3, 4)), F.vmap(T.dot)(x(3, 4), x(3, 4)),
        F.vmap(n.conv2d)(a, b), F.vmap(n.conv2d, (None, 0))(a[0], b), F.vmap(n.conv2d, (0, None))(a, b[0]), F.vmap(n.conv2d)(a, b, x(3, 6)), F.vmap(lambda y: n.max_pool2d(y, 2))(a),
        F.vmap(lambda y: n.avg_pool2d(y, 2))(a), F.vmap(lambda y: n.layer_norm(y, (5,)))(a), F.vmap(lambda y, w: n.layer_norm(y, (5,), w))(a, x(3, 5)), F.vmap(lambda y: n.pad(y, (1, 2)))(a),
        F.vmap(lambda y: n.softmax(y, -1))(m), F.vmap(lambda y: n.log_softmax(y, 0))(m), F.vmap(n.mse_loss)(m, x(3, 4, 4)), F.vmap(lambda y: T.sort(y, dim=0))(m), F.vmap(lambda y: y.topk(2))(m),
        F.vmap(lambda y: y.max(0))(m), F.vmap(lambda y: y.argmax())(m), F.vmap(lambda y: y.var())(m), F.vmap(lambda y: y.norm())(m), F.vmap(lambda y: T.cat([y, y * 2], 1))(m),
        F.vmap(lambda y: y.std(0))(m), F.vmap(lambda y: T.linalg.norm(y))(m), F.vmap(lambda y: T.where(y > 0, y, 0.0))(m), F.vmap(lambda y: y.cumsum(1))(m), F.vmap(lambda y: T.tril(y))(m),
        F.vmap(lambda y: y.unfold(0, 2, 1))(m), F.vmap(lambda y: n.interpolate(y, scale_factor=2))(a), F.vmap(lambda y: T.outer(y[0], y[1]))(m), F.vmap(lambda y: T.cdist(y, y * 2))(m),
        F.vmap(lambda y: y.median(0))(m), F.vmap(lambda y: T.fft.fft(y).abs())(m), F.vmap(T.kron)(x(3, 2, 2), x(3, 2, 2)), F.vmap(lambda y: n.gelu(y))(m), F.vmap(lambda y: T.logsumexp(y, 0))(m),
        F.vmap(lambda y: T.linalg.svd(y)[1])(m), F.vmap(lambda y: T.linalg.qr(y)[1])(spd), F.vmap(lambda y: T.roll(y, 1))(m), F.vmap(lambda y: y.squeeze())(x(3, 1, 2)), F.vmap(T.cross)(x(4, 3), x(4, 3)),
        F.vmap(lambda y: y.clamp(0, 1))(m),
    ]  # fmt: skip


@program
def losses_of_examples(T, F, x):
    n = T.nn.functional
    t = T.from_numpy(np.array([[0, 1], [2, 0], [1, -100]]))
    y = x(3, 2, 4)
    w = x(4).abs()
    return [
        F.vmap(n.cross_entropy)(y, t), F.vmap(lambda a, b: n.cross_entropy(a, b, weight=w))(y, t), F.vmap(lambda a, b: n.cross_entropy(a, b, label_smoothing=0.1, reduction="sum"))(y, t),
        F.vmap(F.grad(n.cross_entropy))(y, t), F.vmap(lambda a: n.cross_entropy(a, a.softmax(-1)))(y), F.vmap(n.cross_entropy)(y[:, 0], t[:, 0].clamp(min=0)), F.vmap(n.nll_loss)(y.log_softmax(-1), t),
        F.vmap(lambda a, b: n.cross_entropy(a, b, reduction="none"))(y, t), F.vmap(F.jacrev(lambda a: n.softmax(a, 0)))(y[:, 0]),
    ]  # fmt: skip


@program
def complex_numbers(T, F, x):
    z = T.complex(x(3, 2), x(3, 2))
    f = lambda y: (y * y.conj()).real.sum() + (y**2).imag.sum()
    return [
        F.vmap(f)(z),
        F.grad(f)(z),
        F.vmap(F.grad(f))(z),
        F.jvp(lambda y: y.abs(), (z,), (z * 1j,)),
        F.jvp(lambda y: y**3, (z,), (z * 1j,)),
    ]


@program
def rearranged(T, F, x):
    y = x(2, 6, 3, 4)
    return [
        F.rearrange(y, "b c h w -> b h w c"),
        F.rearrange(y, "b (c d) h w -> b c (d h) w", c=2),
        F.rearrange(y, "... w -> w ..."),
        F.rearrange(y, "b ... -> b (...)"),
        F.rearrange([y, y], "two b c h w -> b 1 (c two) h w"),
    ]
