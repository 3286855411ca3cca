"""Gradients in every PyTorch introduction's lines, with only the import changed."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor.autograd import Variable


def test_the_first_gradient() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    out = z.mean()
    assert y.grad_fn is not None
    assert x.grad_fn is None
    assert x.is_leaf
    assert z.tolist() == [[27.0, 27.0], [27.0, 27.0]]
    assert out.item() == 27.0
    out.backward()
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]


def test_variable() -> None:
    x = Variable(torch.ones(2, 2), requires_grad=True)
    (x + 2).pow(2).sum().backward()
    assert x.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert x.data.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert not Variable(torch.ones(1)).requires_grad


def test_requires_grad_set_later() -> None:
    a = torch.randn(2, 2)
    a = (a * 3) / (a - 100)
    assert not a.requires_grad
    a.requires_grad_(True)
    b = (a * a).sum()
    assert b.grad_fn is not None
    assert b.requires_grad
    with torch.no_grad():
        assert not (a**2).requires_grad
    assert not a.detach().requires_grad
    assert a.eq(a.detach()).all()


def test_doubling_until_large() -> None:
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    y, doublings = x * 2, 1
    while y.data.norm() < 1000:
        y, doublings = y * 2, doublings + 1
    y.backward(torch.tensor([0.1, 1.0, 0.0001]))
    want = [0.1 * 2**doublings, 1.0 * 2**doublings, 0.0001 * 2**doublings]
    assert x.grad.tolist() == pytest.approx(want, rel=1e-6)


def test_the_graph_can_be_read() -> None:
    x = torch.ones(2, requires_grad=True)
    y = ((x * 2) + 1).sum()
    names = []
    step = y.grad_fn
    while step is not None:
        names.append(step.name())
        step = step.next_functions[0][0] if step.next_functions else None
    assert names == ["SumBackward0", "AddBackward0", "MulBackward0", "AccumulateGrad"]
    assert y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0].variable is x


def test_six_nested_gradients() -> None:
    # n(x) = |x| at (3, 4); every next function is the sum of the gradient before. Closed forms by hand.
    x = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    y = x.norm()
    assert y.item() == 5.0
    want = [
        [0.6, 0.8], [0.032, -0.024], [-0.01888, 0.01216], [0.016512, -0.009024], [-0.0190387, 0.0086630], [0.0271417, -0.0099806],
    ]  # fmt: skip
    for expected in want:
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        assert g.tolist() == pytest.approx(expected, abs=1e-7)
        y = g.sum()


def test_a_recurrent_step_by_hand() -> None:
    torch.manual_seed(0)
    x, h = torch.randn(1, 10), torch.randn(1, 20)
    w_h, w_x = torch.randn(20, 20, requires_grad=True), torch.randn(20, 10, requires_grad=True)
    i2h, h2h = torch.mm(w_x, x.t()), torch.mm(w_h, h.t())
    following = (i2h + h2h).tanh()
    loss = following.sum()
    loss.backward()
    slope = 1 - following.detach() ** 2
    assert torch.allclose(w_x.grad, slope.mm(x))
    assert torch.allclose(w_h.grad, slope.mm(h))


def test_a_line_fitted_by_hand() -> None:
    torch.manual_seed(1)
    x = torch.randn(64, 1)
    y = 3 * x - 0.5
    w, b = torch.zeros(1, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(60):
        loss = ((x.mm(w) + b - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.2 * p.grad
                p.grad.zero_()
    assert w.item() == pytest.approx(3.0, abs=1e-3)
    assert b.item() == pytest.approx(-0.5, abs=1e-3)
