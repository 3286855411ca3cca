"""Optimizer steps: PyTorch's formulas written out, over several steps, both devices, strided and 16-bit parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.errors import ArgumentError
from tritensor.kernels.optimizers import steps
from tritensor.table import ops

RNG = np.random.default_rng(0)


def sgd(p: np.ndarray, g: np.ndarray, buf: np.ndarray | None, first: bool, **s: Any) -> tuple[np.ndarray, np.ndarray | None]:
    g = -g if s.get("maximize") else g
    g = g + s.get("weight_decay", 0) * p
    if s.get("momentum"):
        buf = g.copy() if first else s["momentum"] * buf + (1 - s.get("dampening", 0)) * g
        g = g + s["momentum"] * buf if s.get("nesterov") else buf
    return p - s["lr"] * g, buf


def adam(p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, vmax: np.ndarray, t: int, **s: Any) -> tuple[np.ndarray, ...]:
    g = -g if s.get("maximize") else g
    if s.get("decoupled"):
        p = p * (1 - s["lr"] * s["weight_decay"])
    else:
        g = g + s.get("weight_decay", 0) * p
    m = s["beta1"] * m + (1 - s["beta1"]) * g
    v = s["beta2"] * v + (1 - s["beta2"]) * g * g
    vmax = np.maximum(vmax, v)
    root = np.sqrt(vmax if s.get("amsgrad") else v) / np.sqrt(1 - s["beta2"] ** t) + s["eps"]
    return p - s["lr"] / (1 - s["beta1"] ** t) * m / root, m, v, vmax


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "settings",
    [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ],
)
def test_sgd(settings: dict[str, Any], on: str) -> None:
    p = RNG.standard_normal((5, 7))
    buf = np.zeros_like(p)
    x = tt.tensor(p, device=on).t().contiguous().t()  # strided
    b = tt.zeros_like(x) if settings.get("momentum") else None
    for step in range(4):
        g = RNG.standard_normal(p.shape)
        p, buf = sgd(p, g, buf, step == 0, **settings)
        ops.sgd_step(x, tt.tensor(g, device=on), b, first=step == 0, **settings)
        np.testing.assert_allclose(x.cpu().numpy(), p, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "settings", [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled": True}, {"amsgrad": True, "maximize": True}]
)
def test_adam(settings: dict[str, Any], on: str) -> None:
    settings = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, **settings}
    p = RNG.standard_normal((5, 7))
    state = (np.zeros_like(p),) * 3
    x = tt.tensor(p, device=on)
    m, v, vmax = (tt.zeros_like(x) for _ in range(3))
    for step in range(1, 5):
        g = RNG.standard_normal(p.shape)
        p, *state = adam(p, g, *state, step, **settings)
        ops.adam_step(x, tt.tensor(g, device=on), m, v, vmax if settings.get("amsgrad") else None, step=step, **settings)
        np.testing.assert_allclose(x.cpu().numpy(), p, rtol=1e-11, atol=1e-12)


def test_blocks_join_without_a_seam() -> None:
    n = 2 * steps.PART + 5
    p, g = RNG.standard_normal(n).astype(np.float32), RNG.standard_normal(n).astype(np.float32)
    x = tt.tensor(p)
    m, v = tt.zeros_like(x), tt.zeros_like(x)
    settings: dict[str, Any] = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.1}
    ops.adam_step(x, tt.tensor(g), m, v, step=1, **settings)
    want = adam(p, g, np.zeros(n), np.zeros(n), np.zeros(n), 1, **settings)[0]
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-5, atol=1e-6)


def test_refused() -> None:
    x = tt.zeros(3)
    with pytest.raises(ValueError, match=r"sgd_step: gradient \(2,\) for a parameter of shape \(3,\)"):
        ops.sgd_step(x, tt.zeros(2), lr=0.1)
    with pytest.raises(TypeError, match="gradient float64; cast one so that both are the same"):
        ops.sgd_step(x, tt.zeros(3, dtype=tt.float64), lr=0.1)
    with pytest.raises(ValueError, match="the first step is number 1"):
        ops.adam_step(x, x, x, x, lr=0.1, beta1=0.9, beta2=0.9, eps=1e-8, step=0)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_parameter_in_the_graph_is_not_overwritten(on):
    p = tt.ones(3, device=on, requires_grad=True)
    with pytest.raises(tt.GradError, match=r"sgd_step: p requires grad and would be overwritten; call it under no_grad\(\)"):
        ops.sgd_step(p, tt.ones(3, device=on), lr=0.5)
    assert (p.tolist(), p._version) == ([1.0] * 3, 0)
    with tt.no_grad():
        ops.sgd_step(p, tt.ones(3, device=on), lr=0.5)
    assert (p.tolist(), p._version) == ([0.5] * 3, 1)


def test_what_a_step_lacks_is_refused() -> None:
    p, g = tt.ones(3), tt.ones(3)
    usual = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
    with pytest.raises(ArgumentError, match="adam_step: amsgrad needs vmax"):
        ops.adam_step(p, g, tt.zeros(3), tt.zeros(3), amsgrad=True, step=1, **usual)
    with pytest.raises(tt.ShapeError, match=r"sgd_step: rate is float32 of shape \(2,\); a learning rate is one floating number"):
        ops.sgd_step(p, g, None, tt.ones(2))
    with pytest.raises(tt.ShapeError, match="sgd_step: rate is int64 of shape"):
        ops.sgd_step(p, g, None, tt.ones(1, dtype=tt.int64))
    assert p.tolist() == [1.0] * 3


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("rated", [False, True])
def test_the_numbers_of_a_counted_step(on: str, rated: bool) -> None:
    """lr / (1 - beta1^t), sqrt(1 - beta2^t) and 1 - lr decay of the step that is to come, which is then counted."""
    counts, scalars = tt.tensor([0.0, 4.0], dtype=tt.float64, device=on), tt.zeros(2, 3, dtype=tt.float64, device=on)
    rate = tt.tensor(0.1, dtype=tt.float64, device=on) if rated else None
    ops.adam_count(counts, scalars, rate, lr=0.0 if rated else 0.1, beta1=0.9, beta2=0.99, decay=0.5)
    want = [[0.1 / (1 - 0.9**t), (1 - 0.99**t) ** 0.5, 1 - 0.1 * 0.5] for t in (1, 5)]
    np.testing.assert_allclose(scalars.numpy(force=True), want, rtol=1e-12)
    assert counts.tolist() == [1.0, 5.0]
