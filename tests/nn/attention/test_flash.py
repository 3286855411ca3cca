"""Attention on a GPU goes by the flash kernels: every kind of call against the CPU's, which calls do not, and what is noted of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.nn import functional as F
from tritensor.nn.attention import SDPBackend, sdpa_kernel


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    tt.debug.variants().clear()
    yield
    tt.debug.variants().clear()


def run(device: str, arrays: list[np.ndarray], mask: Any = None, dtype: tt.dtype = tt.float32, **options: Any) -> list[np.ndarray]:
    """[y, dq, dk, dv] of a loss that weighs y."""
    tt.manual_seed(11)
    given = [tt.tensor(x, device=device).to(dtype).requires_grad_() for x in arrays]
    on = None if mask is None else tt.tensor(mask, device=device)
    y = F.scaled_dot_product_attention(*given, attn_mask=on if on is None or on.dtype == tt.bool else on.to(dtype), **options)
    up = np.random.default_rng(3).standard_normal(y.shape).astype(np.float32)
    (y * tt.tensor(up, device=device).to(dtype)).sum().backward()
    return [y.detach().cpu().float().numpy(), *[g.grad.cpu().float().numpy() for g in given]]


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(shapes[0])
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


BLIND = np.random.default_rng(1).random((2, 1, 37, 41)) > 0.5
BLIND[0, 0, 3] = False
CALLS = {
    "plain": (((2, 3, 37, 24),) * 3, None, {}),
    "causal": (((2, 3, 37, 24), (2, 3, 41, 24), (2, 3, 41, 7)), None, {"is_causal": True}),
    "more queries": (((1, 2, 70, 16), (1, 2, 33, 16), (1, 2, 33, 16)), None, {"is_causal": True, "scale": 0.3}),
    "bool mask": (((2, 3, 37, 8), (2, 3, 41, 8), (2, 3, 41, 8)), BLIND, {}),
    "numbers": (((2, 3, 37, 8), (2, 3, 41, 8), (2, 3, 41, 8)), drawn((41,))[0] * 2, {}),
    "far below": (((1, 2, 5, 8), (1, 2, 9, 8), (1, 2, 9, 8)), np.full((5, 9), np.finfo(np.float32).min, np.float32), {}),
    "shared heads": (((2, 6, 37, 8), (2, 2, 41, 8), (2, 2, 41, 8)), None, {"enable_gqa": True, "is_causal": True}),
    "one head of keys": (((2, 4, 19, 8), (1, 21, 8), (2, 1, 21, 8)), None, {}),
    "no batch": (((33, 8), (35, 8), (35, 5)), None, {}),
    "dropout": (((2, 2, 37, 8), (2, 2, 41, 8), (2, 2, 41, 8)), None, {"dropout_p": 0.4}),
    "dropout and all": (((2, 4, 37, 8), (2, 2, 40, 8), (2, 2, 40, 8)), BLIND[0, 0, :, :40], {"dropout_p": 0.2, "enable_gqa": True, "scale": 0.5}),
    "no scale": (((1, 2, 7, 4),) * 3, None, {"scale": 0.0, "is_causal": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(name: str) -> None:
    """The same numbers, which weights are dropped included, forward and backward."""
    shapes, mask, options = CALLS[name]
    arrays = drawn(*shapes)
    for a, b in zip(run("cuda", arrays, mask, **options), run("cpu", arrays, mask, **options), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert not tt.debug.variants()


def test_heads_wider_than_there_are_queries() -> None:
    arrays = drawn((1, 1, 5, 40), (1, 1, 6, 40), (1, 1, 6, 40))
    for a, b in zip(run("cuda", arrays), run("cpu", arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert not tt.debug.variants()


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float16], ids=str)
@pytest.mark.parametrize("size", [64, 80, 128])
def test_sixteen_bits(dtype: tt.dtype, size: int) -> None:
    arrays = drawn((1, 2, 150, size), (1, 1, 170, size), (1, 1, 170, size))
    options: dict[str, Any] = {"is_causal": True, "enable_gqa": True}
    eps = 2.0**-8 if dtype == tt.bfloat16 else 2.0**-11
    exact = [x.astype(np.float32) for x in (tt.tensor(a).to(dtype).float().numpy() for a in arrays)]
    for a, b in zip(run("cuda", arrays, dtype=dtype, **options), run("cpu", exact, **options), strict=True):
        assert np.abs(a - b).max() < 4 * eps * np.abs(b).max()
    assert not tt.debug.variants()


def test_the_same_bits_again() -> None:
    arrays = drawn((1, 4, 70, 16), (1, 2, 90, 16), (1, 2, 90, 16))
    options: dict[str, Any] = {"is_causal": True, "enable_gqa": True, "dropout_p": 0.3}
    for a, b in zip(run("cuda", arrays, **options), run("cuda", arrays, **options), strict=True):
        assert np.array_equal(a, b)


def test_operands_as_they_lie() -> None:
    """Heads cut out of one projection, (batch, length, 3, heads, size), rows broadcast; and features that do not lie side by side, which is noted."""
    packed = drawn((2, 19, 3, 4, 8))[0]
    on = tt.tensor(packed, device="cuda")
    q, k, v = (on[:, :, i].transpose(1, 2) for i in range(3))
    y = F.scaled_dot_product_attention(q, k, v[:, :, :1].expand(-1, -1, 19, -1))
    whole = [x.contiguous().cpu() for x in (q, k, v[:, :, :1].expand(-1, -1, 19, -1))]
    np.testing.assert_allclose(y.cpu().numpy(), F.scaled_dot_product_attention(*whole).numpy(), rtol=1e-5, atol=1e-6)
    assert not tt.debug.variants()
    turned = k.transpose(-1, -2).contiguous().transpose(-1, -2)
    np.testing.assert_array_equal(
        F.scaled_dot_product_attention(q, turned, v).cpu().numpy(), F.scaled_dot_product_attention(q, k, v).cpu().numpy()
    )
    assert [(x.op, x.variant, x.times) for x in tt.debug.variants()] == [("scaled_dot_product_attention", "copied", 1)]


def test_second_derivatives() -> None:
    found = []
    for device in ("cpu", "cuda"):
        q, k, v = (tt.tensor(x, device=device, requires_grad=True) for x in drawn((1, 4, 5, 3), (1, 2, 6, 3), (1, 2, 6, 3)))
        tt.manual_seed(4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, dropout_p=0.3)
        first = tt.autograd.grad(y.sin().sum(), (q, k, v), create_graph=True)
        (first[0].sum() + (first[1] * first[1]).sum() + first[2].sin().sum()).backward()
        found.append([x.grad.cpu().numpy() for x in (q, k, v)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


WHYS: dict[str, tuple[dict[str, Any], str]] = {
    "float64": ({"dtype": tt.float64}, "queries are float64"),
    "wide heads": ({"size": 260}, "more than 256 features"),
    "scale": ({"scale": -0.5}, "scale is below 0"),
    "trained mask": ({"attn_mask": (3, 4)}, "the mask wants a gradient"),
    "values of other heads": ({"enable_gqa": True, "values": 1}, "other numbers of heads"),
}


@pytest.mark.parametrize("name", WHYS)
def test_what_the_kernels_do_not_take_is_named(name: str) -> None:
    given, why = WHYS[name]
    options = dict(given)
    size, dtype, values = options.pop("size", 4), options.pop("dtype", tt.float32), options.pop("values", 2)
    found = []
    for device in ("cuda", "cpu"):
        q, k, v = (tt.tensor(x, device=device).to(dtype) for x in drawn((2, 2, 3, size), (2, 2, 4, size), (2, values, 4, size)))
        masks = {"attn_mask": tt.zeros(*options["attn_mask"], device=device, requires_grad=True)} if "attn_mask" in options else {}
        found.append(F.scaled_dot_product_attention(q, k, v, **{**options, **masks}).detach().cpu().numpy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
    (only,) = tt.debug.variants()
    assert (only.op, only.variant, only.times) == ("scaled_dot_product_attention", "composed", 1)
    assert why in only.why
    assert only.mend


def test_a_user_who_asks_for_products_gets_them() -> None:
    q = tt.randn(1, 2, 3, 4, device="cuda", requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH):
        y = F.scaled_dot_product_attention(q, q, q)
    assert y.grad_fn.op.name == "attention"
    assert F.scaled_dot_product_attention(q, q, q).grad_fn.op.name == "flash_attention"
    assert not tt.debug.variants()


def test_multihead_attention_takes_it_where_weights_are_not_asked_for() -> None:
    tt.manual_seed(5)
    layer = nn.MultiheadAttention(32, 2, batch_first=True).eval()
    x, late = tt.randn(2, 9, 32), tt.tensor([[False] * 9, [False] * 7 + [True] * 2])
    found = []
    for device in ("cpu", "cuda"):
        layer = layer.to(device)
        y, weights = layer(*[x.to(device)] * 3, key_padding_mask=late.to(device), need_weights=False)
        assert weights is None
        found.append(y.detach().cpu().numpy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
    assert not tt.debug.variants()
