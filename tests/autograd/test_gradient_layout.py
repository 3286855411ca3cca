"""`.grad` lies in memory as its leaf does, where that is without gaps and repeats, else in C order: PyTorch's rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F

LOSSES: dict[str, Callable[[tt.Tensor], tt.Tensor]] = {
    "elementwise": lambda x: (x * x.exp()).sum(),
    "along rows": lambda x: (F.softmax(x, -1) * x).sum(),
    "a product": lambda x: x.mm(x.t()).sum(),
    "a diagonal": lambda x: tt.diag_embed(x).sum(),
    "a copy": lambda x: x.contiguous().square().sum(),
    "a broadcast": lambda x: (x + tt.ones(3, 1, 1, device=x.device)).sum(),
}
# How a leaf lies: made of (4, 6) numbers, and the strides of its gradient.
LEAVES: dict[str, tuple[Callable[[tt.Tensor], tt.Tensor], tuple[int, int]]] = {
    "in C order": (lambda t: t, (6, 1)),
    "turned": (lambda t: t.t(), (1, 6)),
    "with gaps": (lambda t: t[:, ::2], (3, 1)),
    "turned with gaps": (lambda t: t[:, ::2].t(), (4, 1)),
    "repeated": (lambda t: t[:1].expand(4, 6), (6, 1)),
}


def leaf(lying: str, device: str) -> tt.Tensor:
    values = tt.from_numpy(np.linspace(0.1, 1.0, 24, dtype=np.float32).reshape(4, 6)).to(device)
    return LEAVES[lying][0](values).detach().requires_grad_()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("lying", list(LEAVES))
def test_a_gradient_lies_as_its_leaf(device: str, loss: str, lying: str) -> None:
    x, again = leaf(lying, device), leaf(lying, device)
    LOSSES[loss](x).backward()
    LOSSES[loss](again).backward(create_graph=True)
    assert x.grad is not None
    assert again.grad is not None
    assert x.grad.stride() == again.grad.stride() == LEAVES[lying][1]
    first = x.grad.numpy(force=True).copy()
    np.testing.assert_allclose(again.grad.numpy(force=True), first, rtol=1e-5, atol=1e-6)
    LOSSES[loss](x).backward()  # added in place: it stays where it lies
    assert x.grad.stride() == LEAVES[lying][1]
    np.testing.assert_allclose(x.grad.numpy(force=True), 2 * first, rtol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_gradient_that_was_laid_anew_is_differentiable(device: str) -> None:
    x = leaf("turned", device)
    (F.softmax(x, -1) * x.pow(3)).sum().backward(create_graph=True)
    plain = leaf("turned", device)
    (g,) = tt.autograd.grad((F.softmax(plain, -1) * plain.pow(3)).sum(), plain, create_graph=True)
    assert x.grad is not None
    assert x.grad.requires_grad
    np.testing.assert_array_equal(
        tt.autograd.grad(x.grad.square().sum(), x)[0].numpy(force=True), tt.autograd.grad(g.square().sum(), plain)[0].numpy(force=True)
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_weight_in_channels_last_has_its_gradient_there(device: str) -> None:
    w = tt.rand(4, 3, 3, 3, device=device).to(memory_format=tt.channels_last).requires_grad_()
    F.conv2d(tt.rand(2, 3, 5, 5, device=device), w).sum().backward()
    assert w.grad is not None
    assert w.grad.stride() == (27, 1, 9, 3)


def test_a_gradient_keeps_its_own_layout_where_the_policy_is_off() -> None:
    x = tt.empty(2, 3, 4).permute(2, 0, 1).requires_grad_()

    def strides() -> tuple[int, ...]:
        x.grad = None
        (x * tt.ones(4, 2, 3)).sum().backward()
        return x.grad.stride()

    assert strides() == x.stride()
    with tt.autograd.enforce_grad_layout_policy(False):
        assert strides() == (6, 3, 1)
    assert tt.autograd.enforce_grad_layout_policy(False)(strides)() == (6, 3, 1)
    assert strides() == x.stride()
