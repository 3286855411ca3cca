"""Patterns of losses and of softmax: what programs write op by op becomes the library's own ops, with the same values, and near misses stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph
from tests.fusion.test_patterns import ON, leaf, names
from tritensor.nn import functional as F
from tritensor.ops import replay

rng = np.random.default_rng(6)


def with_gradient(loss: Any, x: Any) -> Any:
    return loss.detach(), tt.autograd.grad((loss * loss).sum(), [x])


# -- losses
LOSSES: dict[str, Callable[..., Any]] = {
    "nll": lambda x, y, w: F.nll_loss(F.log_softmax(x, -1), y),
    "nll, weights": lambda x, y, w: F.nll_loss(tt.log_softmax(x, 1), y, w),
    "nll, one ignored": lambda x, y, w: F.nll_loss(tt.log_softmax(x, 1), y, ignore_index=2, reduction="sum"),
    "nll of each": lambda x, y, w: F.nll_loss(tt.log_softmax(x, 1), y, reduction="none"),
    "mean": lambda x, y, w: -tt.log_softmax(x, -1).gather(1, y[:, None]).mean(),
    "sum": lambda x, y, w: -tt.log_softmax(x, -1).gather(-1, y.unsqueeze(1)).sum(),
    "each": lambda x, y, w: -tt.log_softmax(x, -1).gather(-1, y.unsqueeze(1)).squeeze(1),
    "logsumexp": lambda x, y, w: (tt.logsumexp(x, -1) - x.gather(1, y[:, None]).squeeze(1)).mean(),
    "logsumexp, kept dims": lambda x, y, w: (tt.logsumexp(x, 1, keepdim=True) - x.gather(1, y[:, None])).sum(),
    "logsumexp, indexed": lambda x, y, w: (tt.logsumexp(x, -1) - x.gather(1, y[:, None])[:, 0]).mean(),
}


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("loss", LOSSES)
def test_cross_entropy(loss: str, on: str) -> None:
    x, y, w = leaf(9, 5, on=on), tt.tensor(np.arange(9) % 5, device=on), tt.tensor(rng.random(5).astype(np.float32), device=on)
    g = Graph(lambda: LOSSES[loss](x, y, w)).check()
    assert names(g) == ["cross_entropy"]
    assert not {"log_softmax", "gather", "nll_loss"} & set(g.alone)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(
    "loss", [name for name in LOSSES if name != "each"]
)  # the gradient of its squeeze ends a graph, as it asks how values lie
def test_gradients_of_cross_entropy(loss: str, on: str) -> None:
    x, y, w = leaf(9, 5, on=on, grad=True), tt.tensor(np.arange(9) % 5, device=on), tt.tensor(rng.random(5).astype(np.float32), device=on)
    g = Graph(lambda: with_gradient(LOSSES[loss](x * 1, y, w), x)).check()  # of a product its layout is known
    assert names(g) == ["cross_entropy"]
    assert "cross_entropy backward" in g.alone
    assert not {"log_softmax backward", "gather backward", "nll_loss backward"} & set(g.alone)


@pytest.mark.parametrize("on", ON)
def test_cross_entropy_of_more_dims(on: str) -> None:
    x, y = leaf(2, 3, 5, on=on), tt.tensor(np.arange(6).reshape(2, 3) % 5, device=on)
    for loss in (
        lambda: F.nll_loss(tt.log_softmax(x, -1).view(-1, 5), y.view(-1)),
        lambda: F.nll_loss(tt.log_softmax(x.transpose(1, 2), 1), y),
        lambda: -tt.log_softmax(x, -1).gather(-1, y[..., None]).mean(),
        lambda: (tt.logsumexp(x, -1) - x.gather(2, y[..., None]).squeeze(-1)).sum(),
    ):
        assert names(Graph(loss).check()) == ["cross_entropy"]


def test_the_largest_taken_off_by_hand() -> None:
    x, y = leaf(6, 5), tt.tensor(np.arange(6) % 5)

    def loss() -> Any:
        z = x * 1
        z = z - z.max(1, keepdim=True).values
        return (z.exp().sum(1).log() - z.gather(1, y[:, None]).squeeze(1)).mean()

    assert names(Graph(loss).check()) == ["cross_entropy"]
    x.requires_grad_()
    g = Graph(lambda: with_gradient(loss(), x)).check()
    assert names(g) == []
    assert "max_dim backward" in g.alone


NEAR_LOSSES: dict[str, Callable[..., Any]] = {
    "another axis": lambda x, y: F.nll_loss(tt.log_softmax(x, 0), y),
    "held": lambda x, y: (p := tt.log_softmax(x, 1), F.nll_loss(p, y)),
    "other labels of columns": lambda x, y: -tt.log_softmax(x, 1).gather(0, y[None]).mean(),
    "some rows": lambda x, y: -tt.log_softmax(x, 1).gather(1, y[:4, None]).mean(),
    "several a row": lambda x, y: -tt.log_softmax(x, 1).gather(1, y[:, None].repeat(1, 2)).mean(),
    "picked of another": lambda x, y: (tt.logsumexp(x, -1) - (x * 2).gather(1, y[:, None]).squeeze(1)).mean(),
    "added": lambda x, y: (tt.logsumexp(x, -1) + x.gather(1, y[:, None]).squeeze(1)).mean(),
    "all against all": lambda x, y: (tt.logsumexp(x, -1) - x.gather(1, y[:, None])).mean(),
    "softmax": lambda x, y: F.nll_loss(tt.softmax(x, 1), y),
}


@pytest.mark.parametrize("near", NEAR_LOSSES)
def test_near_misses_of_cross_entropy_stay(near: str) -> None:
    x, y = leaf(5, 5), tt.tensor(np.arange(5))
    assert names(Graph(lambda: NEAR_LOSSES[near](x, y)).check()) == []


@pytest.mark.parametrize("label", [-1, 5])
def test_a_label_that_is_no_class_is_the_error_of_the_call(label: int) -> None:
    x, y = leaf(6, 5), tt.tensor(np.array([0, 1, label, 2, 3, 4]))
    with pytest.raises(IndexError) as eager:
        -tt.log_softmax(x, -1).gather(1, y[:, None]).mean()
    with tt.lazy():
        loss = -tt.log_softmax(x, -1).gather(1, y[:, None]).mean()
        with pytest.raises(IndexError) as lazily:
            loss.item()
    assert str(lazily.value) == str(eager.value)


@pytest.mark.parametrize("on", ON)
def test_linear_and_cross_entropy(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.kernels.losses import linear_cross_entropy as fused

    x, w, b, y = leaf(300, 4, on=on), leaf(7, 4, on=on), leaf(7, on=on), tt.tensor(np.arange(300) % 7, device=on)
    programs: list[Callable[[], Any]] = [
        lambda: F.cross_entropy(F.linear(x, w), y),
        lambda: F.cross_entropy(F.linear(x, w, b), y, label_smoothing=0.1, ignore_index=3),
        lambda: F.cross_entropy(x @ w.T, y, reduction="none"),
        lambda: F.cross_entropy(F.linear(x.view(3, 100, 4), w).view(-1, 7), y),
        lambda: F.nll_loss(F.log_softmax(x @ w.T + 0, -1), y),
    ]
    for program in programs:  # their logits are few
        assert "linear_cross_entropy" not in names(Graph(program).check())
    monkeypatch.setattr(fused, "BUDGET", 1)
    replay.forget()
    for program in programs[:-1]:
        assert names(Graph(program).check()) == ["linear_cross_entropy"]
    assert names(Graph(programs[-1]).check()) == ["cross_entropy"]
    g = Graph(lambda: F.nll_loss(F.log_softmax(x @ w.T, -1), y)).check()
    assert names(g) == ["cross_entropy", "linear_cross_entropy"]
    assert names(Graph(lambda: (z := F.linear(x, w), F.cross_entropy(z, y))).check()) == []
    half = Graph(lambda: F.cross_entropy(F.linear(x.half(), w.half()), y)).check(1e-3)
    assert names(half) == ["linear_cross_entropy"]
    x.requires_grad_()
    g = Graph(lambda: with_gradient(F.cross_entropy(F.linear(x * 1, w), y), x)).check()
    assert names(g) == []
    assert "cross_entropy backward" in g.alone


# -- softmax
def by_hand(x: Any, top: Callable[[Any], Any]) -> Any:
    e = tt.exp(x - top(x))
    return e / e.sum(-1, keepdim=True)


TOPS: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(-1, keepdim=True), "max": lambda x: x.max(-1, keepdim=True)[0], "named": lambda x: tt.max(x, dim=1, keepdim=True).values,
}  # fmt: skip


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("top", TOPS)
def test_softmax_with_its_gradient(top: str, on: str) -> None:
    x, g = leaf(6, 5, on=on, grad=True), leaf(6, 5, on=on)
    for given in (x, leaf(5, 6, on=on).T.requires_grad_()):

        def program(given: Any = given) -> Any:
            y = by_hand(given, TOPS[top])
            return y.detach(), tt.autograd.grad(y, [given], [g])

        found = Graph(program).check()
        if given is x:
            assert names(found) == ["softmax"]
            assert found.alone == ["softmax", "softmax backward"]
        with tt.lazy():
            lazily = program()
            said = [t.stride() for t in (lazily[0], *lazily[1])]
        assert said == [t.stride() for t in (lazily[0], *lazily[1])]
    assert names(Graph(lambda: by_hand(x.detach(), TOPS[top])).check()) == []


NEAR_SOFTMAXES: dict[str, Callable[[Any], Any]] = {
    "detached": lambda x: by_hand(x, lambda x: x.detach().amax(-1, keepdim=True)),  # one launch as it is
    "nothing taken off": lambda x: (e := tt.exp(x)) / e.sum(-1, keepdim=True),
    "another axis": lambda x: (e := tt.exp(x - x.amax(0, keepdim=True))) / e.sum(0, keepdim=True),
    "the largest of all": lambda x: by_hand(x, lambda x: x.amax((0, 1), keepdim=True)),
    "the smallest": lambda x: by_hand(x, lambda x: x.amin(-1, keepdim=True)),
    "the sum of others": lambda x: (e := tt.exp(x - x.amax(-1, keepdim=True))) / (e * e).sum(-1, keepdim=True),
    "read again": lambda x: (e := tt.exp(x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True) + e,
}


@pytest.mark.parametrize("near", NEAR_SOFTMAXES)
def test_near_misses_of_softmax_stay(near: str) -> None:
    x = leaf(6, 6, grad=True)

    def program() -> Any:
        y = NEAR_SOFTMAXES[near](x)
        return y.detach(), tt.autograd.grad((y * y).sum(), [x])

    g = Graph(program).check()
    assert names(g) == []
    assert any(["exp backward" in group for group in g.groups])
