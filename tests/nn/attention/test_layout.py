"""Memory layout of attention: heads that were split off a projection's features go back to it without a copy."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.nn import functional as F


def heads_of(x: tt.Tensor, heads: int) -> tt.Tensor:
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)  # (batch, heads, length, size)


def attend(qkv: tt.Tensor, heads: int) -> tt.Tensor:
    q, k, v = (heads_of(x, heads) for x in qkv.chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(*qkv.shape[:-1], -1)


def test_a_projection_is_attended_by_one_launch_and_its_gradient_made_by_four() -> None:
    gpu = VirtualGPU(90)
    before = active.use(gpu)  # type: ignore[arg-type]
    try:
        qkv = tt.empty(2, 64, 3 * 4 * 16, dtype=tt.bfloat16, device="cuda", requires_grad=True)
        gpu.calls = []
        y = attend(qkv, 4)
        forward, gpu.calls = len(gpu.calls), []
        y.backward(tt.empty_like(y))
        assert (forward, len(gpu.calls)) == (1, 4)  # row sums, queries, keys and values; the three put side by side
    finally:
        active.use(before)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3), (1, 0, 2, 3)])
def test_the_result_lies_as_the_queries_do(order: tuple[int, ...]) -> None:
    shape = (2, 3, 5, 4)
    x = np.random.default_rng(3).standard_normal([shape[d] for d in order]).astype(np.float32)
    back = [order.index(d) for d in range(4)]
    q = tt.from_numpy(x).to("cuda").permute(*back)
    y = F.scaled_dot_product_attention(q, q, q)
    assert tuple(y.shape) == shape
    assert y.permute(*order).is_contiguous()
    expected = F.scaled_dot_product_attention(q.cpu(), q.cpu(), q.cpu())
    np.testing.assert_allclose(y.cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
