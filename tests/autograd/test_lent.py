"""Writes to what a node has borrowed, before backward: the gradients are those of what was computed. Each against a closed form or the call without the write."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tritensor.autograd import grad
from tritensor.nn import functional as F

ON = pytest.mark.parametrize("on", ["cpu", "cuda"])
X = [[1.0, 2.0, -1.0], [0.5, -0.5, 0.0]]


def tracked(values: Any, on: str = "cpu") -> tt.Tensor:
    return tt.tensor(values, dtype=tt.float64, device=on, requires_grad=True)


def softmax_less_one(on: str) -> tt.Tensor:
    """softmax - one-hot, of classes 1 and 2."""
    e = tt.exp(tt.tensor(X, dtype=tt.float64))
    p = e / e.sum(1, keepdim=True)
    p[0, 1] -= 1
    p[1, 2] -= 1
    return p.to(on)


@ON
@pytest.mark.parametrize(("reduction", "share"), [("mean", 2.0), ("sum", 1.0)])
def test_a_loss_is_divided_in_place(on: str, reduction: str, share: float) -> None:
    x, t = tracked(X, on), tt.tensor([1, 2], device=on)
    loss = F.cross_entropy(x, t, reduction=reduction)
    loss /= 4
    loss += (x * x).sum()
    loss.backward()
    tt.testing.assert_close(x.grad, softmax_less_one(on) / (4 * share) + 2 * x.detach())


@ON
@pytest.mark.parametrize(
    "write", [lambda t: t.mul_(0.5), lambda t: t.view(-1).mul_(0.5), lambda t: t.mul_(0.25).add_(0), lambda t: t.div_(2)]
)
def test_every_way_to_write_a_loss(on: str, write: Callable[[tt.Tensor], tt.Tensor]) -> None:
    x, t = tracked(X, on), tt.tensor([1, 2], device=on)
    loss = F.cross_entropy(x, t, label_smoothing=0.1, weight=tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64, device=on))
    plain = grad(loss, x, retain_graph=True)[0]
    scale = (
        write(loss).item()
        / F.cross_entropy(x, t, label_smoothing=0.1, weight=tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64, device=on)).item()
    )
    tt.testing.assert_close(grad(loss, x)[0], plain * scale)


@ON
def test_inputs_of_a_distance_are_written(on: str) -> None:
    x, t = tracked([1.0, -2.0], on), tt.tensor([0.0, 0.0], dtype=tt.float64, device=on)
    loss = F.l1_loss(x, t, reduction="sum")
    t.add_(10)
    with tt.no_grad():
        x.neg_()
    loss.backward()
    assert x.grad.tolist() == [1.0, -1.0]


@ON
def test_a_write_through_a_view_a_base_and_a_detached_tensor(on: str) -> None:
    for write in (
        lambda b: b.zero_(),
        lambda b: b[0].zero_(),
        lambda b: b.detach().zero_(),
        lambda b: b.copy_(tt.ones_like(b)),
        lambda b: b.fill_(7),
    ):
        x, base = tracked([1.0, -2.0], on), tt.zeros(2, 2, dtype=tt.float64, device=on)
        loss = F.l1_loss(x, base[0], reduction="sum")
        write(base)
        loss.backward()
        assert x.grad.tolist() == [1.0, -1.0]


def test_a_tensor_that_an_op_computed_is_written_and_both_graphs_are_right() -> None:
    w = tracked([1.0, 2.0])
    y = w * 3  # [3, 6]
    loss = F.kl_div(y, tt.tensor([0.5, 0.5], dtype=tt.float64), reduction="sum")  # -0.5 sum y + ...
    y.mul_(w)  # 3 w^2
    (loss + y.sum()).backward()
    assert w.grad.tolist() == pytest.approx([-1.5 + 6.0, -1.5 + 12.0])


def test_derivatives_of_the_gradient_go_through_the_copy_to_what_it_was_of() -> None:
    w = tracked(X)
    x = w * 1
    loss = F.cross_entropy(x, tt.tensor([1, 2]), reduction="sum")
    with tt.no_grad():
        x.zero_()
    loss /= 2
    (first,) = grad(loss, w, create_graph=True)
    (second,) = grad(first[0, 0], w)
    p = (softmax_less_one("cpu") + tt.tensor([[0.0, 1, 0], [0, 0, 1]], dtype=tt.float64))[0]
    expected = [(p[0] * (1 - p[0])).item() / 2, -(p[0] * p[1]).item() / 2, -(p[0] * p[2]).item() / 2]
    assert second.tolist() == [pytest.approx(expected), [0.0, 0.0, 0.0]]
    leaf = tracked([0.3, -0.4])
    loss = F.poisson_nll_loss(leaf, tt.ones(2, dtype=tt.float64), reduction="sum")  # e^x - x
    with tt.no_grad():
        leaf.zero_()
    (first,) = grad(loss, leaf, create_graph=True)
    assert grad(first.sum(), leaf)[0].tolist() == pytest.approx(tt.exp(tt.tensor([0.3, -0.4], dtype=tt.float64)).tolist())


@pytest.mark.parametrize("call", [
    lambda x: tt.special.ndtr(x), lambda x: 2 / x, lambda x: tt.polar(x, x), lambda x: tt.kron(x, x),
    lambda x: tt.ldexp(x, x), lambda x: F.margin_ranking_loss(x, x * 0, x.detach().sign()), lambda x: F.rms_norm(x, (3,), x[0]), lambda x: F.smooth_l1_loss(x, x.detach() * 2),
    lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), lambda x: tt.linalg.multi_dot([x, x.mT, x]), lambda x: tt.linalg.qr(x.mT)[1],
    lambda x: tt.masked.sum(x, 1, mask=x.detach() > 0),
])  # fmt: skip
def test_a_function_whose_argument_is_written(call: Callable[[tt.Tensor], tt.Tensor]) -> None:
    x = tracked([[0.7, -0.3, 1.1], [0.4, 0.9, -0.8]])
    y = call(x)
    weights = tt.cos(tt.arange(y.numel(), dtype=tt.float64)).reshape(y.shape).to(y.dtype)
    (plain,) = grad(y, x, weights)
    y = call(x)
    with tt.no_grad():
        x.mul_(-3).add_(0.5)
    tt.testing.assert_close(grad(y, x, weights)[0], plain)


@pytest.mark.parametrize("call", [
    lambda x: tt.sinc(x), lambda x: tt.special.erfinv(x), lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    lambda x: F.linear_cross_entropy(x, x, tt.tensor([0, 1])), lambda x: tt.gather(x, 0, tt.zeros(2, 0, 0).long()),
])  # fmt: skip
def test_a_result_that_is_written(call: Callable[[tt.Tensor], tt.Tensor]) -> None:
    x = tracked([[0.7, -0.3, 0.1], [0.4, 0.9, -0.8]])
    y = call(x)
    weights = tt.cos(tt.arange(y.numel(), dtype=tt.float64)).reshape(y.shape)
    (plain,) = grad(y, x, weights, retain_graph=True)
    y *= 3
    tt.testing.assert_close(grad(y, x, weights)[0], 3 * plain)


@ON
def test_the_states_of_a_recurrent_layer_are_written(on: str) -> None:
    layer = tt.nn.LSTM(3, 2, dtype=tt.float64, device=on)
    x = tracked([[[1.0, 2.0, -1.0]], [[0.5, -0.5, 0.0]]], on)
    plain = grad(layer(x)[0].sum(), x)[0]
    y, _ = layer(x)
    y *= 2
    tt.testing.assert_close(grad(y.sum(), x)[0], 2 * plain)


SIGNS = tt.tensor([1.0, -1.0, 1.0], dtype=tt.float64)
THREE = tt.tensor([0, 2, 1])
ONES_AND = tt.tensor([[0.2, 0.7, 0.4], [0.9, 0.3, 0.6], [0.5, 0.1, 0.8]], dtype=tt.float64)
LOSSES: dict[str, Callable[[tt.Tensor], tt.Tensor]] = {
    "cross_entropy": lambda x: F.cross_entropy(x, THREE), "of shares": lambda x: F.cross_entropy(x, ONES_AND),
    "nll_loss": lambda x: F.nll_loss(x, THREE), "binary_cross_entropy": lambda x: F.binary_cross_entropy(x, ONES_AND),
    "with logits": lambda x: F.binary_cross_entropy_with_logits(x, ONES_AND, pos_weight=ONES_AND[0]),
    "mse_loss": lambda x: F.mse_loss(x, ONES_AND), "l1_loss": lambda x: F.l1_loss(x, ONES_AND), "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, ONES_AND),
    "huber_loss": lambda x: F.huber_loss(x, ONES_AND), "kl_div": lambda x: F.kl_div(x, ONES_AND, reduction="batchmean"),
    "ctc_loss": lambda x: F.ctc_loss(x.unsqueeze(1), tt.tensor([[1, 2]]), tt.tensor([3]), tt.tensor([2])),
    "poisson_nll_loss": lambda x: F.poisson_nll_loss(x, ONES_AND), "gaussian_nll_loss": lambda x: F.gaussian_nll_loss(x, ONES_AND, ONES_AND + 1),
    "hinge_embedding_loss": lambda x: F.hinge_embedding_loss(x, SIGNS), "soft_margin_loss": lambda x: F.soft_margin_loss(x, SIGNS),
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x, ONES_AND, SIGNS),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x, ONES_AND, 1 - ONES_AND),
    "with a distance": lambda x: F.triplet_margin_with_distance_loss(x, ONES_AND, 1 - ONES_AND),
    "margin_ranking_loss": lambda x: F.margin_ranking_loss(x, ONES_AND, SIGNS.expand(3, 3)), "multi_margin_loss": lambda x: F.multi_margin_loss(x, THREE),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x, tt.tensor([[1, 0, -1]] * 3)),
    "multilabel_soft_margin_loss": lambda x: F.multilabel_soft_margin_loss(x, ONES_AND),
    "linear_cross_entropy": lambda x: F.linear_cross_entropy(x, ONES_AND, THREE), "mean": lambda x: x.mean(), "sum": lambda x: x.sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_a_mean_of_losses_may_be_written(name: str) -> None:
    """As programs do that scale a loss for a part of a batch, and add what they penalise."""
    loss_of = LOSSES[name]
    x = tracked([[0.7, 0.3, 0.1], [0.4, 0.9, 0.8], [0.2, 0.6, 0.5]])
    (plain,) = grad(loss_of(x), x)
    loss = loss_of(x)
    loss.mul_(6)
    loss /= 3
    loss += (x * 2).sum()
    tt.testing.assert_close(grad(loss, x)[0], 2 * plain + 2)


def test_what_pytorch_keeps_as_well_is_still_refused() -> None:
    x, t = tracked([1.0, 2.0]), tt.zeros(2, dtype=tt.float64)
    for loss in (F.mse_loss(x, t), (x * t).sum(), F.huber_loss(x, t)):
        t.add_(1)
        with pytest.raises(RuntimeError, match="overwr"):
            loss.backward()


@ON
def test_a_step_of_an_optimizer_before_backward(on: str) -> None:
    bias = tracked([1.0, 2.0, 3.0], on)
    x = tracked([[1.0, 2.0, 4.0], [3.0, 5.0, 1.0]], on)
    y = F.batch_norm(x, None, None, None, bias, training=True)
    (plain,) = grad((y * y).sum(), bias, retain_graph=True)
    bias.grad = tt.ones_like(bias)
    tt.optim.SGD([bias], lr=1.0).step()
    tt.testing.assert_close(grad((y * y.detach() * 2).sum(), bias)[0], plain)


def test_a_view_of_an_index_that_a_node_keeps_is_refused() -> None:
    for call in (lambda x: tt.median(x, 0), lambda x: tt.kthvalue(x, 1, 0), lambda x: tt.mode(x, 0)):
        values, index = call(tracked(X))
        index.zero_()
        with pytest.raises(RuntimeError, match="overwr"):
            values.sum().backward()
    y, index = F.max_pool1d(tracked([[X[0]]]), 2, return_indices=True)
    index.zero_()
    with pytest.raises(RuntimeError, match="overwr"):
        y.sum().backward()


def test_a_saved_tensor_is_cut_off_its_graph() -> None:
    w = tracked([1.0, -2.0])
    x = w * 2
    loss = F.l1_loss(x, tt.zeros(2, dtype=tt.float64), reduction="sum")
    x.detach_()
    loss.backward()
    assert w.grad.tolist() == [2.0, -2.0]


def test_nothing_is_kept_alive_and_nothing_piles_up() -> None:
    t = tt.zeros(3, dtype=tt.float64)
    for _ in range(100):
        loss = F.l1_loss(tracked([1.0, 2.0, 3.0]), t)
    assert len(t._version_counter.borrowers) <= 16
    node = weakref.ref(loss._node)
    del loss
    gc.collect()
    assert node() is None
    t.add_(1)
    assert t._version_counter.borrowers is None


def test_a_copy_is_taken_once_for_all_nodes_and_not_after_backward() -> None:
    x, t = tracked([1.0, 2.0]), tt.zeros(2, dtype=tt.float64)
    one, other = F.l1_loss(x, t), F.l1_loss(x, t, reduction="sum")
    t.add_(1)
    assert one._node.inputs[1]._array is other._node.inputs[1]._array
    assert one._node.inputs[1]._array is not t._array
    one.backward()
    held = one._node.inputs
    t.add_(1)
    assert one._node.inputs is held


def test_inside_a_transform_and_under_a_mode() -> None:
    def loss(x: tt.Tensor) -> tt.Tensor:
        y = F.cross_entropy(x, tt.tensor([1, 2]))
        y /= 4
        return y

    x = tt.tensor(X, dtype=tt.float64)
    tt.testing.assert_close(tt.func.grad(loss)(x), softmax_less_one("cpu") / 8)
    with tt.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = loss(x.requires_grad_())
    y.backward()
    tt.testing.assert_close(x.grad, softmax_less_one("cpu") / 8)


@ON
def test_a_whole_result_that_a_rule_names_has_no_place_in_the_graph(on: str) -> None:
    x = tracked([[1.5, 2.5]], on)
    mantissa, _ = tt.frexp(x)  # x 2^-exponent
    (first,) = grad(mantissa, x, tt.ones_like(mantissa), create_graph=True)
    assert first.tolist() == [[0.5, 0.25]]
    assert grad(first.sum() + (x * x).sum(), x)[0].tolist() == [[3.0, 5.0]]
