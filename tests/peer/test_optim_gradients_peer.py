"""Beside torch: steps that are differentiated, complex parameters, averaged models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

DIFFERENTIABLE: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}), ("SGD", {"lr": 0.1, "maximize": True}), ("Adam", {"amsgrad": True}),
    ("AdamW", {}), ("NAdam", {"weight_decay": 0.1}), ("RAdam", {"lr": 0.1}), ("Adamax", {}), ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}), ("Rprop", {}), ("ASGD", {"lambd": 0.1}),
]  # fmt: skip


def through(library: Any, name: str, settings: dict[str, Any]) -> list[np.ndarray]:
    """A step from a parameter along a gradient that both depend on `start`: the value, and its gradient. (Of several steps torch's own cannot
    always be differentiated: it writes over what it needs.)"""
    start = library.tensor([[1.0, -2.0, 0.5], [0.3, 0.7, -0.4]], dtype=library.float64, requires_grad=True)
    p = start.clone()
    optimizer = getattr(library.optim, name)([p], **settings, differentiable=True)
    p.grad = (start * start + start.sin()).clone()
    optimizer.step()
    p.square().sum().backward()
    return [p.detach().numpy(), start.grad.numpy()]


@pytest.mark.parametrize(("name", "settings"), DIFFERENTIABLE, ids=[f"{n}-{k}" for k, (n, _) in enumerate(DIFFERENTIABLE)])
def test_steps_that_are_differentiated(name: str, settings: dict[str, Any]) -> None:
    rough = name.startswith("Adam") and name != "Adamax"  # torch then corrects their bias in float32
    for x, y in zip(through(tt, name, settings), through(torch, name, settings), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6 if rough else 1e-9, atol=1e-8 if rough else 1e-12)


def test_a_rate_that_is_learnt() -> None:
    """Second-order: the loss after a step, differentiated with respect to the step's rate."""

    def run(library: Any) -> list[Any]:
        lr = library.tensor(0.1, dtype=library.float64, requires_grad=True)
        w = library.tensor([1.0, -2.0], dtype=library.float64, requires_grad=True)
        p = w.clone()
        optimizer = library.optim.SGD([p], lr=lr, differentiable=True)
        (p.grad,) = library.autograd.grad((w**3).sum(), w, create_graph=True)
        optimizer.step()
        p.square().sum().backward()
        return [lr.grad.item(), w.grad.tolist()]

    (a, b), (c, d) = run(tt), run(torch)
    assert a == pytest.approx(c, rel=1e-12)
    assert b == pytest.approx(d, rel=1e-12)


COMPLEX: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}), ("NAdam", {}), ("RAdam", {"lr": 0.1}),
    ("Adamax", {}), ("Adagrad", {"initial_accumulator_value": 0.5}), ("Adadelta", {"maximize": True}), ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Rprop", {}), ("ASGD", {}), ("LBFGS", {"line_search_fn": "strong_wolfe"}),
]  # fmt: skip


def complex_run(library: Any, name: str, settings: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    p = library.nn.Parameter(library.tensor([[1.0 + 2.0j, -2.0], [0.3j, 0.7 - 1.0j]], dtype=library.complex128))
    optimizer = getattr(library.optim, name)([p], **settings)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((p - (1 + 1j)).abs() ** 2).sum() + (p.abs() ** 4).sum() * 0.1
        loss.backward()
        return loss

    for _ in range(8):
        optimizer.step(closure)
    return p.detach().numpy(), {
        k: str(v.dtype).split(".")[-1] for k, v in optimizer.state_dict()["state"][0].items() if hasattr(v, "dtype")
    }


@pytest.mark.parametrize(("name", "settings"), COMPLEX, ids=[n for n, _ in COMPLEX])
def test_complex_parameters(name: str, settings: dict[str, Any]) -> None:
    (ours, state), (theirs, other) = complex_run(tt, name, settings), complex_run(torch, name, settings)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    assert state == other


@pytest.mark.parametrize("kind", ["swa", "ema", "ema, multi"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_models(kind: str, use_buffers: bool) -> None:
    def run(library: Any) -> list[np.ndarray]:
        swa = library.optim.swa_utils
        net = library.nn.Linear(3, 2).double()
        net.register_buffer("seen", library.zeros(2, dtype=library.float64))
        function = {"swa": {}, "ema": {"avg_fn": swa.get_ema_avg_fn(0.9)}, "ema, multi": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)}}[
            kind
        ]
        averaged = swa.AveragedModel(net, use_buffers=use_buffers, **function)
        rng = np.random.default_rng(0)
        for t in range(6):
            with library.no_grad():
                net.weight.copy_(library.tensor(rng.standard_normal((2, 3))))
                net.bias.fill_(float(t))
                net.seen.fill_(float(t * t))
            averaged.update_parameters(net)
        return [
            averaged.module.weight.detach().numpy(),
            averaged.module.bias.detach().numpy(),
            averaged.module.seen.numpy(),
            averaged.n_averaged.numpy(),
        ]

    for x, y in zip(run(tt), run(torch), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
