"""The graph over tensors on device meta: gradients have their inputs' shapes and types, hooks and functions run, transforms map shapes."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
from tests.loops import each


def leaf(*shape: int, **options: Any) -> tt.Tensor:
    return tt.ones(*shape, device="meta", requires_grad=True, **options)


def layout(x: tt.Tensor) -> Any:
    return tuple(x.shape), x.stride(), x.dtype, x.device.type


def test_gradients_have_their_leafs_layout() -> None:
    x, w = leaf(5, 3), tt.ones(4, 3, device="meta").t().detach().requires_grad_()
    loss = ((x @ w).relu().log_softmax(-1)[:, 0] * 2).mean()
    loss.backward()
    assert layout(x.grad) == layout(x)
    assert layout(w.grad) == layout(w)
    held = x.grad
    (x * 2).sum().backward()
    assert x.grad is held
    assert held._version == 1


def test_all_ways_of_a_gradient() -> None:
    x = leaf(3, 4)
    (x[0] + x[1] + x[2, 1:2]).sum().backward()  # slices, put together at the end
    y = x * 1
    y[0] = 0
    y[:, 1].mul_(2)
    y.t().add_(x.t())
    y.sum().backward()
    assert layout(x.grad) == layout(x)
    a, b = x.unbind(0)[:2]
    (g,) = tt.autograd.grad((a * b).sum(), x)
    assert layout(g) == layout(x)
    broadcast = leaf(1, 4)
    (g,) = tt.autograd.grad((x + broadcast).sum(), broadcast)
    assert g.shape == (1, 4)
    z = leaf(3, dtype=tt.complex64)
    (g,) = tt.autograd.grad((z * z.conj()).real.sum(), z)
    assert g.dtype is tt.complex64
    assert tt.autograd.grad(x.sum(), [x, broadcast], allow_unused=True)[1] is None
    with pytest.raises(tt.errors.GradError):
        x.mul_(2)


def test_gradients_of_gradients() -> None:
    x = leaf(3)
    (g,) = tt.autograd.grad((x.sigmoid() * x**3).sum(), x, create_graph=True)
    (h,) = tt.autograd.grad(g.sum(), x)
    assert layout(g) == layout(h) == layout(x)
    assert g.requires_grad


def test_functions_and_hooks() -> None:
    seen = []

    class Twice(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:  # type: ignore[override]
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return g * 2 + x * 0

    x = leaf(3)
    x.register_hook(lambda g: seen.append(g.shape))
    y = Twice.apply(x)
    y.retain_grad()
    tt.utils.checkpoint.checkpoint(lambda t: t.exp().sum(), y, use_reentrant=False).backward()
    assert seen == [(3,)]
    assert y.grad.is_meta
    assert x.grad.is_meta


def test_a_gradient_does_not_leave() -> None:
    x = tt.ones(2, requires_grad=True)
    y = x.to("meta").sum()
    assert y.requires_grad
    with pytest.raises(tt.errors.MetaError, match="a copy to cpu"):
        y.backward()
    assert x.grad is None
    with pytest.raises(tt.errors.GradError, match="on meta for a tensor"):
        x.grad = tt.ones(2, device="meta")


TRANSFORMS = {
    "vmap": lambda x: tt.func.vmap(lambda r: (r * 2).softmax(-1))(x),
    "grad": lambda x: tt.func.grad(lambda t: (t * t).sum())(x),
    "jvp": lambda x: tt.func.jvp(lambda t: t.sin(), (x,), (x,))[1],
    "vjp": lambda x: tt.func.vjp(lambda t: t.sin(), x)[1](x)[0],
    "jacrev": lambda x: tt.func.jacrev(lambda t: t**2)(x),
    "jacfwd": lambda x: tt.func.jacfwd(lambda t: t**2)(x),
    "hessian": lambda x: tt.func.hessian(lambda t: (t**3).sum())(x),
}


@each(("transform",), list(TRANSFORMS.values()), ids=list(TRANSFORMS))
def test_transforms(transform: Any) -> None:
    here, there = transform(tt.ones(2, 3)), transform(tt.ones(2, 3, device="meta"))
    assert there.is_meta
    assert (there.shape, there.dtype) == (here.shape, here.dtype)


def test_autocast_is_of_the_cpu_and_the_gpu() -> None:
    x = tt.ones(2, 2, device="meta")
    with tt.autocast("cpu", dtype=tt.bfloat16):
        assert (x @ x).dtype is tt.float32
