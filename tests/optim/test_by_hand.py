"""Steps of optimizers worked out by hand, where a setting decides the numbers: in every tier."""

from __future__ import annotations

import math

import pytest

import tritensor as tt

pytestmark = pytest.mark.quick


def _weight_after(optimizer: type[tt.optim.Optimizer], steps: int, **settings: float) -> float:
    """0 after steps along a gradient of 1."""
    w = tt.zeros(1, requires_grad=True)
    stepping = optimizer([w], **settings)  # type: ignore[arg-type]
    for _ in range(steps):
        w.grad = tt.ones(1)
        stepping.step()
    return w.item()


def test_adagrads_rate_decays() -> None:
    assert _weight_after(tt.optim.Adagrad, 2, lr=1.0, lr_decay=1.0) == pytest.approx(-1 - 0.5 / math.sqrt(2), rel=1e-6)


def test_adadeltas_first_step_is_that_of_its_eps() -> None:
    assert _weight_after(tt.optim.Adadelta, 1, lr=1.0, rho=0.9, eps=0.1) == pytest.approx(-math.sqrt(0.1) / math.sqrt(0.1 + 0.1), rel=1e-6)
