"""Attention without torch: against its formula, blocks of rows on the CPU, masks, dropout, derivatives, Transformers on both devices."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.kernels.parts.launch_rules import forced
from tritensor.nn import functional as F
from tritensor.nn.attention import SDPBackend, sdpa_kernel
from tritensor.nn.attention.bias import causal_lower_right, causal_upper_left


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray | None = None) -> np.ndarray:
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = s if seen is None else np.where(seen, s, -np.inf)
    w = np.exp(s - np.maximum(s.max(-1, keepdims=True), -1e300))
    return w / np.maximum(w.sum(-1, keepdims=True), 1e-300) @ v


@pytest.mark.parametrize(("heads", "queries", "keys"), [(1, 300, 300), (20, 129, 140), (3, 270, 100), (40, 64, 64)])
def test_causal_in_blocks(heads: int, queries: int, keys: int) -> None:
    """Blocks of heads and of queries, whose later keys are left out, forward and backward."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads, n, 4)) for n in (queries, keys, keys))
    seen = np.tri(queries, keys, dtype=bool)
    found = []
    for mask, causal in ((None, True), (tt.tensor(seen), False)):
        given = [tt.tensor(x, requires_grad=True) for x in (q, k, v)]
        y = F.scaled_dot_product_attention(*given, attn_mask=mask, is_causal=causal)
        (y * y.detach().sin()).sum().backward()
        found.append([y.detach().numpy(), *[g.grad.numpy() for g in given]])
    np.testing.assert_allclose(found[0][0], attended(q, k, v, seen), rtol=1e-9, atol=1e-12)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11)


def test_rows_that_see_nothing_are_zero() -> None:
    q = tt.randn(2, 3, 4, requires_grad=True)
    for mask in (tt.zeros(3, 3, dtype=tt.bool), tt.full((3, 3), -math.inf)):
        y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        assert not y.detach().numpy().any()
        (found,) = tt.autograd.grad(y.sum(), q)
        assert not found.numpy().any()
    assert tuple(F.scaled_dot_product_attention(q, q[:, :0], q[:, :0]).shape) == (2, 3, 4)


def test_derivatives() -> None:
    tt.manual_seed(1)
    q, k, v = (tt.randn(2, 3, 2, dtype=tt.float64, requires_grad=True) for _ in range(3))
    mask = tt.randn(3, 3, dtype=tt.float64, requires_grad=True)
    assert gradgradcheck(lambda *x: F.scaled_dot_product_attention(*x[:3], attn_mask=x[3]), (q, k, v, mask))

    def slope(x: tt.Tensor) -> tt.Tensor:
        first = tt.autograd.grad(F.scaled_dot_product_attention(x, k, v, is_causal=True).sin().sum(), x, create_graph=True)[0]
        return tt.autograd.grad((first * first).sum(), x, create_graph=True)[0]

    assert gradcheck(slope, (q,))


def test_dropout_drops_weights() -> None:
    tt.manual_seed(2)
    q, k = tt.zeros(1, 400, 2), tt.zeros(1, 50, 2)
    y = F.scaled_dot_product_attention(q, k, tt.ones(1, 50, 1), dropout_p=0.5).numpy()
    assert abs(y.mean() - 1) < 0.05
    assert y.std() > 0.05
    layer = nn.MultiheadAttention(4, 2, dropout=0.5).eval()
    x = tt.randn(3, 4)
    assert layer(x, x, x)[0].tolist() == layer(x, x, x)[0].tolist()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer_on_both_devices() -> None:
    tt.manual_seed(3)
    net = nn.Transformer(8, 2, 1, 1, 12, 0.0, batch_first=True)
    src, tgt = tt.randn(2, 3, 8), tt.randn(2, 4, 8)
    late = tt.tensor([[False, False, True], [False, False, False]])
    mask = net.generate_square_subsequent_mask(4)
    found = []
    for device in ("cpu", "cuda"):
        net = net.to(device)
        net.zero_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = net(src.to(device), tgt.to(device), tgt_mask=mask.to(device), src_key_padding_mask=late.to(device))
        (y * y * y).sum().backward()
        found.append([y.detach().cpu().numpy(), *[p.grad.cpu().numpy() for p in net.parameters()]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4)


def test_masks_by_name_and_backends() -> None:
    assert causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    assert causal_lower_right(2, 3).tolist() == [[True, True, False], [True, True, True]]
    q = tt.randn(1, 2, 3, 4)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        y = F.scaled_dot_product_attention(q, q, q)
    np.testing.assert_allclose(y.numpy(), attended(*[q.numpy().astype(np.float64)] * 3), rtol=1e-5, atol=1e-6)
    with pytest.raises(AssertionError, match="SDPBackend"), sdpa_kernel("math"):  # type: ignore[arg-type]
        pass


def test_a_batch_of_examples_is_one_call() -> None:
    q, k, mask = tt.randn(4, 2, 3, 5), tt.randn(2, 6, 5), tt.randn(4, 3, 6)
    call = tt.func.vmap(lambda a, m: F.scaled_dot_product_attention(a, k, k, attn_mask=m))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call(q, mask)
    each = np.stack([F.scaled_dot_product_attention(a, k, k, attn_mask=m).numpy() for a, m in zip(q, mask, strict=True)])
    np.testing.assert_allclose(found.numpy(), each, rtol=1e-5, atol=1e-6)


def test_rows_longer_than_a_tile() -> None:
    """What a program does not keep in registers it walks twice, with masks, forward and backward."""
    rng = np.random.default_rng(8)
    q, k, v, mask = (rng.standard_normal(s) for s in ((2, 3, 4), (2, 37, 4), (2, 37, 2), (2, 1, 37)))
    mask[0, 0, :20] = -np.inf
    found = []
    with forced(softmax=lambda key, default: default._replace(BN=16, whole=False)):
        for device in ("cpu", "cuda"):
            given = [tt.tensor(x, requires_grad=True, device=device) for x in (q, k, v)]
            y = F.scaled_dot_product_attention(*given, attn_mask=tt.tensor(mask, device=device))
            (y * y.detach()).sum().backward()
            found.append([y.detach().cpu().numpy(), *[g.grad.cpu().numpy() for g in given]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_an_encoder_of_ones_own_may_be_empty() -> None:
    given = nn.ModuleList()
    net = nn.Transformer(4, 2, 1, 1, 8, custom_encoder=given, custom_decoder=given)
    assert net.encoder is given
    assert net.decoder is given


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float64])
def test_a_mask_of_float32_goes_with_queries_of_any_type(dtype: tt.dtype) -> None:
    q = tt.randn(1, 2, 3, 4).to(dtype).requires_grad_()
    mask = tt.zeros(3, 3).masked_fill(tt.ones(3, 3, dtype=tt.bool).triu(1), -math.inf)
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert y.dtype == dtype
    assert y.tolist() == F.scaled_dot_product_attention(q, q, q, attn_mask=mask.to(dtype)).tolist()
    y.sum().backward()
    assert q.grad.dtype == dtype
    with pytest.raises(tt.DTypeError, match="Expected attn_mask dtype to be bool or float or to match query dtype"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask.to(tt.float64 if dtype != tt.float64 else tt.float16))


@pytest.mark.quick
@pytest.mark.parametrize("causal", [False, True])
def test_many_rows_of_large_scores_some_of_which_see_nothing(causal: bool) -> None:
    """Enough elements for machine code on the CPU, in windows with gaps where it is causal; against softmax in plain numpy."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((1, 2, n, 16)) * s for n, s in ((300, 9.0), (300, 9.0), (300, 1.0)))
    seen = np.tril(np.ones((300, 300), bool)) if causal else rng.random((300, 300)) > 0.3
    if not causal:
        seen[7] = False
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) / 4, -np.inf)
    power = np.where(seen, np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300)), 0.0)
    weights = power / np.maximum(power.sum(-1, keepdims=True), 1e-300)
    given = [tt.tensor(x, requires_grad=True) for x in (q, k, v)]
    y = F.scaled_dot_product_attention(*given, attn_mask=None if causal else tt.tensor(seen), is_causal=causal)
    np.testing.assert_allclose(y.detach().numpy(), weights @ v, rtol=1e-9, atol=1e-11)
    y.sum().backward()
    np.testing.assert_allclose(given[2].grad.sum(-1)[0].numpy(), 16 * weights.sum(-2)[0], rtol=1e-8)
