"""flex_attention and BlockMask in torch: the same lists, words, outputs and gradients."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.attention.flex_attention as theirs
from torch._higher_order_ops.flex_attention import math_attention

import tritensor as tt
import tritensor.nn.attention.flex_attention as ours

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore:divide by zero")]  # the log of rows without keys
TABLE = np.random.default_rng(0).standard_normal((4, 300))


def causal(lib):
    return lambda b, h, q, k: q >= k


def documents(lib):
    owner = lib.tensor(np.arange(300) // 70)
    return lambda b, h, q, k: (owner[q] == owner[k]) & (q - k < 40)


def by_batch(lib):
    length = lib.tensor([150, 40])
    return lambda b, h, q, k: (k < length[b]) & (q >= 3)


MASKS = {"causal": (causal, 1, 1), "documents": (documents, None, None), "batch": (by_batch, 2, 1), "batch and heads": (by_batch, 2, 4)}


def masks(name, q, k, **options):
    """The same BlockMask in both libraries."""
    made, b, h = MASKS[name]
    return [f.create_block_mask(made(lib), b, h, q, k, device="cpu", **options) for lib, f in ((tt, ours), (torch, theirs))]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("options", [{}, {"BLOCK_SIZE": (64, 32)}, {"separate_full_blocks": False}], ids=["usual", "sizes", "one list"])
def test_block_masks(name, options):
    a, b = masks(name, 300, 200, **options)
    pairs = [(a, b), (a[-1], b[-1]), (a[:, :, 1:2], b[:, :, 1:2])]
    for x, y in pairs:
        for field in (
            "kv_num_blocks",
            "kv_indices",
            "full_kv_num_blocks",
            "full_kv_indices",
            "q_num_blocks",
            "q_indices",
            "full_q_num_blocks",
            "full_q_indices",
        ):
            left, right = getattr(x, field), getattr(y, field)
            assert (left is None) == (right is None), field
            if left is not None:
                assert str(left.dtype).split(".")[1] == str(right.dtype).split(".")[1]
                np.testing.assert_array_equal(left.numpy(), right.numpy(), field)
        assert (x.shape, x.sparsity(), x.BLOCK_SIZE, str(x)) == (y.shape, y.sparsity(), y.BLOCK_SIZE, str(y))
        assert x.to_string(grid_size=2, limit=1) == y.to_string(grid_size=2, limit=1)


def scores(lib, table):
    return {
        "none": None,
        "soft cap": lambda s, b, h, q, k: 5 * (s / 5).tanh(),
        "bias": lambda s, b, h, q, k: s + table[h, q - k + 149] * (b + 1),
        "places": lambda s, b, h, q, k: lib.where(q - k > 2, s * 2, s - k * 0.01),
    }


@pytest.mark.parametrize("kind", ["none", "soft cap", "bias", "places"])
@pytest.mark.parametrize("name", [None, "causal", "batch"])
def test_outputs_and_gradients(name, kind):
    rng = np.random.default_rng(1)
    data = [rng.standard_normal(s) for s in ((2, 4, 150, 3), (2, 2, 150, 3), (2, 2, 150, 5))]
    block_masks = (None, None) if name is None else masks(name, 150, 150)
    found = []
    for lib, f, mask in zip((tt, torch), (ours, theirs), block_masks, strict=True):
        leaves = [lib.tensor(x, requires_grad=True) for x in (*data, TABLE)]
        *qkv, table = leaves
        mod = scores(lib, table)[kind]
        if lib is tt:
            out, lse = f.flex_attention(*qkv, mod, mask, enable_gqa=True, return_lse=True)
        else:  # torch's own plain form of it, because its public function refuses gradients on the CPU
            mask = mask or f._create_empty_block_mask(*qkv[:2])
            out, lse, _ = math_attention(*qkv, mod or f._identity, mask.as_tuple(), 3**-0.5, {})
            lse = lse * np.log(2)
        ((out * out).sum() + lse.where(lse > -1e30, lib.zeros_like(lse)).sum()).backward()
        found.append([out, lse, *[x.grad for x in leaves if x.grad is not None]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-9, 1e-11)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_public_function(dtype):
    data = [np.random.default_rng(2).standard_normal((1, 2, 20, 8)) for _ in range(3)]
    found = []
    for lib, f in ((tt, ours), (torch, theirs)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that nothing is fused
            mask = f.create_block_mask(causal(lib), None, None, 20, 20, device="cpu")
            out, aux = f.flex_attention(
                *[lib.tensor(x, dtype=getattr(lib, dtype)) for x in data], block_mask=mask, scale=0.5, return_aux=f.AuxRequest(lse=True)
            )
        found.append((out.float().numpy(), aux.lse.numpy()))
        assert aux.max_scores is None
        assert aux.lse.dtype == lib.float32
        assert out.dtype == getattr(lib, dtype)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-5 if dtype == "float32" else 2e-2, 1e-5 if dtype == "float32" else 2e-2)
