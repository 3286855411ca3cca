"""The weights of attention in our own ops: what its gradient is made of, and what takes dropout."""

from __future__ import annotations

import math
from typing import Any

from tritensor import dtypes
from tritensor.table import ops


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
