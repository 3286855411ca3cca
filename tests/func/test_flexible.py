"""flex_attention against plain attention, with masks and scores by functions; BlockMask's lists; what does not fit."""

from __future__ import annotations

import math

import pytest

import tritensor as tt
from tritensor.nn.attention import flex_attention as fa
from tritensor.nn.functional import scaled_dot_product_attention


def draw(*shape: int) -> tt.Tensor:
    n = math.prod(shape)
    return (tt.arange(n, dtype=tt.float64) * 0.7).sin().reshape(shape).requires_grad_()


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def test_without_functions_it_is_plain_attention() -> None:
    q, k, v = draw(2, 4, 5, 3), draw(2, 2, 6, 3), draw(2, 2, 6, 2)
    y = fa.flex_attention(q, k, v, enable_gqa=True)
    assert tt.allclose(y, scaled_dot_product_attention(q, k, v, enable_gqa=True), 0, 1e-12)


def test_mask_and_scores_reach_every_place_and_gradients_flow_through_tables() -> None:
    q, k, v, table = draw(1, 2, 4, 3), draw(1, 2, 4, 3), draw(1, 2, 4, 3), draw(2, 7)
    mask = fa.create_block_mask(causal, None, None, 4, 4, device="cpu", BLOCK_SIZE=2)
    y = fa.flex_attention(q, k, v, lambda s, b, h, i, j: s * 0.5 + table[h, i - j + 3], mask)
    grads = tt.autograd.grad(y.square().sum(), (q, k, v, table))
    at = tt.arange(4)
    scores = q @ k.mT / math.sqrt(3) * 0.5 + table[:, at[:, None] - at + 3]
    plain = scores.where(at[:, None] >= at, -math.inf).softmax(-1) @ v
    assert tt.allclose(y, plain, 0, 1e-12)
    for ours, other in zip(grads, tt.autograd.grad(plain.square().sum(), (q, k, v, table)), strict=True):
        assert tt.allclose(ours, other, 0, 1e-12)


@pytest.mark.filterwarnings("ignore:divide by zero")  # numpy's, of log 0, which the front door's filter keeps from programs
def test_a_query_without_keys_gives_zero_and_further_outputs_say_so() -> None:
    q, k, v = draw(1, 1, 3, 2), draw(1, 1, 3, 2), draw(1, 1, 3, 2)
    mask = fa.create_block_mask(lambda b, h, i, j: (i > 0) & causal(b, h, i, j), None, None, 3, 3, device="cpu")
    y, aux = fa.flex_attention(q, k, v, block_mask=mask, return_aux=fa.AuxRequest(lse=True, max_scores=True))
    assert y[0, 0, 0].tolist() == [0, 0]
    assert aux.lse[0, 0, 0].item() == aux.max_scores[0, 0, 0].item() == -math.inf
    scores = (q @ k.mT / math.sqrt(2))[0, 0, 2]
    assert tt.allclose(aux.lse[0, 0, 2], scores.logsumexp(0))
    assert tt.allclose(aux.max_scores[0, 0, 2], scores.amax())
    assert fa.flex_attention(q, k, v, return_lse=True)[1].shape == (1, 1, 3)


def test_blocks_are_listed_full_and_in_part() -> None:
    mask = fa.create_block_mask(causal, 2, None, 6, 5, device="cpu", BLOCK_SIZE=(2, 2))
    assert mask.shape == (2, 1, 6, 5)
    assert mask.numel() == 60
    assert mask.kv_num_blocks[0, 0].tolist() == [1, 1, 1]
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 1, 2]
    assert mask.kv_indices[0, 0].tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    assert mask.to_dense()[1, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask.q_num_blocks[0, 0].tolist() == [1, 1, 1]
    assert mask.full_q_num_blocks[0, 0].tolist() == [2, 1, 0]
    assert fa.create_block_mask(causal, 1, 1, 6, 5, "cpu", 2, separate_full_blocks=False).full_kv_indices is None
    assert str(mask).splitlines()[2:5] == ["██    ", "████  ", "██████"]
    assert mask._adjust(4, 4).to_dense()[0, 0].tolist() == [[1, 0], [1, 1]]
    assert mask[0, :, 1].kv_num_blocks.tolist() == [[[1]]]
    leaves, spec = tt.utils.pytree.tree_flatten(mask)
    assert len(leaves) == 8
    assert spec.unflatten(leaves).mask_mod is causal


def test_masks_are_joined() -> None:
    near = fa.and_masks(causal, lambda b, h, i, j: i - j < 2)
    assert fa.create_mask(near, None, None, 3, 3, "cpu")[0, 0].tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    either = fa.or_masks(lambda b, h, i, j: i == j, lambda b, h, i, j: j == 0)
    assert fa.create_mask(either, 1, 2, 2, 2, "cpu")[0, 1].tolist() == [[True, False], [True, True]]
    hides = fa.create_mask(lambda s, b, h, i, j: s.where(i >= j, -math.inf), 1, 1, 2, 2, "cpu")
    assert hides[0, 0].tolist() == [[True, False], [True, True]]


Q = tt.ones(1, 2, 4, 3)
MASK = fa.create_block_mask(causal, None, None, 4, 4, device="cpu")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: fa.flex_attention(Q, Q[:, :1], Q[:, :1]), ValueError, "same number of heads but got Hq=2 and Hkv=1"),
        (lambda: fa.flex_attention(Q, Q[..., :2], Q), ValueError, "same embedding dimension but got E=3 and E=2"),
        (lambda: fa.flex_attention(Q[0], Q[0], Q[0]), NotImplementedError, "must be 4D tensors"),
        (lambda: fa.flex_attention(Q, Q, Q.double()), TypeError, "the same dtype"),
        (lambda: fa.flex_attention(Q[:, :, :3], Q, Q, block_mask=MASK), ValueError, "got q_len=3 and kv_len=4"),
        (lambda: fa.flex_attention(Q, Q, Q, block_mask=MASK[0]), RuntimeError, "from a sliced BlockMask"),
        (lambda: fa.flex_attention(Q, Q, Q, return_lse=True, return_aux=fa.AuxRequest()), ValueError, "both return_lse and return_aux"),
        (lambda: fa.create_block_mask(lambda s, b, h, i, j: s, 1, 1, 2, 2), AssertionError, "requires a mask_mod function"),
        (lambda: fa.create_mask(lambda b, h: b, 1, 1, 2, 2), AssertionError, "Expected 4 or 5 positional args, got 2"),
        (lambda: fa.and_masks(causal, 3), RuntimeError, "argument 1 is of type int"),
        (lambda: fa.create_block_mask(causal, 1, 1, 2, 2, compute_dq_write_order=True), NotImplementedError, "leave it out"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, said) -> None:
    with pytest.raises(error, match=said):
        call()
