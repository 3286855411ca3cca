"""A query that sees no key gives 0 with weights of 0, whether weights are asked for or not, and spoils no gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.nn import functional as F


def masks(kind: str, on: str) -> dict[str, Any]:
    """Those that hide all keys of query 1, or of example 1."""
    rows, padding = tt.zeros(3, 3, dtype=tt.bool, device=on), tt.zeros(2, 3, dtype=tt.bool, device=on)
    rows[1], padding[1] = True, True
    numbers = {True: rows, False: padding}
    if kind.endswith("numbers"):
        numbers = {k: tt.zeros(m.shape, device=on).masked_fill(m, -math.inf) for k, m in numbers.items()}
    given = {} if kind.startswith("padding") else {"attn_mask": numbers[True]}
    return given if kind.startswith("rows") else {**given, "key_padding_mask": numbers[False]}


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["rows", "rows in numbers", "padding", "padding in numbers", "both"])
def test_outputs_weights_and_gradients(kind: str, training: bool, on: str) -> None:
    tt.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=True).to(on).train(training)
    with tt.no_grad():
        attention.out_proj.bias.fill_(0.5)
    x = (tt.arange(24.0, device=on).reshape(2, 3, 4) / 10).requires_grad_()
    found = {}
    for wanted in (True, False):
        attention.zero_grad()
        x.grad = None
        y, weights = attention(x, x, x, need_weights=wanted, **masks(kind, on))
        hidden = y[1] if kind.startswith("padding") else y[:, 1]
        assert (hidden == 0.5).all()
        if wanted:
            sums = weights.sum(-1)
            assert ((sums - 1).abs().lt(1e-5) | (sums == 0)).all()
            assert (weights[1] == 0).all() if kind.startswith("padding") else (weights[:, 1] == 0).all()
        (y * tt.arange(1.0, 25.0, device=on).reshape(2, 3, 4)).sum().backward()
        found[wanted] = [y.detach(), x.grad, *(p.grad for p in attention.parameters())]
    for a, b in zip(found[True], found[False], strict=True):
        assert a.isfinite().all()
        assert tt.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize(
    "masked",
    [tt.zeros(3, 3).masked_fill(tt.tensor([[False], [True], [False]]), -math.inf), tt.tensor([[True], [False], [True]]).expand(3, 3)],
)
def test_without_a_layer(masked: Any) -> None:
    q = tt.ones(1, 2, 3, 4, requires_grad=True)
    y = F.scaled_dot_product_attention(q, q, q, masked)
    assert y[0, :, 1].abs().max() == 0
    (g,) = tt.autograd.grad(y.sum(), q)
    assert g.isfinite().all()


def test_the_layers_of_a_transformer() -> None:
    padding = tt.tensor([[False] * 3, [True] * 3])
    for training in (True, False):
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).train(training)
        assert layer(tt.ones(2, 3, 4), src_key_padding_mask=padding).isfinite().all()
        both = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True).train(training)
        assert both(tt.ones(2, 3, 4), tt.ones(2, 3, 4), memory_key_padding_mask=padding, tgt_key_padding_mask=padding).isfinite().all()
