"""Transforms of functions: grad, vjp, jvp, jacobians, hessian, vmap and their nestings, of random bodies that write in place."""

from __future__ import annotations

import random
from typing import Any

import tritensor
from tests.fuzz.drawing import Writer, dim, literal, number, shape, view
from tests.fuzz.judges import Judge, beside_torch, equal_pairs, errors
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

SMOOTH = ["sin", "cos", "tanh", "exp", "sigmoid", "square", "neg", "atan", "erf", "expm1", "asinh", "softplus", "silu"]
WRITES = [
    "sin_()",
    "cos_()",
    "tanh_()",
    "exp_()",
    "sigmoid_()",
    "square_()",
    "neg_()",
    "mul_(1.5)",
    "add_(x0)",
    "mul_(2)",
    "add_(1)",
    "sub_(0.5)",
    "zero_()",
    "fill_(0.5)",
    "atan_()",
]


def _line(w: Writer) -> None:
    """One statement of a function's body."""
    rng = w.rng
    name = w.any(lambda x: x.numel() < 100) or "x"
    x = w.scope[name]
    d = dim(rng, x.ndim)
    pick = rng.random()
    if pick < 0.3:
        op = rng.choice(SMOOTH)
        w.put(f"F.{op}({name})" if op in ("softplus", "silu") else f"{name}.{op}()")
    elif pick < 0.55:
        other = rng.choice([n for n in w.tensors() if w.scope[n].shape == x.shape] + ["1.5", "2"])
        w.put(f"{name} {rng.choice('+-**')} {other}")
    elif pick < 0.7:
        w.put(view(rng, x, name, strided=False))
    elif pick < 0.85 and name != "x":
        source = number(rng, "float64")
        w.add(
            rng.choice(
                (
                    f"{name}.{rng.choice(WRITES).replace('x0', name)}",
                    f"{name}[...] = {source}",
                    f"{name}[:1] = {source}",
                    f"{name} *= 2",
                    f"F.relu({name}, inplace=True)",
                    f"F.silu({name}, inplace=True)",
                    f"F.leaky_relu_({name})",
                    f"{name}.clamp_(-1, 1)",
                )
            )
        )
    else:
        w.put(rng.choice((f"{name}.sum({d}, keepdim=True)", f"{name}.cumsum({d})", f"F.softmax({name}, {d})", f"tt.cat([{name}, {name}], {d})", f"{name}.mean()", f"{name}.flip({d})", f"{name} @ {name}.mT", f"{name}.prod()", f"{name}.logsumexp({d})", f"tt.where({name} > 0, {name}, {name} * 2)", f"{name}.clone()", f"{name}.contiguous()", f"tt.stack([{name}, {name} * 2])", f"F.layer_norm({name}, {tuple(x.shape[-1:])})", f"{name}.amax({d})", f"{name}.expand({(2, *x.shape)})")))  # fmt: skip


def body(rng: random.Random, sizes: tuple[int, ...], scalar: bool) -> str:
    """A function f of x, as text."""
    w = Writer(rng, errors=0.0, prefix="t")
    w.scope["x"] = tritensor.full(sizes, 0.5, dtype=tritensor.float64)
    if rng.random() < 0.9:
        w.add("x = x.clone()")  # else the writes reach what the caller holds
    for _ in range(rng.randint(1, 5)):
        _line(w)
    last = w.any() if w.count else "x"
    if w.scope[last].ndim == 0 and not scalar:
        scalar = rng.random() < 0.5
    lines = [*w.statements, f"return ({last} * {last}).sum()" if scalar else f"return {last}"]
    return "def f(x):\n" + "\n".join(f"    {line}" for line in lines)


SCALARS = ["tt.func.grad(f)(x)", "tt.func.grad_and_value(f)(x)", "tt.func.hessian(f)(x)", "tt.func.jacfwd(tt.func.grad(f))(x)", "tt.func.grad(lambda y: tt.func.grad(f)(y).sum())(x)", "tt.func.jvp(tt.func.grad(f), (x,), (v,))", "tt.func.vjp(tt.func.grad(f), x)[1](v)", "tt.func.vmap(tt.func.grad(f))(tt.stack([x, v]))", "tt.func.grad(lambda y: tt.func.jvp(f, (y,), (v,))[1])(x)", "tt.func.vmap(tt.func.hessian(f))(tt.stack([x, v]))", "tt.func.jacrev(tt.func.jacrev(f))(x)"]  # fmt: skip
ANY = ["tt.func.jacrev(f)(x)", "tt.func.jacfwd(f)(x)", "tt.func.jvp(f, (x,), (v,))", "tt.func.vmap(f)(tt.stack([x, v]))", "tt.func.vmap(f, in_dims=-1, out_dims=-1)(tt.stack([x, v], -1))", "tt.func.vmap(tt.func.vmap(f))(tt.stack([x, v, x, x]).reshape(2, 2, *x.shape))", "tt.func.vmap(tt.func.jacrev(f))(tt.stack([x, v]))", "tt.func.vmap(lambda t: tt.func.jvp(f, (x,), (t,))[1])(tt.stack([x, v]))", "tt.func.vjp(f, x)[0]", "tt.func.linearize(f, x)[1](v)", "tt.func.jacfwd(tt.func.jacrev(f))(x)", "tt.func.jacrev(tt.func.jacfwd(f))(x)"]  # fmt: skip
PAIRS = [
    ("tt.func.jacrev(f)(x)", "tt.func.jacfwd(f)(x)"),
    ("tt.func.vmap(f)(tt.stack([x, v]))", "tt.stack([f(x), f(v)])"),
    ("tt.func.vmap(f, in_dims=-1)(tt.stack([x, v], -1))", "tt.stack([f(x), f(v)])"),
    ("(tt.func.jvp(f, (x,), (v,))[1] * tt.func.jvp(f, (x,), (v,))[0]).sum()", "(tt.func.vjp(f, x)[1](f(x))[0] * v).sum()"),
    ("tt.func.jacrev(tt.func.jacrev(f))(x)", "tt.func.jacfwd(tt.func.jacrev(f))(x)"),
    ("tt.func.jvp(f, (x,), (v,))[0]", "f(x)"),
    ("tt.func.vmap(tt.func.jacfwd(f))(tt.stack([x, v]))", "tt.stack([tt.func.jacrev(f)(x), tt.func.jacrev(f)(v)])"),
]
SCALAR_PAIRS = [
    *PAIRS,
    ("tt.func.grad(f)(x)", "tt.func.jacfwd(f)(x)"),
    ("tt.func.hessian(f)(x)", "tt.func.jacrev(tt.func.grad(f))(x)"),
    ("tt.func.vmap(tt.func.grad(f))(tt.stack([x, v]))", "tt.stack([tt.func.grad(f)(x), tt.func.grad(f)(v)])"),
    ("tt.func.grad(lambda y: tt.func.vmap(f)(tt.stack([y, v])).sum())(x)", "tt.func.grad(f)(x)"),
]


def draw(rng: random.Random) -> Program:
    """A function, a point and a direction; two transforms and a pair of them that must agree."""
    sizes = tuple(max(n, 1) for n in shape(rng, 0, 3))
    scalar = rng.random() < 0.5
    lines = [f"x = {literal(rng, sizes, 'float64')}", f"v = {literal(rng, sizes, 'float64')}", body(rng, sizes, scalar)]
    lines += [f"v{k} = {rng.choice([*ANY, *SCALARS] if scalar else ANY)}" for k in range(2)]
    left, right = rng.choice(SCALAR_PAIRS if scalar else PAIRS)
    return Program((*lines, f"left0 = {left}", f"right0 = {right}"))


def judges(torch: Any) -> list[Judge]:
    return [equal_pairs, beside_torch(torch, strides=False)] if torch is not None else [errors, equal_pairs]


KIND = Kind("transforms", draw, judges, weight=4)
