"""A sum and its normalisation in one pass: what the two functions give, gradients of either result and of both, and transformers that use it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.nn import functional as F


def composed(kind: str, x: Any, r: Any, *vectors: Any) -> tuple[Any, Any]:
    total = x + r
    return getattr(F, kind)(total, total.shape[-1:], *vectors), total


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [7, 8200])
@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_it_is_the_two_functions(kind: str, n: int, on: str) -> None:
    draw = [tt.randn(s, dtype=tt.float64).to(on) for s in ((3, n), (3, n), (n,), (n,))][: 4 if kind == "layer_norm" else 3]
    every = itertools.product(((True, True), (True, False), (False, True)), (0, 1, None))
    for taken, frozen in every if n < 100 or on == "cpu" else [((True, True), None)]:  # long rows take the emulated device seconds each
        given = [t.clone().requires_grad_(i != frozen) for i, t in enumerate(draw)]
        found = getattr(F, f"add_{kind}")(given[0], given[1], (n,), *given[2:])
        expected = composed(kind, *given)
        wanted = [t for t in given if t.requires_grad and (taken[0] or t.ndim == 2)]

        def loss(pair: tuple[Any, Any], taken: Any = taken) -> Any:
            return sum((y.square().sum() for y, used in zip(pair, taken, strict=True) if used), tt.zeros((), dtype=tt.float64, device=on))

        for got, right in zip(
            [*found, *tt.autograd.grad(loss(found), wanted)], [*expected, *tt.autograd.grad(loss(expected), wanted)], strict=True
        ):
            assert tt.allclose(got, right, rtol=1e-9, atol=1e-9), (taken, frozen)


def test_a_bfloat16_sum_is_rounded_once_before_it_is_normalised() -> None:
    x, r = (tt.randn(5, 64, dtype=tt.bfloat16, device="cuda") for _ in range(2))
    y, total = F.add_layer_norm(x, r, (64,))
    assert tt.equal(total, x + r)
    assert tt.equal(y, F.layer_norm(total, (64,)))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.SiLU()])
@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_transformers_are_the_same_on_a_gpu(kind: str, activation: Any, norm_first: bool) -> None:
    layer = getattr(nn, f"Transformer{kind}Layer")(8, 2, 16, dropout=0.0, activation=activation, norm_first=norm_first, batch_first=True)
    x, memory = tt.randn(2, 3, 8), tt.randn(2, 5, 8)
    found = []
    for on in ("cpu", "cuda"):
        net, at = layer.to(on), x.detach().clone().to(on).requires_grad_()
        y = net(at, memory.to(on)) if kind == "Decoder" else net(at)
        net.zero_grad()
        y.square().sum().backward()
        found.append([t.detach().cpu().numpy().copy() for t in (y, at.grad, *[p.grad for p in net.parameters()])])
    for right, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)


def test_an_encoder_layer_takes_it_and_a_hook_keeps_the_norm_apart() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to("cuda")
    x, seen = tt.randn(2, 3, 8, device="cuda"), []
    assert "AddLayerNorm" in layer(x).grad_fn.name()
    with layer.norm2.register_forward_hook(lambda module, given, y: seen.append(tuple(y.shape))):
        assert "AddLayerNorm" not in layer(x).grad_fn.name()
    assert seen == [(2, 3, 8)]


def test_bad_input() -> None:
    x = tt.ones(3, 4)
    with pytest.raises(ShapeError, match=r"add_layer_norm: input \(3, 4\), residual \(4,\)"):
        F.add_layer_norm(x, tt.ones(4), 4)
    with pytest.raises(DTypeError, match="residual"):
        F.add_rms_norm(x, tt.ones(3, 4, dtype=tt.float64), 4)
    with pytest.raises(DTypeError, match="add_layer_norm: input is int64"):
        F.add_layer_norm(tt.ones(3, 4, dtype=tt.int64), tt.ones(3, 4, dtype=tt.int64), 4)
    with pytest.raises(ShapeError, match="weight"):
        F.add_rms_norm(x, x, 4, tt.ones(3))
