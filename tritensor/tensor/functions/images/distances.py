"""Similarity and distance of vector pairs: cosine_similarity, pairwise_distance."""

from __future__ import annotations

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import broadcast
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function


def _normalize(x: Tensor, dim: int, eps: float) -> Tensor:
    """x / max(|x|, eps); the gradient is that of x / |x|, whichever it was, as PyTorch has it."""
    length = x.norm(2, dim, keepdim=True)
    if type(length.array) is np.ndarray and length.array.size and length.array.min() >= eps:
        return ops.div(x, length)
    short = (ops.clamp(length, eps, None) - length).detach()  # 0 but for vectors shorter than eps
    return ops.div(x, length + short)


@function(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of inputs that broadcast."""
    for name, x in (("x1", x1), ("x2", x2)):
        if x.dtype.kind != "float":
            mend = "view_as_real(x).flatten(-2) has a real cosine" if x.is_complex() else "cast it with .to(float32)"
            raise DTypeError(f"cosine_similarity: {name} is {x.dtype.name}; it takes float types; {mend}")
    if not eps >= 0:
        raise ArgumentError(f"cosine_similarity: eps is {eps}; it must be 0 or more")
    shape = broadcast("cosine_similarity", tuple(x1.shape), tuple(x2.shape), labels=("x1", "x2"))
    x1, x2 = (x if tuple(x.shape) == shape else ops.expand(x, shape=shape) for x in (x1, x2))
    return ops.mul(_normalize(x1, dim, eps), _normalize(x2, dim, eps)).sum(dim)


@function(method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """|x1 - x2 + eps|_p over the last dimension, of inputs that broadcast."""
    difference = ops.add(ops.sub(x1, x2), eps)
    return difference.norm(p, -1, keepdim=keepdim)
