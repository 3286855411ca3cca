"""Writes into tensors that overlap themselves: refused where elements that share a cell may disagree, or where a graph would remember it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.mul_(2), lambda w: w.add_(1), lambda w: w.copy_(tt.arange(10.0).reshape(5, 2).to(w.device)), lambda w: w.uniform_(), lambda w: w.exp_(),
        lambda w: w.__setitem__(slice(1, 3), tt.arange(4.0).reshape(2, 2).to(w.device)), lambda w: w.index_add_(0, tt.tensor([1, 2]).to(w.device), w[:2].clone()),
        lambda w: w.__setitem__(tt.tensor([1, 2]).to(w.device), tt.arange(4.0).reshape(2, 2).to(w.device)), lambda w: tt.add(w, 1, out=w),
        lambda w: w.cumsum_(0), lambda w: w.masked_scatter_(w > 2, w.clone()),
    ],
)  # fmt: skip
def test_what_depends_on_the_order_is_refused(write: Callable[[tt.Tensor], Any], on: str) -> None:
    x = tt.arange(6.0, device=on)
    with pytest.raises(tt.ShapeError, match=r"the tensor of shape \(\d, 2\) with strides \(1, 1\) is expanded or overlaps itself"):
        write(x.unfold(0, 2, 1))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("on", DEVICES)
def test_a_graph_does_not_remember_them(on: str) -> None:
    leaf = tt.arange(6.0, device=on, requires_grad=True)
    x = leaf * 1
    with pytest.raises(tt.ShapeError, match="overlaps itself"):
        x.unfold(0, 2, 1).fill_(0.5)
    with tt.no_grad():
        x.unfold(0, 2, 1)[1:3] = 0.5
    assert x.tolist() == [0.0, 0.5, 0.5, 0.5, 4.0, 5.0]


@pytest.mark.parametrize("on", DEVICES)
def test_writes_are_counted_and_kept_to_what_changes(on: str) -> None:
    x = tt.tensor([float("nan"), 1.0, 2.0, float("nan")], device=on)
    windows = x.unfold(0, 2, 1)
    before = x._version
    windows.masked_fill_(windows == 1.0, float("nan"))
    windows.masked_fill_(tt.tensor([[False, False], [False, False], [False, True]], device=on), 4.0)
    assert str(x.tolist()) == "[nan, nan, 2.0, 4.0]"
    assert x._version == before + 2
    whole = tt.tensor([[1, 250], [3, 4]], dtype=tt.uint8, device=on)
    whole.as_strided((2, 2), (1, 1)).clamp_(2, 200)
    assert whole.tolist() == [[2, 200], [3, 4]]
