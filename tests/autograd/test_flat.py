"""Piecewise linear functions: their second derivatives are 0, as in PyTorch, where those of linear ones are refused."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor.ground.errors import GradError

FLAT = [
    F.relu, F.leaky_relu, F.hardtanh, F.softshrink, F.hardshrink, F.hardsigmoid, lambda x: F.threshold(x, 0.1, 0.2), lambda x: F.prelu(x, tt.ones(1)),
    lambda x: F.max_pool1d(x, 2), lambda x: F.avg_pool1d(x, 2), lambda x: F.adaptive_max_pool1d(x, 2), lambda x: F.pad(x, (1, 1), mode="reflect"),
]  # fmt: skip


@pytest.mark.parametrize("function", FLAT)
def test_second_derivatives_of_flat_functions_are_zero(function: Any) -> None:
    w, x = tt.tensor(2.0, requires_grad=True), tt.tensor([[[0.5, -1.5, 2.5, 0.25]]], requires_grad=True)
    (g,) = tt.autograd.grad((function(x) * w).sum(), x, create_graph=True)
    second, by_w = tt.autograd.grad(g.sum(), (x, w))
    assert second.tolist() == [[[0.0, 0.0, 0.0, 0.0]]]
    assert by_w.item() == g.sum().item() / 2


def test_second_derivatives_by_what_takes_no_part_are_refused() -> None:
    w, x = tt.tensor(2.0, requires_grad=True), tt.ones(3, requires_grad=True)
    (g,) = tt.autograd.grad((x * w).sum(), x, create_graph=True)
    with pytest.raises(GradError, match="takes no part in the outputs"):
        tt.autograd.grad(g.sum(), x)
    assert tt.autograd.grad((x * w).sum(), (tt.ones(1, requires_grad=True), w), allow_unused=True)[0] is None


def test_gradients_of_flat_functions_are_let_go() -> None:
    x, w = tt.ones(3, requires_grad=True), tt.ones(3, requires_grad=True)
    (x.relu() * w).sum().backward(create_graph=True)
    seen = weakref.ref(x)
    del x, w
    gc.collect()
    assert seen() is None
