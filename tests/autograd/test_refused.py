"""Refusals of autograd, and the corners around: nothing to check, a Function half written, gradients that lie elsewhere, gradients that have graphs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import Function, gradcheck
from tritensor.autograd import walk as walk_module
from tritensor.autograd.function import once_differentiable
from tritensor.ops.table import registry


def test_gradcheck_of_nothing() -> None:
    with pytest.raises(ValueError, match="gradcheck: it expects at least one input tensor to require gradient"):
        gradcheck(tt.exp, tt.ones(2, dtype=tt.float64))


def test_gradcheck_leaves_out_what_is_not_float64() -> None:
    x = tt.tensor([1.0, 3.0, 2.0], dtype=tt.float64, requires_grad=True)
    assert gradcheck(lambda t: (t * t, t.argmax(), t.float()), x)
    with pytest.raises(tt.GradError, match=r"d output 1\[0\] / d input 0\[0\]"):
        gradcheck(lambda t: (t.float(), t.detach() * t), x)


def test_a_plain_pass_adds_to_a_gradient_with_a_graph() -> None:
    x = tt.tensor([2.0, 3.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first is not None
    assert first.requires_grad
    (x * 10).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [22.0, 37.0]
    assert x.grad is first  # in place, outside of the graph, as in PyTorch
    (again,) = tt.autograd.grad(first.sum(), x)
    assert again.tolist() == [12.0, 18.0]


def test_leaves_of_one_sum_do_not_share_a_gradient_with_a_graph() -> None:
    x, y = tt.tensor([1.0, 1.0], requires_grad=True), tt.tensor([1.0, 1.0], requires_grad=True)
    (x + y).sum().backward(create_graph=True)
    x.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2.0, 2.0], [1.0, 1.0])


def test_a_gradient_expanded_by_hand_is_added_to_element_by_element() -> None:
    x = tt.tensor([1.0, 1.0], requires_grad=True)
    x.grad = tt.ones(1).expand(2)
    (x * tt.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_a_tensor_is_not_its_own_gradient_and_inputs_are_not_empty() -> None:
    x = tt.tensor([1.0, 1.0], requires_grad=True)
    with pytest.raises(tt.GradError, match=r"its own gradient; assign a clone"):
        x.grad = x
    with pytest.raises(tt.GradError, match=r"inputs cannot be empty; name tensors"):
        (x * 2).sum().backward(inputs=[])


def test_zeros_for_what_is_unused_can_be_differentiated_with_create_graph() -> None:
    x, unused = tt.tensor([1.0], requires_grad=True), tt.tensor([1.0], requires_grad=True)
    for create in (False, True):
        (zeros,) = tt.autograd.grad((x * 2).sum(), unused, create_graph=create, materialize_grads=True)
        assert zeros.requires_grad is create


def test_a_pass_with_a_graph_adds_to_a_plain_gradient() -> None:
    x = tt.tensor([2.0], requires_grad=True)
    (x * 10).sum().backward()
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not None
    assert x.grad.tolist() == [22.0]
    assert tt.autograd.grad(x.grad.sum(), x)[0].tolist() == [12.0]


class _Nothing(Function):
    pass


class _Forward(Function):
    @staticmethod
    def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        return x * 2


class _Elsewhere(_Forward):
    @staticmethod
    def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
        return g.cuda()


def test_functions_half_written() -> None:
    x = tt.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"Function: define a static forward\(ctx, \*args\)"):
        _Nothing.apply(x)
    with pytest.raises(NotImplementedError, match=r"Function: define a static backward\(ctx, \*grads\)"):
        _Forward.apply(x).sum().backward()
    with pytest.raises(tt.GradError, match="_ElsewhereBackward: backward returned a gradient on cuda:0 for input 0 on cpu; move it"):
        _Elsewhere.apply(x).sum().backward()


@pytest.mark.parametrize(("op", "i", "named"), [("index_put", 1, "value"), ("index_put", 3, r"indices\[1\]"), ("cat", 2, r"xs\[2\]")])
def test_a_rule_that_gives_another_shape(op: str, i: int, named: str) -> None:
    """An op that does not broadcast has gradients of its inputs' shapes; the message names the input."""
    node: Any = SimpleNamespace(op=registry[op], meta=(((2, 3), np.float32),) * 5)
    with pytest.raises(tt.ShapeError, match=rf"backward: {op} returned a gradient of shape \(3, 2\) for {named} of shape \(2, 3\)"):
        walk_module._undo_broadcast(node, i, np.ones((3, 2)))


def test_what_a_function_node_does_not_have() -> None:
    node = _Forward.apply(tt.ones(2, requires_grad=True)).grad_fn
    assert repr(node.next_functions[0][0]) == "<AccumulateGrad>"
    assert repr(node) == "<_ForwardBackward>"
    assert node.materialize_grads is True
    with pytest.raises(AttributeError, match="'_ForwardBackward' object has no attribute '_hidden'"):
        _ = node._hidden
    with pytest.raises(AttributeError, match="none_such"):
        _ = node.none_such


class _Cubed(Function):
    """Its gradient is no tensor operation."""

    @staticmethod
    def forward(ctx: Any, x: tt.Tensor, other: tt.Tensor) -> tt.Tensor:
        ctx.save_for_backward(x)
        return x**3 + other

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
        (x,) = ctx.saved_tensors
        assert not tt.is_grad_enabled()
        return tt.tensor(g.detach().numpy() * 3 * x.detach().numpy() ** 2), g


def test_once_differentiable() -> None:
    x, y = tt.tensor([2.0], requires_grad=True), tt.tensor([1.0], requires_grad=True)
    gx, gy = tt.autograd.grad(_Cubed.apply(x, y).sum(), (x, y))
    assert (gx.tolist(), gy.tolist()) == ([12.0], [1.0])
    assert not gx.requires_grad
    gx, gy = tt.autograd.grad(_Cubed.apply(x, y).sum(), (x, y), create_graph=True)
    assert gx.tolist() == [12.0]
    seed = tt.ones(1, requires_grad=True)
    gx, gy = tt.autograd.grad(_Cubed.apply(x, y), (x, y), seed, create_graph=True)
    assert gx.requires_grad
    with pytest.raises(tt.GradError, match="marked once_differentiable, so its gradients have no gradients of their own"):
        gx.sum().backward()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_leaf_that_has_stopped_asking(on: str) -> None:
    """Between forward and backward it is told not to want one: it gets none, others do."""
    x, y = (tt.ones(2, device=on, requires_grad=True) for _ in range(2))
    z = (x * y).sum()
    x.requires_grad_(False)
    z.backward()
    assert x.grad is None
    assert y.grad is not None
    assert y.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_leaf_that_changed_its_shape(on: str) -> None:
    x = tt.ones(2, 3, device=on, requires_grad=True)
    y, z = (x * 2).sum(), None
    x.data = tt.ones(3, device=on)
    z = (x * 3).sum()
    with pytest.raises(
        RuntimeError, match=r"backward: a gradient of shape \(\d?,? ?3,?\) for a leaf of shape \(\d?,? ?3,?\), which changed its shape"
    ):
        (y + z).backward()
    x.grad = None
    with pytest.raises(RuntimeError, match=r"a gradient of shape \(2, 3\) for a leaf of shape \(3,\)"):
        (x.detach().sum() + (tt.ones(2, 3, device=on) * 0).sum() + y).backward()


def test_a_gradient_that_nobody_sends() -> None:
    """An output without a part in the loss, of an op with several: its node gets None there."""
    x = tt.tensor([[1.0, 5.0], [4.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    assert not indices.requires_grad
    values.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    y = tt.tensor(3.0, requires_grad=True)
    value, _ = y.max(0)
    (g,) = tt.autograd.grad(value, y, create_graph=True)
    assert g.item() == 1.0
    assert np.isclose(tt.autograd.grad((y.max(0)[0] ** 2), y)[0].item(), 6.0)
