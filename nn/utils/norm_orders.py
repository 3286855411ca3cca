"""Orders of norms: what a tensor adds to the norm of several, how two such parts join, and the norm that they make.

For an order p that is a number, the parts are sums of |x|^p; for inf and -inf the largest and the smallest |x|. For 0 a part is 1 for each
tensor with an element that is not 0: PyTorch takes the norm of the tensors' norms, which is that number.
"""

from __future__ import annotations

import math

from tritensor.table import ops
from tritensor.tensor.core import Tensor


def order_of(name: str, norm_type: float) -> float:
    """The order as a number. Raises ValueError for NaN."""
    p = float(norm_type)
    if math.isnan(p):
        raise ValueError(f"{name}: norm_type is {norm_type!r}; give a number, inf or -inf")
    return p


def nothing(p: float) -> float:
    """The part of no element, which changes no other part."""
    return math.inf if p == -math.inf else 0.0


def part_of(t: Tensor, p: float) -> Tensor:
    """What a real tensor adds, 0-d, of its type."""
    if not t.array.size:
        return ops.full(shape=(), value=nothing(p), dtype=t.array.dtype, device=t.device)  # type: ignore[no-any-return]
    every = tuple(range(t.ndim))
    if p == 2:
        return ops.sum_of_squares(t, dim=every, keepdim=False)  # type: ignore[no-any-return]
    size = ops.abs(t)
    if math.isinf(p):
        return (ops.amax if p > 0 else ops.amin)(size, dim=every, keepdim=False)  # type: ignore[no-any-return]
    if p == 0:
        return ops.ne(ops.amax(size, dim=every, keepdim=False), 0.0).to(t.dtype)  # type: ignore[no-any-return]
    return ops.sum(ops.pow(size, p), dim=every, keepdim=False)  # type: ignore[no-any-return]


def joined(a: Tensor, b: Tensor, p: float) -> Tensor:
    """The part of two tensors together, where the first is."""
    return (ops.add if math.isfinite(p) else ops.maximum if p > 0 else ops.minimum)(a, b.to(a.device))  # type: ignore[no-any-return]


def norm_of(part: Tensor, p: float) -> Tensor:
    """The norm that a part makes."""
    return part if p == 0 or math.isinf(p) else ops.sqrt(part) if p == 2 else ops.pow(part, 1 / p)  # type: ignore[no-any-return]


def part_with(norm: Tensor, p: float) -> Tensor:
    """The part whose norm is this one."""
    return norm if p == 0 or math.isinf(p) else ops.pow(norm, p)  # type: ignore[no-any-return]
