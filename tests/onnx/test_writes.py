"""Writes in place: through views, bases and tensors from outside, as functional updates of the graph; and that nothing outside is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.onnx.agreement import agree
from tritensor import nn

BOTH = {0: {0: "a", 1: "b"}}


def rows(x: tt.Tensor) -> Any:
    y = tt.zeros(x.size(0), x.size(1), 4)
    y[0] = x[1]
    y[:, 1:] += 2
    y[:, 0, ::2] *= 3
    return y


def views_of_views(x: tt.Tensor) -> Any:
    y = x.clone()
    inner = y.transpose(0, 1)[1:].permute(2, 0, 1)
    inner.mul_(2)
    y.view(-1)[:3].fill_(7)
    return y, inner


def base_then_view(x: tt.Tensor) -> Any:
    y = x * 1
    first = y[0]
    y.add_(1)
    first.sub_(x[1])
    return y, first * 2


def diagonal(x: tt.Tensor) -> Any:
    y = x[:3, 0, :3] * 1
    y.diagonal().fill_(9)
    return y


def at_indices(x: tt.Tensor) -> Any:
    y = x.clone()
    y[tt.tensor([0, 2])] = 0.0
    y[:, [1, 0], 2] = x[:, :2, 3]
    y[y > 1] = 1.0
    y.index_add_(0, tt.tensor([0, 0]), x[:2])
    return y


def masked(x: tt.Tensor) -> Any:
    y = x.clone()
    y.masked_fill_(x > 0, -1.0)
    y.clamp_(min=-0.5).relu_()
    return y.sigmoid_()


def empties(x: tt.Tensor) -> Any:
    y = tt.empty(x.shape)
    y.copy_(x)
    z = tt.empty_like(x)
    z[...] = x + 1
    return y, z, tt.ones_like(x).mul_(x)


def detached(x: tt.Tensor) -> Any:
    y = x * 2
    y.detach().add_(1)
    y.data.mul_(2)
    return y


def outs(x: tt.Tensor) -> Any:
    y = tt.empty(x.shape)
    tt.add(x, 1, out=y)
    return y


def loops(x: tt.Tensor) -> Any:
    y = x.new_zeros(x.shape)
    for k in range(4):
        y[..., k] = x[..., 3 - k] * k
    return y


FIXED = {"diagonal", "at_indices"}  # they need sizes as numbers


@pytest.mark.parametrize(
    "f", [rows, views_of_views, base_then_view, diagonal, at_indices, masked, empties, detached, outs, loops], ids=lambda f: f.__name__
)
def test_writes_are_updates(f: Callable[..., Any]) -> None:
    tt.manual_seed(0)
    agree(f, (tt.randn(4, 5, 4),), None if f.__name__ in FIXED else BOTH)


def test_an_input_that_is_written_is_told_of_and_kept() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        x[0] = 0
        return x + 1

    x = tt.ones(2, 3)
    with pytest.warns(tt.onnx.TracerWarning, match=r"writes into its input 'x' \(.*test_writes.py:\d+\)"):
        program = tt.onnx.export(f, (x,))
    assert x.sum().item() == 6
    assert program(tt.ones(2, 3))[0].tolist() == [[1, 1, 1], [2, 2, 2]]


def test_tensors_of_others_are_given_back() -> None:
    outside = tt.zeros(3, 2)
    column = outside[:, 1]

    def f(x: tt.Tensor) -> tt.Tensor:
        outside[0] = x
        column.add_(x[0])
        return outside * 2

    program = tt.onnx.export(f, (tt.ones(2),))
    assert type(outside._array) is np.ndarray
    assert type(column._array) is np.ndarray
    assert outside.sum().item() == 0
    assert column.sum().item() == 0
    assert program(tt.tensor([1.0, 2.0]))[0].tolist() == [[2, 6], [0, 2], [0, 2]]


class Counting(nn.Module):
    """A module with a state that forward changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", tt.zeros(2))
        self.weight = nn.Parameter(tt.ones(2))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        self.count += x.sum(0)
        return x * self.weight + self.count


def test_a_state_that_forward_changes() -> None:
    model = Counting()
    weight = model.weight
    with pytest.warns(tt.onnx.TracerWarning, match=r"forward writes count \(.*test_writes.py:\d+\).*return it as an output"):
        program = tt.onnx.export(model, (tt.ones(3, 2),), dynamic_axes={"x": {0: "n"}})
    assert model.count.tolist() == [0, 0]
    assert model.weight is weight
    assert weight.requires_grad
    assert type(weight._array) is np.ndarray
    assert program(tt.ones(2, 2))[0].tolist() == [[3, 3], [3, 3]]


def test_a_model_that_raises_is_left_as_it_was() -> None:
    class Failing(Counting):
        def forward(self, x: tt.Tensor) -> tt.Tensor:
            super().forward(x)
            raise ValueError("mine")

    model = Failing().train()
    with pytest.raises(ValueError, match="mine"):
        tt.onnx.export(model, (tt.ones(3, 2),))
    assert model.training
    assert model.count.tolist() == [0, 0]
    assert type(model.weight._array) is np.ndarray
    assert model._hooks is None or not model._hooks.forward
    assert not tt.onnx.is_in_onnx_export()
    assert tt.zeros(2).add(1).tolist() == [1, 1]
    x = tt.ones(3, 2, requires_grad=True)
    (x * model.weight).sum().backward()
    assert x.grad is not None


def test_gradients_inside_of_forward() -> None:
    def force(x: tt.Tensor) -> tt.Tensor:
        with tt.enable_grad():
            y = x.clone().requires_grad_()
            return tt.autograd.grad((y**3).sum(), y)[0]

    agree(force, (tt.randn(3, 4),), {0: {0: "n"}})


def test_functions_and_transforms_inside_of_forward() -> None:
    class Doubled(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
            return g * 2

    agree(lambda x: Doubled.apply(x) + 1, (tt.randn(3, 4),), {0: {0: "n"}})
    agree(lambda x: tt.vmap(lambda row: row @ row)(x), (tt.randn(3, 4),), {0: {0: "n"}})
    agree(lambda x: tt.func.grad(lambda y: (y.sin() * y).sum())(x), (tt.randn(3, 4),), {0: {0: "n"}})
    agree(lambda x: tt.func.jvp(tt.sin, (x,), (tt.ones_like(x),))[1], (tt.randn(3, 4),), {0: {0: "n"}})
