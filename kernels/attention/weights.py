"""Attention's weights in tritensor's own ops, and its gradient made of them, with dropout and heads that share keys and values."""

from __future__ import annotations

import math
from typing import Any

from tritensor.ground import dtypes
from tritensor.kernels.attention.layout import mask_dims
from tritensor.kernels.parts.view_arithmetic import transposed_dims
from tritensor.ops.table import ops


def weights(q: Any, k: Any, mask: Any, scale: float, causal: bool) -> Any:
    """softmax(scale q @ k^T + mask) of Tensors; rows that see no key are 0."""
    last = k.ndim - 1
    scores = ops.matmul(ops.mul(q, scale), _swap(k))
    if causal:
        seen = ops.full(shape=tuple(scores.shape[-2:]), value=True, dtype=dtypes.bool_.numpy, device=q.device)
        scores = ops.where(ops.tril(seen, diagonal=0), scores, -math.inf)
    # without a mask every row sees a key, also under a causal one: the softmax alone is right
    if mask is None:
        return ops.softmax(scores, dim=last)
    scores = ops.where(mask, scores, -math.inf) if mask.dtype == dtypes.bool_ else ops.add(scores, mask)
    blind = ops.eq(ops.amax(scores.detach(), dim=(last,), keepdim=True), -math.inf)
    return ops.where(blind, 0.0, ops.softmax(ops.where(blind, 0.0, scores), dim=last))


def dropped(w: Any, p: float, seed: int, offset: int) -> Any:
    """Weights (..., L, S) of which dropout makes some 0. Each row draws from a block of words of its own on, so that kernels take blocks whole."""
    keys = w.shape[-1]
    # a block has four words: rows of whole blocks are one stream, others are filled up so that each begins with a block
    if keys % 4 == 0:
        return ops.dropout(w, p=p, seed=seed, offset=offset)
    index = (*(slice(None),) * (w.ndim - 1), slice(0, keys))
    padded = ops.pad_view(w, shape=(*w.shape[:-1], keys + -keys % 4), index=index)
    return ops.index_view(ops.dropout(padded, p=p, seed=seed, offset=offset), index=index)


def _swap(x: Any) -> Any:
    return ops.permute(x, dims=transposed_dims(x.ndim))


def _repeat_heads(x: Any, q: Any) -> Any:
    """Keys or values with each head as often as heads of q share it, in the graph."""
    if tuple(x.shape[:-2]) == tuple(q.shape[:-2]):
        return x
    *lead, heads, rows, size = x.shape
    wide = ops.expand(ops.reshape(ops.copy(x), shape=(*lead, heads, 1, rows, size)), shape=(*lead, heads, q.shape[-3] // heads, rows, size))
    return ops.reshape(ops.copy(wide), shape=(*q.shape[:-2], rows, size))


def _sum_heads(d: Any, shape: tuple[int, ...]) -> Any:
    """A gradient of `_repeat_heads`' result, summed over the heads that share keys and values."""
    if tuple(d.shape) == shape:
        return d
    *lead, heads, rows, size = shape
    return ops.sum(ops.reshape(d, shape=(*lead, heads, d.shape[-3] // heads, rows, size)), dim=(len(lead) + 1,), keepdim=False)


def rule(
    g: Any, q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool, p: float, seed: int, offset: int, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """dv = drop(w)^T g, ds = w (dw - sum w dw) with dw = drop(g v^T), dq = scale ds k, dk = scale ds^T q; ds is the mask's gradient."""
    keys, values = _repeat_heads(k, q), _repeat_heads(v, q)
    w = weights(q, keys, mask, scale, causal)
    dw = ops.matmul(g, _swap(values))
    kept = w
    if p:
        dw, kept = dropped(dw, p, seed, offset), dropped(w, p, seed, offset)
    ds = ops.mul(w, ops.sub(dw, ops.sum(ops.mul(w, dw), dim=(w.ndim - 1,), keepdim=True)))
    scaled = ops.mul(ds, scale)
    found = (
        ops.matmul(scaled, keys),
        _sum_heads(ops.matmul(_swap(scaled), q), tuple(k.shape)),
        _sum_heads(ops.matmul(_swap(kept), g), tuple(v.shape)),
    )
    if len(needs) < 4 or not needs[3]:
        return (*found, None)[: max(len(needs), 3)]
    dims = mask_dims(ds, mask)
    return *found, ops.reshape(ops.sum(ds, dim=dims, keepdim=True) if dims else ds, shape=tuple(mask.shape))
