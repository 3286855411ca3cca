"""Gradients without elements in the norm of many: they add nothing, whatever the norm, the order and the device."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import EmptyError


def parameters(on: str, dtypes: tuple[Any, ...], first: bool) -> list[Any]:
    """Gradients (3, -4) and one of no elements."""
    a, b = tt.zeros(2, dtype=dtypes[0], device=on, requires_grad=True), tt.zeros(0, 4, dtype=dtypes[1], device=on, requires_grad=True)
    a.grad, b.grad = tt.tensor([3.0, -4.0], dtype=dtypes[0], device=on), tt.zeros(0, 4, dtype=dtypes[1], device=on)
    return [b, a] if first else [a, b]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtypes", [(tt.float32, tt.float32), (tt.float32, tt.float64), (tt.float16, tt.float16)], ids=str)
@pytest.mark.parametrize(
    ("p", "right"),
    [
        (math.inf, 4.0),
        ("inf", 4.0),
        (2.0, 5.0),
        (1.0, 7.0),
        (3.0, 91 ** (1 / 3)),
        (0.5, (3**0.5 + 2) ** 2),
        (0, 1.0),
        (-1, 12 / 7),
        (-math.inf, 3.0),
    ],
)
def test_they_add_nothing(p: Any, right: float, dtypes: tuple[Any, ...], first: bool, on: str) -> None:
    given = parameters(on, dtypes, first)
    for check in (False, True):
        assert nn.utils.get_total_norm([q.grad for q in given], p, check).item() == pytest.approx(right, rel=1e-3)
    assert nn.utils.clip_grad_norm_(given, 1.0, norm_type=p, error_if_nonfinite=True).item() == pytest.approx(right, rel=1e-3)
    scaled = next(q.grad for q in given if q.numel())
    assert scaled.float().tolist() == pytest.approx([3 / right, -4 / right], rel=2e-3)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("p", [math.inf, 2.0, 1.0])
def test_of_nothing_else_it_is_0(p: float, on: str) -> None:
    b = tt.zeros(0, 4, device=on, requires_grad=True)
    b.grad = tt.zeros(0, 4, device=on)
    assert nn.utils.clip_grad_norm_([b, b], 1.0, norm_type=p).item() == 0.0
    assert nn.utils.clip_grad_norm_([tt.zeros(3, requires_grad=True)], 1.0, norm_type=p).item() == 0.0


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("p", [-1, -2.5, -math.inf])
def test_orders_below_0_need_an_element(p: float, on: str) -> None:
    b = tt.zeros(0, 4, device=on, requires_grad=True)
    b.grad = tt.zeros(0, 4, device=on)
    with pytest.raises(EmptyError, match=rf"none of the tensors has an element, and norm_type {p} needs one"):
        nn.utils.clip_grad_norm_([b], 1.0, norm_type=p)
    assert nn.utils.clip_grad_norm_([tt.zeros(3, requires_grad=True)], 1.0, norm_type=p).item() == 0.0


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_nan_beside_one_of_nothing(on: str) -> None:
    given = parameters(on, (tt.float32, tt.float32), True)
    given[1].grad[0] = math.nan
    assert math.isnan(nn.utils.get_total_norm([q.grad for q in given], math.inf).item())
    with pytest.raises(RuntimeError, match="total norm of order inf"):
        nn.utils.clip_grad_norm_(given, 1.0, norm_type=math.inf, error_if_nonfinite=True)
