"""A NaN or an infinity that has no part in a result has none in a gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tritensor as tt
from tritensor.nn import functional as F

BAD = [math.nan, math.inf, -math.inf]


def image(bad: float, row: int = 1) -> Any:
    x = tt.arange(12.0).reshape(3, 4) / 7
    x[row, 2] = bad
    return x.requires_grad_()


CASES = {
    "nll_loss, an ignored row": lambda x: F.nll_loss(x, tt.tensor([0, -100, 2])),
    "embedding_bag, padding": lambda x: F.embedding_bag(tt.tensor([[0, 1], [2, 1]]), x, padding_idx=1, mode="sum").sum(),
    "embedding_bag, the largest": lambda x: F.embedding_bag(tt.tensor([[0, 1], [2, 1]]), x, padding_idx=1, mode="max").sum(),
    "masked_fill": lambda x: x.masked_fill(~x.isfinite(), 0.0).square().sum(),
    "where": lambda x: tt.where(x.isfinite(), x, 0.0).square().sum(),
    "nan_to_num": lambda x: (x.nan_to_num() * x.isfinite()).sum(),
    "dropout of all": lambda x: F.dropout(x, 1.0, True).sum(),
    "tril": lambda x: (tt.tril(x) * 2).sum(),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_what_is_left_out(name: str, bad: float) -> None:
    x = image(bad)
    (g,) = tt.autograd.grad(CASES[name](x), x)
    assert g.isfinite().all(), g


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("bad", BAD)
def test_time_behind_a_samples_end(bad: float, on: str) -> None:
    """The gradient of the two steps that a sample has is that of a sample of two steps."""
    x, y = (image(v, 2).detach().reshape(3, 1, 4).to(on).requires_grad_() for v in (bad, 0.0))
    given = tt.tensor([[1, 2]], device=on), tt.tensor([2]), tt.tensor([1])
    found, right = (tt.autograd.grad(F.ctc_loss(v, *given), v)[0] for v in (x, y))
    assert found[2].tolist() == [[0.0] * 4]
    assert tt.allclose(found, right)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_slice_that_renorm_leaves(on: str) -> None:
    x = image(math.nan).detach().to(on).requires_grad_()
    (g,) = tt.autograd.grad(tt.renorm(x, 2, 0, 1.0), x, tt.ones(3, 4, device=on))
    assert g[:2].tolist() == [[1.0] * 4] * 2  # of norm 0.53, and of none
    assert g[2].isfinite().all()
