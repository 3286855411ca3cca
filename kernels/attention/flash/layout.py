"""How the result of flash attention and its gradients lie in memory."""

from __future__ import annotations

from typing import Any

from tritensor.array import element_strides
from tritensor.strides import ordered_strides


def strides_like(x: Any, size: int) -> tuple[int, ...]:
    """Strides in elements of a result of x's leading sizes and `size` features, dense, its dimensions in the order of x's: heads that were split off a
    projection's features go back without a copy. PyTorch's flash attention lays its result so."""
    shape, steps = tuple(x.shape[:-1]), element_strides(x)[:-1]
    order = range(len(shape))
    if all(s > 0 for s, n in zip(steps, shape, strict=True) if n > 1):
        order = sorted(order, key=lambda d: (-steps[d], d))  # type: ignore[assignment]
    return ordered_strides((*shape, size), (*order, len(shape)))
