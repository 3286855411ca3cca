"""flex_attention: attention whose scores a function changes and a BlockMask hides, exact and in plain ops."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tritensor.func.flexible.block_mask import DEFAULT_SPARSE_BLOCK_SIZE
from tritensor.func.flexible.block_mask import BlockMask as BlockMask
from tritensor.func.flexible.block_mask import create_block_mask as create_block_mask
from tritensor.func.flexible.masks import MaskMod, ScoreMod, at_every_place, refuse_sliced
from tritensor.func.flexible.masks import and_masks as and_masks
from tritensor.func.flexible.masks import create_mask as create_mask
from tritensor.func.flexible.masks import noop_mask as noop_mask
from tritensor.func.flexible.masks import or_masks as or_masks
from tritensor.ground.dtypes import float32, float64
from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.normalized import _safe_softmax

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip
FlexKernelOptions = dict[str, Any]  # settings of fused kernels: taken, and of no effect where nothing is fused
# PyTorch's names, which libraries import
_DEFAULT_SPARSE_BLOCK_SIZE, _mask_mod_signature, _score_mod_signature = DEFAULT_SPARSE_BLOCK_SIZE, MaskMod, ScoreMod
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False  # PyTorch's flag, which scripts set; nothing is compiled here


class AuxRequest(NamedTuple):
    """What flex_attention is to give beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What flex_attention gave beside its output, each (B, Hq, L); None for what nobody asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: ScoreMod | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: FlexKernelOptions | None = None,
    *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query @ key^T * scale) where the mask is True) @ value: attention with scores and a mask by functions (Dong et al. 2024).

    query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev) -> (B, Hq, L, Ev); with enable_gqa each head of key and value serves Hq / Hkv of query's.
    score_mod(score, b, h, q_idx, kv_idx) is asked at every place, of scores in float32 (float64 for float64), and may use other tensors; gradients flow
    through it. A query that sees no key gives 0. The scores are held whole: (B, Hq, L, S).

    Returns the output; with return_aux, (output, AuxOutput); with return_lse, (output, log of the sum of exp of scores, (B, Hq, L)).

    Raises:
        ShapeError, a ValueError or NotImplementedError: sizes, dtypes or devices that do not go together; a BlockMask of other lengths.

    >>> from tritensor.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q = k = v = tt.ones(1, 2, 4, 8)
    >>> mask = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 4, 4, device="cpu")
    >>> flex_attention(q, k, v, lambda score, b, h, q_idx, kv_idx: score + (kv_idx - q_idx), mask).shape
    tritensor.Size([1, 2, 4, 8])
    """
    _check(query, key, value, block_mask, enable_gqa, return_lse, return_aux)
    precision = float64 if query.dtype == float64 else float32
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.to(precision) @ key.to(precision).transpose(-2, -1) * factor  # (B, Hq, L, S)
    sizes: Any = tuple(scores.shape)
    if score_mod is not None:
        scores = at_every_place(score_mod, scores, sizes=sizes, device=scores.device).to(precision)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        scores = scores.where(at_every_place(block_mask.mask_mod, sizes=sizes, device=scores.device), -math.inf)
    out = _safe_softmax(scores, -1).to(query.dtype) @ value.to(query.dtype)
    if return_aux is not None:
        return out, AuxOutput(scores.logsumexp(-1) if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (out, scores.logsumexp(-1)) if return_lse else out


def _check(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, shared: bool, return_lse: bool, return_aux: AuxRequest | None) -> None:
    """Raise where the arguments of flex_attention do not go together."""
    given = f"flex_attention: query {tuple(q.shape)}, key {tuple(k.shape)}, value {tuple(v.shape)}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(f"{given}: Expected query, key, and value to all be at least 2 dimensional; give (batch, heads, length, size)")
    if not q.device == k.device == v.device:
        raise DeviceError(
            f"{given}: Expected query, key, and value to have the same device type, but they are on {q.device}, {k.device} and {v.device}"
        )
    if not q.dtype == k.dtype == v.dtype:
        raise DTypeError(
            f"{given}: Expected query, key, and value to have the same dtype, but they are {q.dtype}, {k.dtype} and {v.dtype}; cast them"
        )
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"{given}: Expect query and key/value to have the same embedding dimension but got E={q.shape[-1]} and E={k.shape[-1]}"
        )
    if not q.ndim == k.ndim == v.ndim == 4:
        raise NotImplementedError(f"{given}: query, key, and value must be 4D tensors; give (batch, heads, length, size)")
    if k.shape[:3] != v.shape[:3]:
        raise ShapeError(f"{given}: key and value differ in batch, heads or length; only their last sizes may")
    heads, own = q.shape[1], k.shape[1]
    if not shared and heads != own:
        raise ShapeError(
            f"{given}: Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={own}. Try setting enable_gqa=True for GQA"
        )
    if shared and heads % own:
        raise ShapeError(f"{given}: Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={own}")
    if q.shape[0] != k.shape[0] and (mask is None or mask.kv_num_blocks.shape[0] != q.shape[0] or k.shape[0] != 1):
        raise ShapeError(
            f"{given}: Expect query and key/value to have the same batch size, or one batch of keys under a block_mask of query's batch size"
        )
    if return_lse and return_aux is not None:
        raise ArgumentError(
            "flex_attention: Cannot specify both return_lse and return_aux; return_aux=AuxRequest(lse=True) does what return_lse did"
        )
    if mask is not None:
        _check_mask(given, q, k, mask)


def _check_mask(given: str, query: Tensor, key: Tensor, mask: BlockMask) -> None:
    if mask.mask_mod is refuse_sliced:
        raise RuntimeError(
            "flex_attention: Cannot use mask_mod from a sliced BlockMask; set sliced.mask_mod to a function made of the whole BlockMask's mask_mod"
        )
    if mask.shape[-2:] != (query.shape[-2], key.shape[-2]):
        raise ShapeError(
            f"{given}: block_mask was created for block_mask.shape={mask.shape} but got q_len={query.shape[-2]} and kv_len={key.shape[-2]}; make one for "
            "these lengths, or cut it by block_mask._adjust(q_len, kv_len)"
        )
    if query.device != mask.kv_num_blocks.device:
        raise DeviceError(
            f"{given}: Expect q/k/v and block_mask to be on the same device but got {query.device} and {mask.kv_num_blocks.device}"
        )
