"""Reductions and losses over nothing: a mean of no rows, a variance of fewer elements than its correction."""

from __future__ import annotations

import math

import pytest

import tritensor as tt
import tritensor.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_cross_entropy_of_rows_that_are_all_ignored(where: str, smoothing: float, weighted: bool, again: bool) -> None:
    x = tt.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]], device=where, requires_grad=True)
    target = tt.tensor([-100, -100], device=where)
    weight = tt.tensor([1.0, 2.0, 3.0], device=where) if weighted else None
    loss = F.cross_entropy(x, target, weight, label_smoothing=smoothing)
    assert math.isnan(loss.item())
    (g,) = tt.autograd.grad(loss, x, create_graph=again)
    assert g.tolist() == [[0.0] * 3] * 2
    if again:
        (h,) = tt.autograd.grad(g.sum(), x)
        assert h.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
def test_the_slope_of_a_variance_with_a_correction_beyond_the_count(where: str, again: bool) -> None:
    x = tt.tensor([2.0, 2.0, 1.0, 2.0], device=where, requires_grad=True)
    y = tt.var(x, 0, correction=5)
    assert y.item() == math.inf
    (g,) = tt.autograd.grad(y, x, create_graph=again)
    assert g.tolist() == [-0.5, -0.5, 1.5, -0.5]
