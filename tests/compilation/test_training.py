"""Training with compiled models: the numbers of eager training, and how far the region reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.compilation.models import MODELS, OPTIMIZERS, state_of, train
from tritensor import nn
from tritensor.fusion.program import dataflow
from tritensor.utils.checkpoint import checkpoint


def both(name: str, optimizer: str, clip: bool) -> tuple[Any, Any, Any, Any]:
    """Losses and states of eager and of compiled training."""
    make, shape = MODELS[name]
    found = []
    for compiled in (False, True):
        tt.manual_seed(0)
        model = make()
        losses = train(model, tt.compile(model) if compiled else model, shape, optimizer, clip=clip)
        found += [losses, state_of(model)]
    return tuple(found)  # type: ignore[return-value]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_calls_one_by_one_give_the_bits_of_eager_training(name: str, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tt.compiler.reset()
    monkeypatch.setattr(dataflow, "template_of", lambda *_: "nothing is fused in this test")
    try:
        losses, state, compiled_losses, compiled_state = both(name, optimizer, clip=False)
    finally:
        tt.compiler.reset()
    assert losses == compiled_losses
    assert {k: v.tobytes() for k, v in state.items()} == {k: v.tobytes() for k, v in compiled_state.items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_fused_training_gives_the_losses_of_eager_training(name: str, optimizer: str) -> None:
    # not the state: where a gradient is nothing but rounding (the bias before a batch norm), Adam makes it a step of full length
    losses, _, compiled_losses, _ = both(name, optimizer, clip=True)
    np.testing.assert_allclose(compiled_losses, losses, rtol=2e-5)


def test_a_whole_step_in_one_function() -> None:
    model = nn.Linear(2, 1)
    opt = tt.optim.Adam(model.parameters(), lr=0.1)

    @tt.compile
    def step(x: tt.Tensor) -> float:
        opt.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    losses = [step(tt.ones(4, 2)) for _ in range(20)]
    assert losses[-1] < losses[0]
    assert np.isfinite(losses).all()


def test_gradients_accumulate() -> None:  # pytorch issue 169545
    model = nn.Linear(2, 2)
    compiled = tt.compile(model)
    for i in range(3):
        compiled(tt.full((1, 2), i + 1.0)).sum().backward()
    assert model.weight.grad is not None
    assert model.weight.grad.tolist() == [[6, 6], [6, 6]]


def test_gradients_of_gradients() -> None:
    w = tt.tensor([1.0, 2.0], requires_grad=True)
    compiled = tt.compile(lambda w: (w**3).sum())
    for _ in range(3):
        (first,) = tt.autograd.grad(compiled(w), w, create_graph=True)
        (second,) = tt.autograd.grad(first.sum(), w, create_graph=True)
        (third,) = tt.autograd.grad(second.sum(), w)
        assert (first.tolist(), second.tolist(), third.tolist()) == ([3, 12], [6, 12], [6, 6])


def test_autocast() -> None:
    model = nn.Linear(3, 3)
    x = tt.randn(2, 3)
    with tt.autocast("cpu", dtype=tt.bfloat16):
        want, got = model(x), tt.compile(model)(x)
    assert got.dtype is tt.bfloat16
    assert want.tolist() == got.tolist()

    @tt.compile
    def inside(x: tt.Tensor) -> tt.Tensor:
        with tt.autocast("cpu", dtype=tt.bfloat16):
            return model(x)

    assert inside(x).tolist() == want.tolist()
    assert tt.compile(model)(x).dtype is tt.float32


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(reentrant: bool) -> None:
    def part(x: tt.Tensor) -> tt.Tensor:
        return (x.tanh() * 2).sin()

    found = []
    for f in (lambda x: checkpoint(part, x, use_reentrant=reentrant).sum(), tt.compile(lambda x: checkpoint(part, x, use_reentrant=reentrant).sum()),
              lambda x: checkpoint(tt.compile(part), x, use_reentrant=reentrant).sum()):  # fmt: skip
        x = tt.tensor([0.1, 0.2], requires_grad=True)
        f(x).backward()
        assert x.grad is not None
        found.append(x.grad.numpy())
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6)


def test_dropout_draws_what_eager_draws() -> None:
    drop = nn.Dropout(0.5)
    compiled = tt.compile(drop)
    found = []
    for call in (drop, compiled):
        tt.manual_seed(3)
        found.append([call(tt.ones(8)).tolist() for _ in range(4)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_two_networks_that_train_each_other() -> None:
    results = []
    for compiled in (False, True):
        tt.manual_seed(0)
        make, judge = nn.Linear(2, 3), nn.Linear(3, 1)
        opts = [tt.optim.SGD(m.parameters(), lr=0.1) for m in (make, judge)]
        g, d = (tt.compile(make), tt.compile(judge)) if compiled else (make, judge)
        for _ in range(3):
            fake = g(tt.randn(4, 2))
            opts[1].zero_grad()
            (d(fake.detach()).mean() - d(tt.randn(4, 3)).mean()).backward()
            opts[1].step()
            opts[0].zero_grad()
            (-d(fake).mean()).backward()
            opts[0].step()
        results.append([p.detach().numpy().copy() for m in (make, judge) for p in m.parameters()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)


def test_dropout_goes_backward_by_the_mask_of_its_own_forward() -> None:
    w = tt.ones(8, requires_grad=True)
    compiled = tt.compile(lambda w: nn.functional.dropout(w * 1.0, 0.5))
    masks = []
    for _ in range(5):
        w.grad = None
        y = compiled(w)
        y.sum().backward()
        assert w.grad is not None
        assert y.tolist() == w.grad.tolist()
        masks.append(y.tolist())
    assert len({tuple(m) for m in masks}) > 1
