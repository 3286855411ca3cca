"""The weights of attention in our own ops: what its gradient is made of, and what takes dropout."""

from __future__ import annotations

import math
from typing import Any

from tritensor.ground import dtypes
from tritensor.ops.table import ops


def weights(q: Any, k: Any, mask: Any, scale: float, causal: bool) -> Any:
    """softmax(scale q @ k^T + mask) of Tensors in our own ops; rows that see no key are 0."""
    last = k.ndim - 1
    scores = ops.matmul(ops.mul(q, scale), ops.permute(k, dims=(*range(last - 1), last, last - 1)))
    if causal:
        seen = ops.full(shape=tuple(scores.shape[-2:]), value=True, dtype=dtypes.bool_.numpy, device=q.device)
        scores = ops.where(ops.tril(seen, diagonal=0), scores, -math.inf)
    if mask is None:
        return ops.softmax(scores, dim=last)
    scores = ops.where(mask, scores, -math.inf) if mask.dtype == dtypes.bool_ else ops.add(scores, mask)
    blind = ops.eq(ops.amax(scores.detach(), dim=(last,), keepdim=True), -math.inf)
    return ops.where(blind, 0.0, ops.softmax(ops.where(blind, 0.0, scores), dim=last))


def dropped(w: Any, p: float, seed: int, offset: int) -> Any:
    """Weights (..., L, S) of which dropout makes some 0. Each row draws from a block of words of its own on, so that kernels take blocks whole."""
    keys = w.shape[-1]
    if keys % 4 == 0:
        return ops.dropout(w, p=p, seed=seed, offset=offset)
    index = (*(slice(None),) * (w.ndim - 1), slice(0, keys))
    padded = ops.pad_view(w, shape=(*w.shape[:-1], keys + -keys % 4), index=index)
    return ops.index_view(ops.dropout(padded, p=p, seed=seed, offset=offset), index=index)


def blocks_drawn(q: Any, keys: int) -> int:
    """Blocks of random words that `dropped` draws for the weights of queries (..., L, E) and so many keys."""
    return math.prod(q.shape[:-1]) * -(-keys // 4)
